"""More than 2^31 elements for real, where memory allows: repeated ones on the device, untouched pages on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuelvk.base.dtypes import DType
from fuelvk.kernels._vulkan import VulkanContext
from fuelvk.kernels.types import BackendImpl
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.devices import Device, VulkanDevice
from tests.matrix.test_strided_primitives import entry_named, impl_on
from tests.support.harness import run_impl
from tests.support.launch import run_in_place

Array = np.ndarray[Any, Any]
COUNT = 2**32 + 100
F32, F16, U8, I64 = DType.F32, DType.F16, DType.U8, DType.I64


def on_device(
    gpu: VulkanDevice,
    name: str,
    dtypes: tuple[DType, ...],
    inputs: tuple[Array, ...],
    out: Array,
    params: Any,
) -> Array:
    shapes = (*(x.shape for x in inputs), out.shape)
    impl = impl_on(gpu.capabilities, name, dtypes, shapes, params)
    reason = impl.admits(shapes, params, gpu.capabilities)
    if reason is not None and "lacks" in reason:
        pytest.skip(reason)
    if name != "gather" and gpu.capabilities.addressing != "bda":
        pytest.skip("minutes on such drivers")
    assert reason is None
    return run_in_place(gpu.vk, impl, inputs, out, params)


def in_c(name: str, dtypes: tuple[DType, ...]) -> BackendImpl:
    rows = default_kernel_registry().impls_for(entry_named(name).id)
    return next(i for _, i in rows if i.name == "cpu.c" and i.dtypes == dtypes)


@pytest.mark.device
def test_picks_beyond(gpu: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of an axis of 2^32 and more places; every pick falls into one of them."""
    dispatches = []
    dispatch = VulkanContext.dispatch
    monkeypatch.setattr(VulkanContext, "dispatch", lambda *a, **k: (dispatches.append(1), dispatch(*a, **k)))
    x = np.broadcast_to(np.array([7], np.uint8), (COUNT,))
    picks = np.array([0, 2**31 - 1, 2**31, 2**32 - 1, 2**32, COUNT - 1, 5])
    got = on_device(gpu, "gather", (U8, I64, U8), (x, picks), np.zeros(7, np.uint8), {"axis": 0})
    assert got.tolist() == [7] * 7
    assert len(dispatches) > 4
    for bad in (COUNT, -1, 2**40):
        picks[3] = bad
        got = on_device(gpu, "gather", (U8, I64, U8), (x, picks), np.zeros(7, np.uint8), {"axis": 0})
        raised = np.frombuffer(bytes(gpu.vk.read(gpu.vk.error_buffer, 4)), np.uint32)[0]
        gpu.vk.write(gpu.vk.error_buffer, bytes(gpu.vk.error_buffer.nbytes))
        assert raised == 4
        assert got.tolist() == [7, 7, 7, 0x7F, 7, 7, 7]


@pytest.mark.slow
@pytest.mark.device
@pytest.mark.parametrize(("name", "want"), [("sum", 2.0**32), ("max", 1.0)])
def test_reduced_lengths_beyond(name: str, want: float, gpu: VulkanDevice) -> None:
    """The partial sums of ones are exact but for the last join: 2^32 + 100 rounds to 2^32."""
    x = np.broadcast_to(np.array([1], np.float32), (COUNT,))
    got = on_device(gpu, name, (F32, F32), (x,), np.zeros((), np.float32), {"axes": None, "keepdims": False})
    assert got == np.float32(want)


@pytest.mark.slow
@pytest.mark.device
def test_argmax_beyond(gpu: VulkanDevice) -> None:
    x = np.broadcast_to(np.array([1], np.float32), (COUNT,))
    got = on_device(
        gpu, "argmax", (F32, I64), (x,), np.zeros((), np.int64), {"axis": None, "keepdims": False}
    )
    assert got == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index_select", "gather"])
def test_picks_beyond_in_c(name: str, cpu: Device) -> None:
    op = entry_named(name)
    x = np.zeros(2**31 + 100, np.uint8)
    x[2**31 + 50], x[3] = 9, 4
    picks = np.array([3, 2**31 + 50, 2**31 + 49])
    impl = in_c(name, (U8, I64, U8))
    assert run_impl(op, "cpu", impl, [x, picks], {"axis": 0}, cpu)[0].tolist() == [4, 9, 0]


@pytest.mark.slow
def test_argmax_beyond_in_c(cpu: Device) -> None:
    op = entry_named("argmax")
    x = np.zeros(2**31 + 100, np.float16)
    x[2**31 + 50] = x[2**31 + 60] = 1
    impl = in_c("argmax", (F16, I64))
    assert run_impl(op, "cpu", impl, [x], {}, cpu)[0] == 2**31 + 50
