"""Calls beyond a kernel's reach, divided: the reach lowered to a few hundred elements, each op against its C kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fuelvk.base.dtypes import DType
from fuelvk.kernels._vulkan import VulkanContext
from fuelvk.kernels.ops import _ranges
from fuelvk.runtime.devices import Device, VulkanDevice
from tests.matrix.test_strided_primitives import agree, entry_named, impl_on

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.device
REACH = 1000
RNG = np.random.default_rng(12)
F32, F16, U8, F64, I64, I32, U32 = (
    DType.F32, DType.F16, DType.U8, DType.F64, DType.I64, DType.I32, DType.U32,
)  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A call that is out of the lowered reach: ``inputs`` are views or None."""

    op: str
    name: str
    dtypes: tuple[DType, ...]
    inputs: tuple[Array, ...]
    params: Mapping[str, Any]
    reach: int = REACH

    def __str__(self) -> str:
        return f"{self.op}-{self.name}-{self.dtypes[0].key}"


def numbers(dtype: DType, *shape: int) -> Array:
    """Returns an array that starts a few elements into its memory."""
    count = int(np.prod(shape))
    return RNG.integers(1, 100, count + 3).astype(dtype.numpy)[3:].reshape(shape)


def below(dtype: DType, end: int, *shape: int) -> Array:
    return RNG.integers(0, end, shape).astype(dtype.numpy)


def triangles() -> Iterator[Call]:
    for dtype in (U8, F16, F32, F64):
        for name, shape, k in (
            ("planes", (9, 7, 31), -2),
            ("rows", (90, 31), -40),
            ("one_row", (1, 2500), 1203),
            ("column", (2500, 1), -1203),
            ("deep", (2, 45, 40), 3),
        ):
            for op in ("triu", "tril"):
                yield Call(op, name, (dtype, dtype), (numbers(dtype, *shape),), {"k": k})


def selections() -> Iterator[Call]:
    for dtype, index in ((U8, I64), (F16, I32), (F32, I64), (F64, U32)):
        dtypes = (dtype, index, dtype)
        for name, shape, axis, count in (
            ("table", (300, 17), 0, 5),
            ("many", (6, 5), 0, 1400),
            ("line", (3000,), 0, 40),
            ("planes", (40, 6, 9), 1, 11),
            ("long_rows", (2, 3, 1500), 1, 2),
            ("deep", (3, 200, 7), 1, 150),
        ):
            picks = below(index, shape[axis], count)
            yield Call("index_select", name, dtypes, (numbers(dtype, *shape), picks), {"axis": axis})


def gathers() -> Iterator[Call]:
    for dtype, index in ((U8, I64), (F16, I32), (F32, U32), (F64, I64)):
        dtypes = (dtype, index, dtype)
        line, square = numbers(dtype, 3000), numbers(dtype, 60, 50)
        for name, x, picks, axis in (
            ("line", line, below(index, 3000, 900), 0),
            ("backwards", line[::-2], below(index, 1500, 40), 0),
            ("rows", square, below(index, 60, 80, 50), 0),
            ("columns", square.T[::-1], below(index, 60, 50, 31)[:, ::-1], 1),
            ("repeated", np.broadcast_to(square[:1], (60, 50)), below(index, 60, 33, 50), 0),
            ("one_pick", square, below(index, 50, 1, 20), 1),
        ):
            yield Call("gather", name, dtypes, (x, picks), {"axis": axis})


FLOATS = (F32, F64, F16, DType.BF16)


def rows() -> Iterator[Call]:
    for dtype in FLOATS:
        two = (dtype, dtype)
        x, n = below(dtype, 60, 3, 11, 96), 96  # no exponential is subnormal
        for op, more in (
            ("softmax_last_dim", ()),
            ("softmax_last_dim_backward", (x[::-1].copy(),)),
            ("log_softmax", ()),
            ("rms_norm_last_dim", (numbers(dtype, n),)),
            ("layer_norm_last_dim", (numbers(dtype, n), numbers(dtype, n))),
            ("layer_norm_last_dim_backward", (x[::-1].copy(),)),
        ):
            same = (dtype,) * (2 + len(more))
            yield Call(op, "rows", same, (x, *more), {"eps": 1e-5} if "norm" in op else {})
        tables = (numbers(dtype, 14, 24), numbers(dtype, 14, 24))
        yield Call("rope", "positions", (dtype,) * 4, (numbers(dtype, 2, 3, 11, 24), *tables), {})
        yield Call("rope", "one", (dtype,) * 4, (numbers(dtype, 60, 1, 24), *tables), {"interleaved": True})
        yield Call(
            "powi_backward", "line", (dtype,) * 3, (numbers(dtype, 3000), numbers(dtype, 3000)), {"exp": 3}
        )
        cube = below(dtype, 5, 6, 20, 30)
        for name, shape in (("planes", (6, 1, 1)), ("columns", (20, 1)), ("inner", (1, 20, 30))):
            g = numbers(dtype, *shape)
            yield Call("reduce_max_to_backward", name, (dtype,) * 3, (cube, g), {})
        images = numbers(dtype, 5, 6, 9, 10)
        channels = tuple(numbers(dtype, 6) for _ in range(4))
        yield Call("batch_norm", "images", (dtype,) * 6, (images, *channels), {"eps": 1e-3})
        window = {"kernel": (3, 2), "stride": (2, 2), "padding": (1, 1)}
        yield Call("max_pool2d", "images", two, (images,), {**window, "dilation": (1, 1)})
        yield Call("avg_pool2d", "images", two, (images,), window)
        yield Call("resize2d", "images", two, (images,), {"size": (7, 13), "mode": "linear"})


def losses() -> Iterator[Call]:
    for dtype in FLOATS:
        x, targets = below(dtype, 60, 7, 30, 40), below(I64, 40, 7, 30)
        targets[3, 5] = -100
        for reduction in ("mean", "sum", "none"):
            params, name = {"reduction": reduction, "ignore_index": -100}, reduction
            yield Call("fused_softmax_cross_entropy", name, (dtype, I64, F32), (x, targets), params)
            g = numbers(F32, *(targets.shape if reduction == "none" else ()))
            inputs, dtypes = (x, targets, g), (dtype, I64, F32, dtype)
            yield Call("fused_softmax_cross_entropy_backward", name, dtypes, inputs, params)


def products() -> Iterator[Call]:
    for dtype in (F32, F16, F64):
        for name, a, b in (
            ("rows", numbers(dtype, 300, 20), numbers(dtype, 20, 30)),
            ("columns", numbers(dtype, 6, 20), numbers(dtype, 20, 400)),
            ("both", numbers(dtype, 90, 70), numbers(dtype, 70, 80)),
            ("turned", numbers(dtype, 70, 90).T[::-1], numbers(dtype, 80, 70).T),
            ("batches", numbers(dtype, 5, 1, 9, 20), numbers(dtype, 4, 20, 31)),
            ("row", numbers(dtype, 90), numbers(dtype, 2, 90, 70)),
            ("column", numbers(dtype, 300, 90), numbers(dtype, 90)),
        ):
            yield Call("matmul", name, (dtype,) * 3, (a, b), {}, 5000)
        bias = numbers(dtype, 400)[::-1]
        inputs = (numbers(dtype, 2, 6, 20), numbers(dtype, 20, 400), bias)
        yield Call("fused_linear", "bias", (dtype,) * 4, inputs, {}, 5000)


def placements() -> Iterator[Call]:
    for dtype in (U8, F16, F32, F64):
        dtypes = (dtype, dtype, I64, dtype)
        for name, shape, axis, count in (
            ("outer", (90, 8, 6), 1, 3),
            ("inner", (20, 400), 0, 3),
            ("middle", (3, 20, 90), 1, 7),
        ):
            update = tuple(count if i == axis else n for i, n in enumerate(shape))
            inputs = (numbers(dtype, *shape), numbers(dtype, *update), np.array([shape[axis] - 2]))
            yield Call("write_slice", name, dtypes, inputs, {"axis": axis, "wrap": True})


def reductions() -> Iterator[Call]:
    """A block of 16,384 rows is never cut, so that the reach is longer than that."""
    for op, dtypes in (("sum", FLOATS), ("mean", (F16,)), ("prod", (I32,)), ("max", (F32, I64))):
        for dtype in dtypes:
            line, square = numbers(dtype, 120000), numbers(dtype, 300, 400)
            for name, x, axes, reach in (
                ("line", line, None, 20000),
                ("backwards", line[::-1], None, 20000),
                ("spaced", line[::5], None, 20000),
                ("far_apart", line[: 40 * 3000].reshape(40, 3000)[:, 1], None, 30000),
                ("rows", square, (1,), 20000),
                ("columns", square, (0,), 20000),
                ("turned", square.T[::-1], (0,), 20000),
                ("repeated", np.broadcast_to(line[:1], (5, 40000)), (1,), 20000),
                ("deep", line.reshape(3, 20000, 2), (1,), 45000),
                ("wide", line[:60000].reshape(2, 3, 10000), (1,), 26000),
                ("three", line[:60000].reshape(50, 40, 30), (0, 2), 20000),
            ):
                yield Call(op, name, (dtype, dtype), (x,), {"axes": axes}, reach)
    for op, dtype in (("argmax", F32), ("argmin", F16), ("argmax", F64), ("argmin", DType.BF16)):
        line = (below(dtype, 3000, 120000) if dtype is F32 else numbers(dtype, 120000))[2:]
        square = line[:117000].reshape(300, 390)
        for name, x, axis, reach in (
            ("line", line, None, 1000),
            ("backwards", line[::-1], None, 40000),
            ("blocks", line, None, 80000),
            ("rows", square, 1, 1000),
            ("long_rows", line[:100000].reshape(5, 20000), 1, 3000),
            ("columns", square, 0, 5000),
            ("many_columns", line[:60000].reshape(30, 2000), 0, 5000),
            ("middle", line[:60000].reshape(4, 300, 50), 1, 1000),
            ("missing", np.where(line == line[70000], np.nan, line).astype(line.dtype), None, 4000),
        ):
            yield Call(op, name, (dtype, I64), (x,), {"axis": axis}, reach)
    for dtype in FLOATS:
        line = numbers(dtype, 30000)
        for name, x, axis, reach in (
            ("line", line, 0, 1000),
            ("backwards", line[::-1], 0, 1000),
            ("rows", line.reshape(10, 3000), 1, 2000),
            ("columns", line.reshape(3000, 10), 0, 2000),
            ("wide", line.reshape(100, 300), 0, 50000 // 2),
            ("deep", line.reshape(2, 3000, 5), 1, 1000),
            ("spaced", line[::3].reshape(1000, 10)[:, ::2], 0, 2000),
        ):
            yield Call("cumsum", name, (dtype, dtype), (x,), {"axis": axis}, reach)


def accumulations() -> Iterator[Call]:
    for dtype, index in ((F32, I64), (F16, I32), (F64, U32), (DType.BF16, I64)):
        dtypes = (dtype, index, dtype, dtype)
        line, square = numbers(dtype, 3000), numbers(dtype, 60, 50)
        for name, x, shape, axis in (
            ("line", line, (800,), 0),
            ("long", line[:40], (5000,), 0),
            ("rows", square, (70, 50), 0),
            ("fewer", square, (9, 20), 0),
            ("turned", square.T[::-1], (50, 80), 1),
            ("deep", line.reshape(5, 60, 10), (5, 90, 7), 1),
        ):
            picks, updates = below(index, x.shape[axis], *shape), numbers(dtype, *shape)
            yield Call("scatter_add", name, dtypes, (x, picks, updates), {"axis": axis})
            whole = tuple(shape[d] if d == axis else n for d, n in enumerate(x.shape))
            picks = below(index, x.shape[axis], 2 * shape[axis])[::2]
            yield Call("index_add", name, dtypes, (x, picks, numbers(dtype, *whole)), {"axis": axis})


def calls() -> Iterator[Call]:
    yield from accumulations()
    yield from reductions()
    yield from rows()
    yield from products()
    yield from losses()
    yield from placements()
    yield from triangles()
    yield from selections()
    yield from gathers()


@pytest.mark.parametrize("call", tuple(calls()), ids=str)
def test_parts_give_the_same_bytes(
    call: Call, monkeypatch: pytest.MonkeyPatch, gpu: VulkanDevice, cpu: Device
) -> None:
    """In more dispatches than the whole call takes."""
    op = entry_named(call.op)
    counts = [0]
    dispatch = VulkanContext.dispatch

    def counted(self: VulkanContext, *args: Any, **more: Any) -> None:
        counts[-1] += 1
        dispatch(self, *args, **more)

    def run() -> None:
        bound, params = op.bind(call.inputs, call.params)
        shapes = tuple(None if x is None else x.shape for x in bound)
        known = (*shapes, *op.shape_rule(shapes, params))
        impl = impl_on(gpu.capabilities, call.op, call.dtypes, known, params)
        reason = impl.admits(known, params, gpu.capabilities)
        assert reason is None or "lacks" in reason or "no variant" in reason, reason
        agree(call.op, call.dtypes, call.inputs, call.params, gpu, cpu)

    monkeypatch.setattr(VulkanContext, "dispatch", counted)
    run()
    counts.append(0)
    monkeypatch.setattr(_ranges, "MOST", call.reach)
    run()
    assert counts[1] > counts[0], "the call was not divided"
