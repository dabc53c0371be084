"""Every implementation against the float64 oracle, within its own claim, on every sample of its op."""

from __future__ import annotations

import numpy as np
import pytest

from fuelvk.base.dtypes import DType
from fuelvk.runtime.devices import Device, VulkanDevice
from fuelvk.verify.compare import compare, same_bits
from tests.support.cases import Case, canonical_impl, cases, oracle
from tests.support.harness import RefusedError, run_impl

CASES = cases()
ON_CPU = [c for c in CASES if c.backend == "cpu"]
ON_VULKAN = [c for c in CASES if c.backend == "vulkan"]


def check(case: Case, device: Device, flushes: bool) -> None:
    op, sample = case.op, case.sample
    try:
        got = run_impl(op, case.backend, case.impl, sample.inputs, sample.params, device)
    except RefusedError as reason:
        pytest.skip(f"refused: {reason}")
    _, params = op.bind(sample.inputs, sample.params)
    for result, exact in zip(got, oracle(op, sample), strict=True):
        report = compare(
            result, exact, case.impl.precision, DType.of(result),
            inputs=sample.inputs, params=params, flushes=flushes,
        )  # fmt: skip
        assert report.ok, report


@pytest.mark.parametrize("case", ON_CPU, ids=[c.id for c in ON_CPU])
def test_cpu(case: Case, cpu: Device) -> None:
    check(case, cpu, False)


@pytest.mark.device
@pytest.mark.parametrize("case", ON_VULKAN, ids=[c.id for c in ON_VULKAN])
def test_vulkan(case: Case, gpu: VulkanDevice, flushes: bool) -> None:
    if flushes and holds_subnormals(case):
        pytest.skip("the claim excludes subnormal inputs on a device that flushes them")
    check(case, gpu, flushes)


@pytest.mark.device
@pytest.mark.parametrize("case", ON_VULKAN, ids=[c.id for c in ON_VULKAN])
def test_vulkan_gives_the_canonical_bits(case: Case, gpu: VulkanDevice, cpu: Device, flushes: bool) -> None:
    """A strict implementation gives the bytes of the C kernel."""
    if not case.impl.precision.canonical:
        pytest.skip("not a strict implementation")
    if flushes and holds_subnormals(case):
        pytest.skip("the claim excludes subnormal inputs on a device that flushes them")
    canonical = canonical_impl(case.op, case.impl)
    assert canonical is not None, "a strict kernel without a C kernel for its dtypes"
    sample = case.sample
    try:
        got = run_impl(case.op, case.backend, case.impl, sample.inputs, sample.params, gpu)
        want = run_impl(case.op, "cpu", canonical, sample.inputs, sample.params, cpu)
    except RefusedError as reason:
        pytest.skip(f"refused: {reason}")
    for a, b in zip(got, want, strict=True):
        assert (difference := same_bits(a, b, flushes=flushes)) is None, difference


def holds_subnormals(case: Case) -> bool:
    with np.errstate(invalid="ignore"):  # signalling NaN
        return any(
            x is not None
            and DType.of(x).is_float
            and bool(((x != 0) & (np.abs(x.astype(np.float64)) < np.float64(2.0**-126))).any())
            for x in case.sample.inputs
        )
