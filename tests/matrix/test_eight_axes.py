"""Views of rank eight, with strides that no two axes share, through every family of kernels that takes strides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuelvk.base.dtypes import DType
from fuelvk.runtime.devices import Device, VulkanDevice
from tests.matrix.test_strided_primitives import agree

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.device
SHAPE = (2, 3, 2, 3, 2, 2, 3, 2)
DTYPES = (DType.F32, DType.U8, DType.F16, DType.I64)


def scattered(dtype: DType, seed: int) -> Array:
    """An offset, gaps on some axes, others reversed or repeated, in another order than memory's: nothing collapses."""
    base = np.random.default_rng(seed).integers(1, 100, 70001).astype(dtype.numpy)[5:]
    whole = base[: 3 * 4 * 5 * 4 * 3 * 3 * 4 * 3].reshape(3, 4, 5, 4, 3, 3, 4, 3)
    x = whole[1:, 3:0:-1, ::3, :3, ::2, 1:, ::-1, 2:0:-1][:, :, :, :, :, :, :3]
    x = np.broadcast_to(x[:, :, :1], (*x.shape[:2], 2, *x.shape[3:])).transpose(4, 1, 2, 6, 0, 5, 3, 7)
    assert x.shape == SHAPE
    return x


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.key)
def test_eight_axes(dtype: DType, gpu: VulkanDevice, cpu: Device) -> None:
    x, y = scattered(dtype, 1), scattered(dtype, 2)
    row, mask = y[:1, :, :1], np.ascontiguousarray(scattered(DType.U8, 3) > 50)
    same = (dtype, dtype)
    agree("copy", same, (x,), {}, gpu, cpu)
    agree("add", (*same, dtype), (x, y), {}, gpu, cpu)
    agree("maximum", (*same, dtype), (row, x), {}, gpu, cpu)
    agree("less_equal", (*same, DType.BOOL), (x, y), {}, gpu, cpu)
    agree("abs", same, (x,), {}, gpu, cpu)
    agree("where", (DType.BOOL, *same, dtype), (mask.transpose(0, 3, 2, 1, 4, 5, 6, 7), x, y), {}, gpu, cpu)
    agree("masked_fill", (dtype, DType.BOOL, dtype), (x, mask[:, :, :, 2:1:-1]), {"value": 3}, gpu, cpu)
    agree("flip", same, (x,), {"axes": (0, 3, 6)}, gpu, cpu)
    agree("roll", same, (x,), {"shifts": (1, 2), "axes": (3, 7)}, gpu, cpu)
    agree("pad", same, (x,), {"pads": ((0, 1), (1, 0)) * 4, "mode": "replicate"}, gpu, cpu)
    agree("concat", same, (x, y, x[:, :, :, 1:]), {"axis": 3}, gpu, cpu)
    picks = np.ascontiguousarray(scattered(DType.I64, 4) % 3)[:, :, :, ::-1]
    agree("gather", (dtype, DType.I64, dtype), (x, picks), {"axis": 6}, gpu, cpu)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.F16], ids=lambda d: d.key)
def test_eight_axes_of_floats(dtype: DType, gpu: VulkanDevice, cpu: Device) -> None:
    x, y = scattered(dtype, 6), scattered(dtype, 7)
    same = (dtype, dtype)
    agree("rsqrt", same, (x,), {}, gpu, cpu)
    agree("clamp", same, (x,), {"min": 20, "max": 60.0}, gpu, cpu)
    agree("log", same, (x,), {}, gpu, cpu)
    agree("div", (*same, dtype), (x, y), {}, gpu, cpu)
    for axis in (0, 3, 7):
        agree("cumsum", same, (x,), {"axis": axis}, gpu, cpu)
        agree("argmax", (dtype, DType.I64), (x,), {"axis": axis}, gpu, cpu)
        for axes in ((axis,), (axis, 4)):
            agree("mean", same, (x,), {"axes": axes}, gpu, cpu)
        picks = np.ascontiguousarray(scattered(DType.I64, 8) % SHAPE[axis])[..., ::-1]
        kinds = (dtype, DType.I64, *same)
        agree("scatter_add", kinds, (x, picks, y), {"axis": axis}, gpu, cpu)
        line = np.arange(2 * SHAPE[axis])[::2] // 2
        agree("index_add", kinds, (x, line, y), {"axis": axis}, gpu, cpu)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.key)
def test_eight_axes_by_name(dtype: DType, gpu: VulkanDevice, cpu: Device) -> None:
    """Ops whose kernels take contiguous inputs: the plan copies the views."""
    import fuelvk as fv

    x = scattered(dtype, 9)
    calls: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
        ("tril", (x,), {"k": 1}),
        ("triu", (x,), {"k": -1}),
        ("index_select", (x, np.array([2, 0, 1, 1])), {"axis": 3}),
        ("write_slice", (x, x[:, :, :, 1:], np.array([1])), {"axis": 3, "wrap": True}),
        ("write_slice", (x, x[:, 1:], None), {"axis": 1, "start": 1}),
        ("cast", (x,), {"dtype": DType.F32}),
    )
    for name, inputs, params in calls:
        got, want = (fv.call(name, *inputs, device=d, **params) for d in (gpu, cpu))
        assert got.tobytes() == want.tobytes(), name


@pytest.mark.parametrize("name", ["sum", "max"])
def test_reductions_of_eight_axes(name: str, gpu: VulkanDevice, cpu: Device) -> None:
    import fuelvk as fv

    x = scattered(DType.F32, 5)
    for axes in ((7,), (0, 3), (1, 2, 6), None):
        results = [fv.call(name, x, axes=axes, device=d) for d in (gpu, cpu)]
        assert results[0].tobytes() == results[1].tobytes()
        assert np.array_equal(results[1], getattr(np, name)(x.astype(np.float64), axis=axes))
