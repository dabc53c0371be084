"""Calls of more than 2^31 elements, divided by the real reach: where each piece lies, counted without any memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Layout, Shape, elements
from fuelvk.kernels.ops import _ranges, gather, index_select, rope, triangle
from fuelvk.kernels.ops._division import divided, divisible, together
from fuelvk.kernels.ops._product import division as product
from fuelvk.kernels.ops._walk import Walk, reached
from fuelvk.kernels.ops._window import windows
from tests.matrix.test_portable import bare

CAPS = bare("bda")
REACH = 2**31


class Far:
    """A buffer that is only asked where it lies."""

    def __init__(self, nbytes: int, start: int = 0) -> None:
        self.nbytes = nbytes
        self.start = start

    def view(self, offset: int, nbytes: int) -> Far:
        assert 0 <= offset <= offset + nbytes <= self.nbytes
        assert offset % 256 == 0
        return Far(nbytes, self.start + offset)


class Context:
    caps = CAPS


Piece = tuple[list[tuple[int, Layout]], dict[str, Any]]


def pieces(
    rule: Any, shapes: tuple[Shape, ...], sizes: tuple[int, ...], params: dict[str, Any], **more: Any
) -> list[Piece]:
    """Returns for every piece the first element of its operands in all of theirs, their layouts, and the parameters."""
    kinds = {1: DType.U8, 2: DType.F16, 4: DType.F32, 8: DType.I64}
    dtypes = [kinds[s] for s in sizes]
    seen: list[Piece] = []

    def kernel(inputs: Any, outputs: Any, layouts: Any, given: Any, context: Any) -> None:
        places = []
        for buffer, view, size in zip((*inputs, *outputs), layouts, sizes, strict=True):
            assert view.offset + view.elements <= REACH
            assert buffer.start % size == 0
            places.append((buffer.start // size + view.offset, view))
        seen.append((places, dict(given)))

    buffers: list[Any] = [Far(elements(s) * size) for s, size in zip(shapes, sizes, strict=True)]
    assert divisible(rule, dtypes, weights=more.get("weights", ()))(shapes, params, CAPS) is None
    run = divided(kernel, rule, dtypes, **more)
    run(buffers[:-1], buffers[-1:], [Layout.of(s) for s in shapes], params, Context())
    return seen


def covers(found: list[Piece], operand: int, total: int) -> None:
    """The contiguous parts of an operand lie end to end from its first element to its last."""
    at = 0
    for first, view in sorted({(p[operand][0], p[operand][1]) for p, _ in found}, key=lambda part: part[0]):
        assert view.is_contiguous()
        assert first == at
        at += view.elements
    assert at == total


@pytest.mark.parametrize(
    "shape", [(2**40,), (3, 2**33), (70000, 70001), (2**20, 3, 2**12), (1, 2**32 + 5, 1)]
)
@pytest.mark.parametrize("size", [1, 2, 8])
def test_elements_side_by_side(shape: Shape, size: int) -> None:
    found = pieces(together(), (shape, shape), (size, size), {})
    for operand in (0, 1):
        covers(found, operand, elements(shape))


def test_triangles_move_their_diagonal() -> None:
    shape = (2, 50_000, 90_000)
    found = pieces(together(), (shape, shape), (4, 4), {"k": -7}, shift=triangle._moved)
    covers(found, 1, elements(shape))
    for places, given in found:
        first, view = places[0]
        row, column = first % (50_000 * 90_000) // 90_000, first % 90_000
        assert given["k"] == -7 + row - column
        assert view.shape[-1] == 90_000


def test_tables_are_cut_into_windows() -> None:
    table, picks, out = (5_000_000, 1000), (40,), (40, 1000)
    found = pieces(
        index_select._division,
        (table, picks, out),
        (2, 8, 2),
        {"axis": 0},
        weights=(1, 2, 1),
        shift=windows(0),
        keeps=True,
    )
    covers(found, 0, elements(table))
    for places, given in found:
        first, extent = given["window"]
        assert extent == 5_000_000
        assert places[0][0] == first * 1000
        assert places[1][1].shape == picks
        assert places[2] == (0, Layout.of(out))


def test_many_picks_and_long_axes() -> None:
    line, out = (2**33,), (2**32,)
    found = pieces(
        gather._division,
        (line, out, out),
        (1, 8, 1),
        {"axis": 0},
        weights=(1, 2, 1),
        shift=windows(0),
        keeps=True,
        strided=True,
    )
    for operand in (0, 1, 2):
        covers(found, operand, (line, out, out)[operand][0])
    together_seen = {(p[0][0], p[2][0]) for p, _ in found}
    assert len(together_seen) == len(found), "every window of x meets every part of the result once"
    assert len(found) == len({a for a, _ in together_seen}) * len({b for _, b in together_seen})


def test_positions_meet_their_rows_of_the_tables() -> None:
    x, table = (2, 3, 2**24, 128), (2**24 + 9, 64)
    found = pieces(rope._division, (x, table, table, x), (2, 2, 2, 2), {})
    covers(found, 3, elements(x))
    for places, _ in found:
        first, view = places[0]
        assert places[1][0] == first // 128 % 2**24 * 64
        assert places[1][1].shape[0] >= view.shape[-2]


def test_products_are_cut_along_rows_and_batches() -> None:
    a, b = (6, 200_000, 30_000), (30_000, 64)
    out = (6, 200_000, 64)
    found = pieces(product, (a, b, out), (4, 4, 4), {}, strided=True, weights=(2, 2, 2))
    covers(found, 0, elements(a))
    covers(found, 2, elements(out))
    for places, _ in found:
        assert places[0][0] // 30_000 == places[2][0] // 64


def test_what_belongs_together_is_refused_with_the_reason() -> None:
    shape = (4, 2**31)
    reason = divisible(together(-1), (DType.F32,) * 2)((shape, shape), {}, CAPS)
    assert "2147483648 elements of an operand belong together" in str(reason)
    bound = replace(bare("ssbo"), max_buffer_range=2**27)
    small = (4, 2**26)
    assert divisible(together(-1), (DType.F32,) * 2)((small, small), {}, bound) is not None
    assert divisible(together(), (DType.F32,) * 2)((small, small), {}, bound) is None


@pytest.mark.parametrize(
    "walk",
    [
        Walk(1, 2**40 + 3, 1, 0, 1, 1),
        Walk(1, 2**33 + 20, 1, 0, 0, 1),
        Walk(2**33, 7, 1, 7, 1, 1),
        Walk(3, 2**32, 5, 5 * 2**32, 5, 1),
        Walk(1, 50_000, 90_000, 0, 90_000, 1),
        Walk(1, 50_000, 90_000, 0, -90_000, -1),
        Walk(2, 2, 2**30, 2**31, 2**30, 1),
    ],
)
def test_parts_of_reductions_cover_all(walk: Walk) -> None:
    """Results lie end to end in order, and every part starts at the elements that its first result is of."""
    block, fits = 16384, reached(CAPS, 4, 4, 16384, 1)
    at = seen = 0
    for piece, dx, dy in walk.side_by_side(block):
        for part, x, y in piece.parts(fits, block):
            low, high = _ranges._ends(part.at(0))
            assert high - low < REACH
            assert part.results(block).elements < REACH
            assert dy + y == at
            at += part.results(block).elements
            seen += part.outer * part.n * part.inner
            if piece is walk:
                outer, rest = divmod(y, walk.blocks(block) * walk.inner)
                b, j = divmod(rest, walk.inner)
                strides = np.array([walk.outer_stride, block * walk.step, walk.inner_stride], object)
                assert dx + x == int(np.dot(np.array([outer, b, j], object), strides))
    assert at == walk.results(block).elements
    assert seen == walk.outer * walk.n * walk.inner
