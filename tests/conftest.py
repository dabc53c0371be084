"""Fixtures: the devices of this configuration, and validation messages as failures."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings

import fuelvk as fv
from fuelvk.base.errors import DriverNotFoundError
from fuelvk.runtime.devices import CpuDevice, Device, VulkanDevice, opened

# Kernels change between two verifications; what a ledger makes of that is tested apart (test_trust.py).
os.environ.setdefault("FUELVK_TRUST", "claims")

# The same examples on every run, and no verdict by the clock: machines are slow at times.
settings.register_profile("fuelvk", deadline=None, derandomize=True, database=None)
settings.load_profile("fuelvk")


@pytest.fixture(scope="session")
def cpu() -> Device:
    found = fv.device("cpu")
    assert isinstance(found, CpuDevice)
    return found


@pytest.fixture(scope="session")
def gpu() -> VulkanDevice:
    """The Vulkan device of this configuration; without one the test is skipped, naming what is missing."""
    try:
        found = fv.device("vulkan:0")
    except DriverNotFoundError as error:
        pytest.skip(f"needs a Vulkan device: {error}")
    assert isinstance(found, VulkanDevice)
    return found


@pytest.fixture(scope="session")
def flushes(gpu: VulkanDevice) -> bool:
    """Whether this device flushes subnormals, measured."""
    return flushes_subnormals(gpu)


def flushes_subnormals(device: Device) -> bool:
    tiny = np.array([2.0**-126], np.float32)
    return bool(fv.call("mul", tiny, np.array([0.5], np.float32), device=device)[0] == 0)


@pytest.fixture(autouse=True, scope="module")
def memory_goes_back() -> Iterator[None]:
    """After each module the devices give back what no buffer uses: thousands of shapes in one process add up."""
    yield
    for device in opened():
        if isinstance(device, VulkanDevice) and device.usable:
            device.vk.memory.trim()


@pytest.fixture(autouse=True)
def no_validation_messages(request: pytest.FixtureRequest) -> Iterator[None]:
    """Under FUELVK_VALIDATION a message of the layers fails the test that caused it."""
    yield
    for device in opened():
        if isinstance(device, VulkanDevice) and device.vk.debug.raising:
            device.vk.idle()
            device.vk.debug.raise_pending()
