"""The kernel table, movement kernels, argument checks, and what a kernel's revision covers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from cpu_reference import _sources, _table
from cpu_reference import c as ckernels
from cpu_reference.numpy import oracle
from fuelvk.base.dtypes import DType
from fuelvk.base.errors import (
    DTypeError,
    IndexOutOfRangeError,
    ParameterError,
    ShapeError,
    UnknownNameError,
    UnsupportedError,
)
from fuelvk.base.shapes import Layout
from fuelvk.kernels.ops.masked_fill import filler
from fuelvk.verify.compare import same_bits

Array = np.ndarray[Any, Any]


def test_kernels_are_built() -> None:
    assert ckernels.available(), ckernels.why_missing()
    assert set(ckernels.names()) == set(_table.KERNELS)


# --- movement -------------------------------------------------------------------------------------------------------


def copied(view: Array, base: Array) -> Array:
    """Copies a strided view of the contiguous ``base`` by the kernel."""
    strides = [s // base.itemsize for s in view.strides]
    offset = (view.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // base.itemsize
    y = np.empty(view.shape, base.dtype)
    shape = np.array(view.shape, np.int64)
    layout = (shape, np.array(strides, np.int64), view.ndim, offset)
    ckernels.call(f"copy_b{base.itemsize}", base, y, *layout, base.size, y.size)
    return y


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_copy_of_any_view(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    base = np.arange(6 * 7 * 8).reshape(6, 7, 8).astype(f"u{size}")
    views = (
        base, base[::-1], base[:, ::-2, 1:], base.transpose(2, 0, 1), base[2, 3], base[1:1], base[3, 4, 5:6].reshape(()),
        np.broadcast_to(base[:, :1], base.shape), base.reshape(-1)[5::3], base[::-1, ::-1, ::-1],
    )  # fmt: skip
    for threads in (1, 3):
        monkeypatch.setattr(ckernels, "thread_count", lambda threads=threads: threads)
        monkeypatch.setattr(ckernels, "_THREADED_WORK", 1)
        for view in views:
            assert np.array_equal(copied(view, base), oracle("copy")(view))


def test_copy_refuses_views_that_leave_the_buffer() -> None:
    x, y = np.zeros(10, np.float32), np.zeros(4, np.float32)
    for layout in (Layout((4,), (3,), 1), Layout((4,), (-1,), 2), Layout((4,), (1,), -1)):
        shape, strides = np.array(layout.shape, np.int64), np.array(layout.strides, np.int64)
        with pytest.raises(IndexOutOfRangeError):
            ckernels.call("copy_b4", x, y, shape, strides, 1, layout.offset, 10, 4)


def test_gather_triangle_and_masked_fill() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 5, 4)).astype(np.float32)
    for axis in (0, 1, 2):
        picks = rng.integers(0, x.shape[axis], (*x.shape[:axis], 6, *x.shape[axis + 1 :]))
        y = np.empty(picks.shape, np.float32)
        outer, inner = int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis + 1 :]))
        ckernels.call("gather_b4", x, picks, y, outer, x.shape[axis], 6, inner)
        assert np.array_equal(y, oracle("gather")(x, picks, axis=axis))
        for bad in (-1, x.shape[axis], 2**40):
            picks.reshape(-1)[-1] = bad
            with pytest.raises(IndexOutOfRangeError):
                ckernels.call("gather_b4", x, picks, y, outer, x.shape[axis], 6, inner)
            with pytest.raises(IndexError):
                oracle("gather")(x, picks, axis=axis)
    y = np.empty_like(x)
    for k in (-5, -1, 0, 2, 4):
        for upper, function in enumerate((np.tril, np.triu)):
            ckernels.call("triangle_b4", x, y, 3, 5, 4, k, upper)
            assert np.array_equal(y, function(x, k))
    mask = rng.integers(0, 2, x.shape).astype(bool)
    ckernels.call("masked_fill_b4", x, mask, np.array([7], np.float32), y, x.size)
    assert np.array_equal(y, np.where(mask, np.float32(7), x))


@pytest.mark.parametrize("dtype", [DType.BF16, DType.F8E4M3, DType.F16, DType.F32], ids=lambda d: d.key)
def test_a_filler_is_rounded_once(dtype: DType) -> None:
    rng = np.random.default_rng(0)
    values = [*rng.standard_normal(300) * 10.0 ** rng.integers(-9, 6, 300), np.nan, np.inf, -np.inf, -0.0]
    values += [1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40, 1 + 2.0**-4 + 2.0**-40, 3.5e38, 449.0, 1e300]
    for value in values:
        want = oracle("cast")(np.array([value]), dtype=dtype)
        assert same_bits(filler(float(value), dtype), want) is None, value


def test_index_select_and_concat() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 5, 4)).astype(np.float32)
    for axis in (0, 1, 2):
        indices = rng.integers(0, x.shape[axis], 7)
        want = oracle("index_select")(x, indices, axis=axis)
        outer, inner = int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis + 1 :])) * 4
        y = np.empty(want.shape, np.float32)
        ckernels.call("index_select", x, indices, y, outer, x.shape[axis], 7, inner)
        assert np.array_equal(y, want)
        for bad in (-1, x.shape[axis], 2**40):
            with pytest.raises(IndexOutOfRangeError):
                ckernels.call("index_select", x, np.array([0, bad]), y, outer, x.shape[axis], 2, inner)
            with pytest.raises(IndexError):
                oracle("index_select")(x, np.array([0, bad]), axis=axis)

        parts = (x, x[:, :, :0], x[::-1]) if axis == 2 else (x, x)
        joined = oracle("concat")(*parts, axis=axis)
        y, at = np.empty(joined.shape, np.float32), 0
        for part in parts:
            row = int(np.prod(part.shape[axis:])) * 4
            total = int(np.prod(joined.shape[axis:])) * 4
            ckernels.call("concat", np.ascontiguousarray(part), y, outer, row, total, at)
            at += row
        assert np.array_equal(y, joined)
    with pytest.raises(IndexOutOfRangeError):
        ckernels.call("concat", x, y, 1, 64, 32, 0)


# --- arguments ------------------------------------------------------------------------------------------------------


def test_calls_are_checked() -> None:
    x = np.ones(4, np.float32)
    with pytest.raises(UnknownNameError, match="add_f32"):
        ckernels.call("ad_f32", x, x, x, 4)
    with pytest.raises(ParameterError, match="4 arguments"):
        ckernels.call("add_f32", x, x, 4)
    with pytest.raises(DTypeError, match="another element size"):
        ckernels.call("add_f32", x, x.astype(np.float64), x.copy(), 4)
    with pytest.raises(DTypeError, match="is an array"):
        ckernels.call("add_f32", x, [1.0], x.copy(), 4)
    with pytest.raises(ShapeError, match="contiguous"):
        ckernels.call("add_f32", np.ones((4, 2), np.float32)[:, 0], x, x.copy(), 4)
    frozen = np.ones(4, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ParameterError, match="read-only"):
        ckernels.call("add_f32", x, x, frozen, 4)
    ckernels.call("add_f32", frozen, frozen, x, 4)
    assert (x == 2).all()


def test_missing_extension_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ckernels, "_load", lambda: (None, None, "the C kernels are not built"))
    assert not ckernels.available() and "not built" in ckernels.why_missing()
    with pytest.raises(UnsupportedError, match="not built"):
        ckernels.call("neg_f32", np.ones(1, np.float32), np.ones(1, np.float32), 1)


# --- revision -------------------------------------------------------------------------------------------------------


def test_revision_covers_the_closure_and_the_flags() -> None:
    found = dict(ckernels.revision_sources("softmax_last_dim_f16"))
    assert {"rows.c", "rows.inc", "common.h", "order.inc", "dtype.inc", "strict/exp.h"} <= set(found)
    assert "-ffp-contract=off" in found["flags"].decode()
    # An unrelated family is not part of it.
    assert "attention.c" not in found and "cast.c" not in found
    assert [name for name, _ in ckernels.revision_sources("cast_f64_u8")][:1] == ["cast.c"]
    with pytest.raises(KeyError):
        ckernels.revision_sources("nothing_f32")


@pytest.mark.skipif(not _sources.in_source_tree(), reason="an installed package has the snapshot only")
def test_snapshot_of_a_package_gives_the_same_revisions(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: ckernels.revision_sources(name) for name in ("matmul_f32", "cast_f16_i8")}
    monkeypatch.setattr(_sources, "SNAPSHOT", tmp_path / "sources.json")
    _sources.write_snapshot()
    first = (tmp_path / "sources.json").read_bytes()
    _sources.write_snapshot()
    assert (tmp_path / "sources.json").read_bytes() == first
    loaded = json.loads(first)
    monkeypatch.setattr(_sources, "_sources", lambda: loaded)
    assert {name: ckernels.revision_sources(name) for name in before} == before


def test_table_is_readable() -> None:
    for kernel in _table.KERNELS.values():
        assert kernel.declaration.startswith("int ") and kernel.declaration.endswith(
            "int64_t begin, int64_t end);"
        )
        assert any(a.written for a in kernel.arguments)
