"""Pointwise and movement kernels on views as they lie in memory, and on arrays that fill wide workgroups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.base.dtypes import INTEGERS, DType
from fuelvk.base.errors import IndexOutOfRangeError
from fuelvk.graph.registry import find_op
from fuelvk.graph.types import OpEntry
from fuelvk.kernels.types import BackendImpl, Shapes
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.devices import Device, VulkanDevice
from fuelvk.verify.compare import same_bits
from fuelvk.vulkan import Capabilities
from tests.support.cases import canonical_impl
from tests.support.harness import run_impl
from tests.support.launch import run_in_place

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(20)
UNARY: tuple[tuple[str, dict[str, Any]], ...] = (
    ("rsqrt", {}), ("recip", {}), ("sign", {}), ("step", {}), ("erf", {}), ("affine", {"mul": 1.7, "add": -0.3}),
    ("clamp", {"min": -0.2, "max": 0.9}), ("powi", {"exp": -3}), ("flip", {"axes": (-1,)}),
)  # fmt: skip
DTYPES = (DType.F32, DType.F64, DType.F16, DType.BF16)


def entry_named(name: str) -> OpEntry:
    op = find_op(name)
    assert op is not None
    return op


def impl_of(name: str, dtypes: tuple[DType, ...]) -> BackendImpl:
    op = entry_named(name)
    rows = default_kernel_registry().impls_for(op.id)
    return next(i for b, i in rows if b == "vulkan" and i.dtypes == dtypes and i.precision.canonical)


def impl_on(
    caps: Capabilities, name: str, dtypes: tuple[DType, ...], shapes: Shapes, params: Mapping[str, Any]
) -> BackendImpl:
    """Returns the first canonical kernel that the device takes for a call, else the last there is."""
    rows = default_kernel_registry().impls_for(entry_named(name).id)
    found = [i for b, i in rows if b == "vulkan" and i.dtypes == dtypes and i.precision.canonical]
    return next((i for i in found if i.admits(shapes, params, caps) is None), found[-1])


def agree(
    name: str,
    dtypes: tuple[DType, ...],
    inputs: tuple[Array, ...],
    params: Mapping[str, Any],
    gpu: VulkanDevice,
    cpu: Device,
) -> None:
    """The kernel on views gives the bytes of the C kernel on contiguous copies."""
    op = entry_named(name)
    bound, converted = op.bind(inputs, params)
    shapes = tuple(x.shape for x in bound)
    out = op.shape_rule(shapes, converted)[0]
    impl = impl_on(gpu.capabilities, name, dtypes, (*shapes, out), converted)
    reason = impl.admits((*shapes, out), converted, gpu.capabilities)
    if reason is not None:
        pytest.skip(f"refused: {reason}")
    canonical = canonical_impl(op, impl)
    assert canonical is not None
    dense = [np.ascontiguousarray(x).reshape(x.shape) for x in inputs]
    want = run_impl(op, "cpu", canonical, dense, params, cpu)[0]
    got = run_in_place(gpu.vk, impl, inputs, np.empty(out, dtypes[-1].numpy), converted)
    assert (difference := same_bits(got, want)) is None, difference


def views(dtype: DType) -> dict[str, Array]:
    """Offsets, gaps, reversed and repeated axes, more axes than a kernel walks, and a large array."""
    base = RNG.uniform(0.1, 3, 80000).astype(dtype.numpy)
    return {
        "odd_offset": base[3:68],
        "gaps": base[1:1001:3],
        "reversed": base[4000:200:-1],
        "transposed": base[:3600].reshape(60, 60).T[3:, 1:],
        "repeated": np.broadcast_to(base[7:72], (33, 65)),
        "six_axes": base[5 : 5 + 729 * 8].reshape(3, 6, 3, 6, 3, 6)[:, ::2, :, 1::2, :, ::-2],
        "large": base[:70001],
        "large_odd": base[1:70002],
    }


@pytest.mark.device
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.key)
@pytest.mark.parametrize("view", list(views(DType.F32)))
@pytest.mark.parametrize(("name", "params"), UNARY, ids=[name for name, _ in UNARY])
def test_one_input(
    name: str, params: dict[str, Any], view: str, dtype: DType, gpu: VulkanDevice, cpu: Device
) -> None:
    x = views(dtype)[view]
    signed = x if name == "rsqrt" else x * np.asarray(-1, dtype.numpy) if view == "large" else x
    agree(name, (dtype, dtype), (signed,), params, gpu, cpu)


@pytest.mark.device
@pytest.mark.parametrize("dtype", [DType.U8, DType.F16, DType.F32, DType.F64], ids=lambda d: d.key)
@pytest.mark.parametrize("view", list(views(DType.F32)))
def test_masked_fill(view: str, dtype: DType, gpu: VulkanDevice, cpu: Device) -> None:
    x = views(dtype)[view]
    whole = RNG.integers(0, 2, (2 * x.size,)).astype(np.bool_)
    masks = (whole[: 2 * x.size : 2].reshape(x.shape), whole[x.size : 0 : -1].reshape(x.shape))
    for mask in (*masks, np.broadcast_to(whole[3 : 3 + x.shape[-1]], x.shape)):
        agree("masked_fill", (dtype, DType.BOOL, dtype), (x, mask), {"value": 7}, gpu, cpu)


@pytest.mark.device
@pytest.mark.parametrize("index", [DType.I64, DType.I32, DType.U32], ids=lambda d: d.key)
@pytest.mark.parametrize("dtype", [DType.U8, DType.F16, DType.F32, DType.F64], ids=lambda d: d.key)
@pytest.mark.parametrize("view", list(views(DType.F32)))
def test_gather(view: str, dtype: DType, index: DType, gpu: VulkanDevice, cpu: Device) -> None:
    x = views(dtype)[view]
    for axis in {0, x.ndim - 1, x.ndim // 2}:
        shape = tuple(2 * n if i == axis else n for i, n in enumerate(x.shape))
        picks = RNG.integers(0, x.shape[axis], shape).astype(index.numpy)
        reverse = tuple(slice(None, None, -1) for _ in shape)
        for indices in (
            picks,
            picks[reverse],
            picks[tuple(slice(None, n if i == axis else 1) for i, n in enumerate(shape))],
        ):
            agree("gather", (dtype, index, dtype), (x, indices), {"axis": axis}, gpu, cpu)


@pytest.mark.device
@pytest.mark.parametrize("name", ["triu", "tril"])
@pytest.mark.parametrize("dtype", [DType.U8, DType.F16, DType.F32, DType.F64], ids=lambda d: d.key)
def test_large_triangles(name: str, dtype: DType, gpu: VulkanDevice, cpu: Device) -> None:
    base = RNG.uniform(1, 3, 80000).astype(dtype.numpy)
    for shape, k in (((3, 129, 151), 3), ((257, 255), -100), ((1, 70001), 4097), ((70001, 1), -5)):
        x = base[1 : 1 + int(np.prod(shape))].reshape(shape)
        agree(name, (dtype, dtype), (x,), {"k": k}, gpu, cpu)


@pytest.mark.device
@pytest.mark.parametrize("index", [DType.I64, DType.U32], ids=lambda d: d.key)
@pytest.mark.parametrize("dtype", [DType.BF16, DType.F32, DType.F64], ids=lambda d: d.key)
@pytest.mark.parametrize("view", list(views(DType.F32)))
def test_scatter_and_index_add(view: str, dtype: DType, index: DType, gpu: VulkanDevice, cpu: Device) -> None:
    x, dtypes = views(dtype)[view], (dtype, index, dtype, dtype)
    for axis in {0, x.ndim - 1, x.ndim // 2}:
        shape = tuple(min(2 * n, 3000) if i == axis else n for i, n in enumerate(x.shape))
        base = RNG.uniform(-3, 3, tuple(n + 1 for n in shape)).astype(dtype.numpy)
        given = base[tuple(slice(None, 0, -1) for _ in shape)]
        picks = RNG.integers(0, x.shape[axis], shape).astype(index.numpy)
        less = picks[tuple(slice(None, max(n - 1, 1), 2) for n in shape)]
        for indices in (picks, picks[tuple(slice(None, None, -1) for _ in shape)], less):
            agree("scatter_add", dtypes, (x, indices, given), {"axis": axis}, gpu, cpu)
        line = RNG.integers(0, x.shape[axis], 2 * shape[axis]).astype(index.numpy)[::2]
        agree("index_add", dtypes, (x, line, given), {"axis": axis}, gpu, cpu)


@pytest.mark.device
@pytest.mark.parametrize("name", ["scatter_add", "index_add"])
def test_an_update_out_of_range_disturbs_nothing_else(name: str, gpu: VulkanDevice) -> None:
    """On the device that update is left out, every other lands, and reading the result raises."""
    x, updates = np.zeros(50, np.float32), np.ones(6, np.float32)
    picks = np.array([3, 50, 3, -1, 2**40, 49])
    result = getattr(fv.ops, name)(*(fv.asarray(a, device=gpu) for a in (x, picks, updates)), axis=0)
    with pytest.raises(IndexOutOfRangeError, match=name):
        result.numpy()
    impl = impl_of(name, (DType.F32, DType.I64, DType.F32, DType.F32))
    got = run_in_place(gpu.vk, impl, (x, picks, updates), np.empty_like(x), {"axis": 0})
    gpu.vk.write(gpu.vk.error_buffer, bytes(gpu.vk.error_buffer.nbytes))
    assert got[3] == 2
    assert got[49] == 1
    assert got.sum() == 3


@pytest.mark.device
def test_duplicates_are_added_in_index_order(gpu: VulkanDevice) -> None:
    """A sum that any other order rounds differently, in many columns and in one that several invocations share."""
    updates = np.array([2.0**24, 1.0, -(2.0**24), 3.0, 2.0**-30], np.float32)
    want = np.float32(0)
    for value in updates:
        want = np.float32(want + value)
    assert want != np.float32(updates.astype(np.float64).sum())
    picks = np.full(5, 1)
    for columns in (1, 70):
        given = np.repeat(updates[:, None], columns, axis=1)
        got = fv.call("index_add", np.zeros((3, columns), np.float32), picks, given, axis=0, device=gpu)
        assert (got[1] == want).all()
        assert not got[::2].any()


@pytest.mark.device
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.key)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "maximum", "minimum", "neg", "abs", "sign"])
def test_many_integers(op: str, dtype: DType, gpu: VulkanDevice, cpu: Device) -> None:
    """Enough of them for wide workgroups, wrapping: from even and odd places, even and odd counts, one for all, spaced."""
    ends = np.iinfo(dtype.numpy)
    base = np.random.default_rng(12).integers(ends.min, ends.max, 70000, dtype.numpy, endpoint=True)
    base[5:2000:7], base[6:2000:7] = ends.min, ends.max
    one = np.broadcast_to(base[6:7], 5001)
    pairs = (
        (base[:5000], base[20000:25000]),
        (base[2:32771], base[32774:65543]),
        (base[1:5002], base[7000:12001]),
        (base[4:5005], one),
        (one, base[3:5004]),
        (one, one),
        (base[:9000:3], base[9000:0:-3]),
    )
    for left, right in pairs:
        if op in ("neg", "abs", "sign"):
            agree(op, (dtype, dtype), (left,), {}, gpu, cpu)
        else:
            agree(op, (dtype, dtype, dtype), (left, right), {}, gpu, cpu)
