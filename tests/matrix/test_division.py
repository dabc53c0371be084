"""Calls beyond a kernel's reach, divided: the reach lowered to a few hundred elements, each op against its C kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fuelvk.base.dtypes import DType
from fuelvk.kernels.ops import _division, _ranges
from fuelvk.runtime.devices import Device, VulkanDevice
from tests.matrix.test_strided_primitives import agree, entry_named, impl_of

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
        x, n = numbers(dtype, 3, 11, 96), 96
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


def calls() -> Iterator[Call]:
    yield from rows()
    yield from placements()
    yield from triangles()
    yield from selections()
    yield from gathers()


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lowers the reach; gets an entry for every piece a call is divided into."""
    seen: list[int] = []
    run = _division._run_piece
    monkeypatch.setattr(_ranges, "MOST", REACH)
    monkeypatch.setattr(_division, "_run_piece", lambda *args: (seen.append(1), run(*args)))
    return seen


@pytest.mark.parametrize("call", tuple(calls()), ids=str)
def test_pieces_give_the_same_bytes(call: Call, pieces: list[int], gpu: VulkanDevice, cpu: Device) -> None:
    impl = impl_of(call.op, call.dtypes)
    shapes = tuple(x.shape for x in call.inputs)
    op = entry_named(call.op)
    bound, params = op.bind(call.inputs, call.params)
    shapes = (
        *(None if x is None else x.shape for x in bound),
        op.shape_rule(tuple(x.shape for x in bound), params)[0],
    )
    reason = impl.admits(shapes, params, gpu.capabilities)
    assert reason is None or "lacks" in reason, reason
    agree(call.op, call.dtypes, call.inputs, call.params, gpu, cpu)
    assert len(pieces) > 1, "the call was not divided"
