"""Reductions over views, over more elements than a block, and beside others: always the C kernel's bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuelvk.base.dtypes import DType
from fuelvk.graph.registry import find_op
from fuelvk.kernels.ops.reduce import BLOCK
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.devices import Device, VulkanDevice
from fuelvk.verify.compare import same_bits
from tests.support.cases import canonical_impl
from tests.support.harness import RefusedError, run_impl
from tests.support.launch import run_in_place

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.device
RNG = np.random.default_rng(77)
SUMS = (
    ("sum", DType.F32), ("sum", DType.F64), ("sum", DType.F16), ("sum", DType.I64), ("mean", DType.BF16),
    ("prod", DType.F32), ("prod", DType.I32), ("max", DType.F16), ("min", DType.F64),
)  # fmt: skip


def numbers(op: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    if op == "prod" and dtype.is_float:
        return np.exp2(RNG.uniform(-0.01, 0.01, shape)).astype(dtype.numpy)
    return (RNG.standard_normal(shape) * 50).astype(dtype.numpy)


def agree(name: str, x: Array, params: dict[str, Any], gpu: VulkanDevice, cpu: Device) -> Array:
    """Returns the result of the kernel on a view as it lies in memory, which is that of the C kernel."""
    op = find_op(name)
    assert op is not None
    dtype = DType.of(x)
    dtypes = next(row for row in op.dtypes if row[0] is dtype)
    impl = default_kernel_registry().lookup_by_dtypes(op.id, "vulkan", dtypes)
    assert impl is not None
    canonical = canonical_impl(op, impl)
    assert canonical is not None
    (x,), converted = op.bind((x,), params)
    out = op.shape_rule((x.shape,), converted)[0]
    reason = impl.admits((x.shape, out), converted, gpu.capabilities)
    if reason is not None:
        pytest.skip(f"refused: {reason}")
    want = run_impl(op, "cpu", canonical, (np.ascontiguousarray(x).reshape(x.shape),), params, cpu)[0]
    got = run_in_place(gpu.vk, impl, (x,), np.empty(out, dtypes[-1].numpy), converted)
    assert (difference := same_bits(got, want)) is None, difference
    return got


VIEWS = ("transposed", "reversed", "gaps", "repeated", "odd_offset", "six_axes", "eight_axes")


def view_of(kind: str, op: str, dtype: DType) -> Array:
    base = numbers(op, dtype, (40000,))
    match kind:
        case "transposed":
            return base[: 90 * 70].reshape(90, 70).T[1:, 3:]
        case "reversed":
            return base[1 : 1 + 66 * 130].reshape(66, 130)[::-1, ::-1]
        case "gaps":
            return base[: 66 * 130].reshape(66, 130)[::3, 1::2]
        case "repeated":
            return np.broadcast_to(base[7:72], (3, 33, 65))
        case "odd_offset":
            return base[3 : 3 + 70 * 130].reshape(70, 130)
        case "six_axes":
            return base[5 : 5 + 729 * 8].reshape(3, 6, 3, 6, 3, 6)[:, ::2, :, 1::2, :, ::-2]
        case _:
            return (
                base[: 2 * 3 * 2 * 3 * 2 * 2 * 3 * 5].reshape(2, 3, 2, 3, 2, 2, 3, 5)[:, ::-1].swapaxes(2, 7)
            )


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize(("op", "dtype"), SUMS, ids=lambda v: v if isinstance(v, str) else v.key)
def test_views(op: str, dtype: DType, kind: str, gpu: VulkanDevice, cpu: Device) -> None:
    x = view_of(kind, op, dtype)
    last = x.ndim - 1
    for axes in {None, (0,), (last,), (0, last), tuple(range(1, x.ndim)), tuple(range(last)), (last // 2,)}:
        agree(op, x, {"axes": axes}, gpu, cpu)


LONG = (
    ((2, BLOCK), 1), ((2, BLOCK + 1), 1), ((3, 3 * BLOCK - 1), 1), ((70 * BLOCK + 77,), 0),
    ((BLOCK + 1, 5), 0), ((2, 3 * BLOCK + 5, 6), 1), ((66 * BLOCK + 3, 2), 0), ((3, 40000), 0), ((2, 5000, 7), 1),
)  # fmt: skip


@pytest.mark.parametrize(("shape", "axis"), LONG, ids=lambda v: str(v))
@pytest.mark.parametrize(("op", "dtype"), SUMS, ids=lambda v: v if isinstance(v, str) else v.key)
def test_more_than_a_block(
    op: str, dtype: DType, shape: tuple[int, ...], axis: int, gpu: VulkanDevice, cpu: Device
) -> None:
    if np.prod(shape) > 2**20 and dtype not in (DType.F32, DType.F16):
        pytest.skip("one type of each size is enough of these")
    agree(op, numbers(op, dtype, shape), {"axes": (axis,)}, gpu, cpu)


@pytest.mark.parametrize("op", ["softmax_last_dim", "rms_norm_last_dim", "layer_norm_last_dim"])
@pytest.mark.parametrize("dtype", [DType.F32, DType.F16], ids=lambda d: d.key)
@pytest.mark.parametrize("n", [BLOCK, BLOCK + 1, 3 * BLOCK - 63, 65 * BLOCK + 2])
def test_long_rows(op: str, dtype: DType, n: int, gpu: VulkanDevice, cpu: Device, flushes: bool) -> None:
    entry = find_op(op)
    assert entry is not None
    x = numbers(op, dtype, (2, n))
    width = len(entry.args) + 1
    impl = default_kernel_registry().lookup_by_dtypes(entry.id, "vulkan", (dtype,) * width)
    assert impl is not None
    canonical = canonical_impl(entry, impl)
    assert canonical is not None
    try:
        got = run_impl(entry, "vulkan", impl, (x,), {}, gpu)[0]
    except RefusedError as reason:
        pytest.skip(f"refused: {reason}")
    want = run_impl(entry, "cpu", canonical, (x,), {}, cpu)[0]
    assert (difference := same_bits(got, want, flushes=flushes)) is None, difference


@pytest.mark.parametrize("op", ["sum", "mean"])
def test_what_adds_nothing_changes_nothing(op: str, gpu: VulkanDevice, cpu: Device) -> None:
    x = numbers(op, DType.F32, (3, 20000))
    alone = agree("sum", x, {"axes": (1,)}, gpu, cpu)
    for more in (1, 44, BLOCK, 50001):
        longer = np.concatenate([x, np.zeros((3, more), np.float32)], axis=1)
        assert np.array_equal(agree("sum", longer, {"axes": (1,)}, gpu, cpu), alone)
        assert np.array_equal(agree("sum", np.ascontiguousarray(longer.T), {"axes": (0,)}, gpu, cpu), alone)
    for row in range(3):
        assert np.array_equal(
            agree(op, x[row : row + 1], {"axes": (1,)}, gpu, cpu),
            agree(op, x, {"axes": (1,)}, gpu, cpu)[row : row + 1],
        )


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.BF16], ids=lambda d: d.key)
@pytest.mark.parametrize("op", ["argmax", "argmin", "cumsum"])
def test_views_along_an_axis(op: str, dtype: DType, kind: str, gpu: VulkanDevice, cpu: Device) -> None:
    x = view_of(kind, op, dtype)
    axes: set[int | None] = {0, x.ndim - 1, x.ndim // 2}
    for axis in axes if op == "cumsum" else axes | {None}:
        agree(op, x, {"axis": axis}, gpu, cpu)


@pytest.mark.parametrize(
    "shape", [(70 * BLOCK + 77,), (2, BLOCK + 1), (BLOCK + 1, 3), (40, 3000), (100, 1300)], ids=str
)
@pytest.mark.parametrize("op", ["argmax", "argmin", "cumsum"])
def test_long_axes(op: str, shape: tuple[int, ...], gpu: VulkanDevice, cpu: Device) -> None:
    x = np.round(numbers(op, DType.F32, shape) / 20)
    for axis in range(len(shape)):
        agree(op, x, {"axis": axis}, gpu, cpu)


def test_a_running_sum_does_not_see_what_follows(gpu: VulkanDevice, cpu: Device) -> None:
    x = numbers("cumsum", DType.F32, (9000,))
    whole = agree("cumsum", x, {"axis": 0}, gpu, cpu)
    for n in (1, 64, 65, 4097, 8999):
        assert np.array_equal(agree("cumsum", x[:n], {"axis": 0}, gpu, cpu), whole[:n])
