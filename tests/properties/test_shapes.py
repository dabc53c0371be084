"""Layout, collapse and broadcasting against NumPy's strides."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fuelvk.base.errors import ShapeError
from fuelvk.base.shapes import Layout, broadcast_shapes, collapse, contiguous_strides, elements

Array = np.ndarray[Any, Any]
SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)
FULL_SHAPES = st.lists(st.integers(1, 5), max_size=4).map(tuple)
STEPS = ("transpose", "slice", "broadcast")


def whole(shape: tuple[int, ...]) -> Array:
    return np.arange(elements(shape), dtype=np.int64).reshape(shape)


def layout_of(array: Array, base: Array) -> Layout:
    """Returns NumPy's own strides and offset in elements."""
    start = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return Layout(array.shape, tuple(s // 8 for s in array.strides), start // 8)


def read(layout: Layout, base: Array) -> Array:
    """Returns the elements a layout names, looked up one by one."""
    flat = base.reshape(-1)
    picked = [
        flat[layout.offset + sum(i * s for i, s in zip(at, layout.strides, strict=True))]
        for at in itertools.product(*(range(n) for n in layout.shape))
    ]
    return np.asarray(picked, dtype=np.int64).reshape(layout.shape)


@st.composite
def views(draw: st.DrawFn) -> tuple[Array, Layout, Array]:
    """A base array, a layout made by a few view steps, and NumPy's array after the same steps."""
    shape = draw(FULL_SHAPES)
    base = whole(shape)
    array, layout = base, Layout.of(shape)
    for step in draw(st.lists(st.sampled_from(STEPS), max_size=3)):
        if step == "transpose":
            axes = draw(st.permutations(range(array.ndim)))
            array, layout = array.transpose(axes), layout.transpose(axes)
        elif step == "broadcast":
            lead = draw(st.lists(st.integers(1, 3), max_size=1))
            target = (*lead, *(draw(st.integers(1, 3)) if n == 1 else n for n in array.shape))
            array, layout = np.broadcast_to(array, target), layout.broadcast_to(target)
        else:
            picks = [draw(st.integers(0, n - 1)) for n in array.shape]
            steps = [draw(st.sampled_from([-2, -1, 1, 2])) for _ in array.shape]
            index = tuple(slice(p, None, s) for p, s in zip(picks, steps, strict=True))
            array = array[index]
            layout = layout.slice(picks, steps, array.shape)
    return base, layout, array


@given(SHAPES)
def test_contiguous_strides(shape: tuple[int, ...]) -> None:
    strides = contiguous_strides(shape)
    array = whole(shape)
    if array.size:
        assert all(n == 1 or s * 8 == t for n, s, t in zip(shape, strides, array.strides, strict=True))
    assert Layout.of(shape).is_contiguous()
    assert Layout.of(shape).elements == array.size


@given(views())
@settings(max_examples=300)
def test_views_read_what_numpy_reads(case: tuple[Array, Layout, Array]) -> None:
    base, layout, array = case
    assert layout.shape == array.shape
    np.testing.assert_array_equal(read(layout, base), array)
    same = layout_of(array, base)
    assert all(n <= 1 or a == b for n, a, b in zip(array.shape, layout.strides, same.strides, strict=True))
    assert layout.is_contiguous() == array.flags.c_contiguous


@given(views(), st.data())
@settings(max_examples=300)
def test_reshape(case: tuple[Array, Layout, Array], data: st.DataObject) -> None:
    """Where a view is possible NumPy makes one too, and it reads the same; where it is not, NumPy copies."""
    base, layout, array = case
    target = data.draw(st.sampled_from(sorted(_factorisations(array.size, 3))))
    found = layout.reshape(target)
    expected = array.reshape(target)
    if found is None:
        assert not np.shares_memory(expected, base)
    else:
        assert found.shape == target
        np.testing.assert_array_equal(read(found, base), expected)
    if np.shares_memory(expected, base) and array.size > 1:
        assert found is not None


def _factorisations(n: int, most: int) -> set[tuple[int, ...]]:
    found = {(n,)}
    if most > 1:
        for d in range(1, n + 1):
            if n % d == 0:
                found |= {(d, *rest) for rest in _factorisations(n // d, most - 1)}
    return found if n != 1 else found | {()}


@given(views())
@settings(max_examples=300)
def test_collapse_walks_the_same_elements(case: tuple[Array, Layout, Array]) -> None:
    base, layout, array = case
    plain = contiguous_strides(layout.shape)
    shape, (strides, order) = collapse(layout.shape, layout.strides, plain)
    assert len(shape) >= 1
    assert elements(shape) == elements(layout.shape)
    np.testing.assert_array_equal(
        read(Layout(shape, strides, layout.offset), base).reshape(-1), array.reshape(-1)
    )
    np.testing.assert_array_equal(
        read(Layout(shape, order, 0), whole(layout.shape)).reshape(-1), np.arange(elements(layout.shape))
    )
    assert len(shape) == 1 or 1 not in shape
    assert collapse(shape, strides, order) == (shape, [strides, order])
    if layout.is_contiguous():
        assert len(shape) == 1


@given(st.lists(SHAPES, min_size=1, max_size=3))
@settings(max_examples=300)
def test_broadcast_shapes(shapes: list[tuple[int, ...]]) -> None:
    try:
        expected: tuple[int, ...] | None = np.broadcast_shapes(*shapes)
    except ValueError:
        expected = None
    try:
        found: tuple[int, ...] | None = broadcast_shapes(*shapes)
    except ShapeError:
        found = None
    assert found == expected


@given(SHAPES, SHAPES)
def test_broadcast_layout(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    array = whole(shape)
    try:
        expected = np.broadcast_to(array, target)
    except ValueError:
        return
    layout = Layout.of(shape).broadcast_to(target)
    assert layout.shape == target
    if expected.size:
        np.testing.assert_array_equal(read(layout, array), expected)
