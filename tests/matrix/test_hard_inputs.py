"""F32 functions on the inputs whose results lie nearest to the middle between two floats, found by trying every input."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuelvk.base.dtypes import DType
from fuelvk.graph.registry import find_op
from fuelvk.graph.types import OpEntry
from fuelvk.kernels.claims import STRICT_CORRECTLY_ROUNDED
from fuelvk.kernels.types import BackendImpl
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.devices import Device, VulkanDevice
from fuelvk.verify.compare import compare, same_bits
from tests.support.harness import run_impl

Array = np.ndarray[Any, Any]
FILES = {
    p.stem.removeprefix("strict_hard_"): p
    for p in sorted((Path(__file__).parents[1] / "unit").glob("strict_hard_*.u32"))
}
WIDE = 40001  # enough for the workgroups of large arrays, and odd


def inputs(name: str) -> Array:
    return np.fromfile(FILES[name], "<u4").view(np.float32)


def canonical(op: OpEntry, backend: str) -> BackendImpl:
    rows = default_kernel_registry().impls_for(op.id)
    return next(i for b, i in rows if b == backend and i.dtypes[0] is DType.F32 and i.precision.canonical)


def test_every_function_that_one_input_decides_has_its_list() -> None:
    assert set(FILES) >= {"exp", "log", "sin", "cos", "tanh", "erf", "gelu", "gelu_erf", "rsqrt", "recip"}


@pytest.mark.parametrize("name", list(FILES))
def test_the_c_kernel(name: str, cpu: Device) -> None:
    op = find_op(name)
    assert op is not None
    x = inputs(name)
    (got,) = run_impl(op, "cpu", canonical(op, "cpu"), (x,), {}, cpu)
    exact = importlib.import_module(f"cpu_reference.numpy.{name}").reference(x)
    report = compare(got, exact, STRICT_CORRECTLY_ROUNDED, DType.F32, inputs=(x,))
    assert report.ok, report


@pytest.mark.device
@pytest.mark.parametrize("count", [None, WIDE], ids=["as_they_are", "repeated"])
@pytest.mark.parametrize("name", list(FILES))
def test_vulkan(name: str, count: int | None, gpu: VulkanDevice, cpu: Device, flushes: bool) -> None:
    op = find_op(name)
    assert op is not None
    x = inputs(name)
    if flushes:
        x = x[np.abs(x) >= np.float32(2.0**-126)]
    if count is not None:
        x = np.resize(x, count)
    (want,) = run_impl(op, "cpu", canonical(op, "cpu"), (x,), {}, cpu)
    (got,) = run_impl(op, "vulkan", canonical(op, "vulkan"), (x,), {}, gpu)
    assert (difference := same_bits(got, want, flushes=flushes)) is None, difference
