"""Kernels that move whole words: every tail of a group and every start in a word, against the C kernels."""

from __future__ import annotations

import numpy as np
import pytest

from fuelvk.base.dtypes import FLOATS, INDICES, INTEGERS, DType
from fuelvk.kernels.ops import _choose
from fuelvk.runtime.devices import Device, VulkanDevice
from tests.matrix.test_strided_primitives import agree

pytestmark = pytest.mark.device
DTYPES = (DType.U8, DType.F16, DType.F32, DType.I64, DType.F64)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.key)
@pytest.mark.parametrize("tail", range(8))
def test_every_tail(tail: int, dtype: DType, gpu: VulkanDevice, cpu: Device) -> None:
    n = 40000 + tail
    rng = np.random.default_rng(tail)
    x, y = (rng.integers(1, 100, n + 8).astype(dtype.numpy) for _ in range(2))
    mask = rng.random(n + 8) < 0.4
    for start in (0, 8, 1):  # from a word on, from a later one, and from within one
        a, b, m = (v[start : start + n] for v in (x, y, mask))
        agree("where", (DType.BOOL, dtype, dtype, dtype), (m, a, b), {}, gpu, cpu)
        agree("masked_fill", (dtype, DType.BOOL, dtype), (a, m), {"value": 101}, gpu, cpu)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=lambda d: d.key)
@pytest.mark.parametrize("op", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_every_comparison(op: str, dtype: DType, gpu: VulkanDevice, cpu: Device) -> None:
    """Every tail, either operand or neither a single element, NaN, and starts on a word and within one."""
    n = 40000
    rng = np.random.default_rng(5)
    x, y = (rng.integers(-3, 3, n + 16).astype(dtype.numpy) for _ in range(2))  # wraps in unsigned types
    if dtype.is_float:
        x[::7], y[::5] = np.nan, np.nan
    for tail in range(8):
        a, b = x[8 : n + 8 + tail], y[: n + tail]
        agree(op, (dtype, dtype, DType.BOOL), (a, b), {}, gpu, cpu)
    for one in (9, 10, 11, 13):
        agree(op, (dtype, dtype, DType.BOOL), (x[:n], np.broadcast_to(y[one], n)), {}, gpu, cpu)
        agree(op, (dtype, dtype, DType.BOOL), (np.broadcast_to(x[one], n), y[8 : n + 8]), {}, gpu, cpu)
    agree(op, (dtype, dtype, DType.BOOL), (x[1 : n + 1], y[:n]), {}, gpu, cpu)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.key)
@pytest.mark.parametrize("op", ["triu", "tril"])
def test_triangles_by_rows(op: str, dtype: DType, gpu: VulkanDevice, cpu: Device) -> None:
    """Rows that begin anywhere in a word, longer than what is touched at once, diagonals in and beyond the corners."""
    rng = np.random.default_rng(7)
    for shape in ((2, 65, 129), (40, 701), (3, 2400)):
        x = rng.integers(1, 100, shape).astype(dtype.numpy)
        for k in (-shape[-2], -37, 0, 1, 64, shape[-1]):
            agree(op, (dtype, dtype), (x,), {"k": k}, gpu, cpu)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_arguments_by_teams(op: str, dtype: DType, gpu: VulkanDevice, cpu: Device) -> None:
    """Many equal values, no NaN, few and many; odd lengths, and more than a stretch that is touched."""
    rng = np.random.default_rng(8)
    for n in (64, 66, 1001, 4098):
        x = rng.integers(-20, 20, (40, n)).astype(dtype.numpy)
        for nans in (0, 0.001, 0.5):
            x[rng.random(x.shape) < nans] = np.nan
            agree(op, (dtype, DType.I64), (x,), {"axis": 1}, gpu, cpu)
            agree(op, (dtype, DType.I64), (x[:, : n & ~1],), {"axis": 1}, gpu, cpu)


@pytest.mark.parametrize("index", INDICES, ids=lambda d: d.key)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.key)
def test_gather_by_rows(dtype: DType, index: DType, gpu: VulkanDevice, cpu: Device) -> None:
    """Rows that begin anywhere in a word, either axis, repeated sources and transposed ones."""
    rng = np.random.default_rng(9)
    for shape in ((3, 41, 701), (60, 512)):
        x = rng.integers(1, 100, shape).astype(dtype.numpy)
        for axis in (-1, -2):
            picks = rng.integers(0, shape[axis], shape).astype(index.numpy)
            agree("gather", (dtype, index, dtype), (x, picks), {"axis": axis}, gpu, cpu)
            turned = np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
            agree("gather", (dtype, index, dtype), (turned, picks), {"axis": axis}, gpu, cpu)


def test_words_are_used_where_a_device_has_them(gpu: VulkanDevice) -> None:
    """The test above would pass without them."""
    caps = gpu.capabilities
    if caps.addressing != "bda" or "i64" not in caps.features:
        pytest.skip("words need device addresses and 64-bit integers")
    for dtype in DTYPES:
        assert not isinstance(_choose.choose_shader("where", dtype.size).select(caps), str)
