"""Copies large enough for the kernels that move whole rows or turn them into columns, at every alignment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Layout
from fuelvk.kernels._vulkan import VulkanContext, spirv
from fuelvk.runtime.devices import Device, VulkanDevice
from tests.matrix.test_strided_primitives import agree, impl_of
from tests.support.launch import Recording

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.device
DTYPES = (DType.U8, DType.F16, DType.F32, DType.F64)


def base_of(dtype: DType) -> Array:
    return np.random.default_rng(6).integers(0, 100, 90000).astype(dtype.numpy)


def rows(base: Array, off: int) -> list[Array]:
    """Long rows that begin anywhere: straight, reversed, spaced, repeated, far apart, many axes."""
    square = base[off : off + 40000].reshape(200, 200)
    return [
        base[off : off + 20001],
        base[off + 20001 : off : -1],
        base[off : off + 60000 : 3],
        square[:, 3 : -off - 1],
        square[::-1, 199:3:-1],
        np.broadcast_to(base[off : off + 1], (20000,)),
        np.broadcast_to(square[:, off][:, None], (200, 133)),
        base[off : off + 80000].reshape(5, 4, 4, 5, 2, 100)[::2, :, ::3, :, :, off:],
    ]


def turned(base: Array, off: int) -> list[Array]:
    """Views that are contiguous along another axis than the last."""
    cube, five = base[off : off + 36864].reshape(6, 64, 96), base[off : off + 23040].reshape(4, 6, 8, 10, 12)
    return [
        base[off : off + 40000].reshape(200, 200).T,
        base[off : off + 40000].reshape(200, 200)[::-1, 3:].T,
        base[off : off + 97 * 211].reshape(97, 211).T,
        base[off : off + 20000].reshape(2000, 10).T,
        cube.transpose(0, 2, 1),
        cube.transpose(2, 0, 1),
        cube.transpose(2, 1, 0),
        five.transpose(4, 0, 3, 2, 1)[:, ::2],
        five.transpose(0, 1, 2, 4, 3),
    ]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.key)
def test_rows(dtype: DType, gpu: VulkanDevice, cpu: Device) -> None:
    base, same = base_of(dtype), (dtype, dtype)
    for off in (0, 1, 2, 3, 5, 7):
        for x in rows(base, off):
            agree("copy", same, (x,), {}, gpu, cpu)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.key)
def test_rows_into_places(dtype: DType, gpu: VulkanDevice, cpu: Device) -> None:
    """The results begin at odd places too; the bytes between them are written by others."""
    base, same = base_of(dtype), (dtype, dtype)
    for off in (0, 1, 3):
        x = base[off : off + 40000].reshape(200, 200)[1:, off + 2 :]
        agree("roll", same, (x,), {"shifts": (5, 7), "axes": (0, 1)}, gpu, cpu)
        agree("concat", same, (x, x[:, :77], x), {"axis": 1}, gpu, cpu)
        for mode in ("constant", "reflect", "replicate"):
            agree("pad", same, (x,), {"pads": ((1, 2), (off, 90)), "mode": mode}, gpu, cpu)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.key)
def test_rows_become_columns(dtype: DType, gpu: VulkanDevice, cpu: Device) -> None:
    base, same = base_of(dtype), (dtype, dtype)
    for off in (0, 1, 2):
        for x in turned(base, off):
            agree("copy", same, (x,), {}, gpu, cpu)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.key)
def test_many_inputs_in_one_pass(dtype: DType, gpu: VulkanDevice, cpu: Device) -> None:
    """Thirty inputs from odd offsets, short, long and empty, on the first, a middle and the last axis."""
    base = base_of(dtype)
    impl = impl_of("concat", (dtype, dtype))
    for axis in (0, 1, 2):
        inputs = []
        for i in range(30):
            shape = [3, 5, 7]
            shape[axis] = (i * i) % 71
            inputs.append(base[i : i + int(np.prod(shape))].reshape(shape))
        agree("concat", (dtype, dtype), tuple(inputs), {"axis": axis}, gpu, cpu)
        rows_at_once = spirv("movement/concat_rows", "concat_rows", bytes=dtype.size).select(gpu.vk.caps)
        if not isinstance(rows_at_once, str):
            launch = Recording(gpu.vk)
            layouts = [Layout.of(x.shape) for x in inputs]
            whole = Layout.of(np.concatenate(inputs, axis).shape)
            buffers = [launch.filled(np.ascontiguousarray(x).reshape(-1).view(np.uint8)) for x in inputs]
            target = launch.filled(np.zeros(whole.elements * dtype.size, np.uint8))
            impl.kernel(buffers, [target], [*layouts, whole], {"axis": axis}, VulkanContext(launch, "concat"))
            assert launch.recorder._count == 1, "one dispatch for all inputs"


@pytest.mark.parametrize("index", [DType.I64, DType.I32, DType.U32], ids=lambda d: d.key)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.key)
def test_picked_rows(dtype: DType, index: DType, gpu: VulkanDevice, cpu: Device) -> None:
    base, rng = base_of(dtype), np.random.default_rng(8)
    for off, shape, axis in (
        (0, (40, 301), 0),
        (1, (3, 20, 64), 1),
        (3, (2, 7, 5, 131), 1),
        (0, (5, 9001), 0),
    ):
        x = base[off : off + int(np.prod(shape))].reshape(shape)
        picks = rng.integers(0, shape[axis], 37).astype(index.numpy)
        agree("index_select", (dtype, index, dtype), (x, picks[1:]), {"axis": axis}, gpu, cpu)


@pytest.mark.parametrize("index", [DType.I64, DType.I32, DType.U32], ids=lambda d: d.key)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.key)
def test_picked_elements(dtype: DType, index: DType, gpu: VulkanDevice, cpu: Device) -> None:
    """Indices and results that begin anywhere along long rows, along the first axis and the last."""
    base, dtypes = base_of(dtype), (dtype, index, dtype)
    indices = np.random.default_rng(7).integers(0, 50, 60000).astype(index.numpy)
    for off, inner in ((0, 1000), (1, 999), (3, 1023), (2, 514)):
        x = base[off : off + 50 * inner].reshape(50, inner)
        picks = indices[off : off + 50 * inner].reshape(50, inner)
        for axis in (0, 1):
            agree("gather", dtypes, (x, picks), {"axis": axis}, gpu, cpu)
