"""Casts on the device: every input of the 16-bit and 8-bit types, and many of the wider ones, against the C kernels."""

from __future__ import annotations

import numpy as np
import pytest

from fuelvk.base.dtypes import DType
from fuelvk.graph.primitives.cast import PAIRS
from fuelvk.runtime.devices import Device, VulkanDevice
from tests.matrix.test_strided_primitives import agree
from tests.unit.test_cpu_reference_casts import inputs_of

pytestmark = pytest.mark.device


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda d: d.key)
def test_every_input(source: DType, target: DType, gpu: VulkanDevice, cpu: Device) -> None:
    """Repeated until wide workgroups take them; then with a tail, and from an odd element on."""
    x = inputs_of(source)
    x = np.resize(x, max(x.size, 6000))
    for view in (x, x[: x.size - 5], x[1:4000]):
        with np.errstate(invalid="ignore"):  # a NaN of an extension type is no event
            agree("cast", (source, target), (view,), {"dtype": target}, gpu, cpu)
