"""F32 functions on the inputs whose results lie nearest to the middle between two floats, found by trying every input.

``tests.support.hard_inputs`` makes the lists. The C kernel is held to mpmath, every driver to the C kernel's bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cpu_reference.truth import FUNCTIONS, exact
from fuelvk.base.dtypes import DType
from fuelvk.graph.registry import find_op
from fuelvk.graph.types import OpEntry
from fuelvk.kernels.types import BackendImpl
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.devices import Device, VulkanDevice
from fuelvk.verify.compare import same_bits
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
    of_integers = {"sqrt", "sqr"}  # decided by an exact remainder, by one product
    assert set(FILES) == set(FUNCTIONS) - of_integers


@pytest.mark.parametrize("name", list(FILES))
def test_the_c_kernel(name: str, cpu: Device) -> None:
    op = find_op(name)
    assert op is not None
    x = inputs(name)
    (got,) = run_impl(op, "cpu", canonical(op, "cpu"), (x,), {}, cpu)
    pytest.importorskip("mpmath", reason="needs mpmath for exact values")
    distances = []
    for bits, result in zip(x.view(np.uint32).tolist(), got.view(np.uint32).tolist(), strict=True):
        right, value = exact.correctly_rounded(name, bits)
        assert result == right, f"{name} of {bits:#010x} is {result:#010x}, nearest is {right:#010x}"
        distances.append(0.5 - exact.error_in_ulps(right, value))
    assert np.median(distances) < 2.0**-14, "these inputs are not hard"


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
