"""Devices opened for one test module, in both addressing modes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fuelvk.vulkan import Device, DeviceInfo, enumerate_devices, match_device, open_device


@pytest.fixture(scope="session")
def info() -> DeviceInfo:
    """The best device of this configuration; without one the test is skipped, naming what is missing."""
    found = enumerate_devices()
    if not found.devices:
        pytest.skip(f"needs a Vulkan device: {'; '.join(found.problems)}")
    return match_device(found.devices)


@pytest.fixture(scope="module", params=["bda", "ssbo"])
def device(request: pytest.FixtureRequest, info: DeviceInfo) -> Iterator[Device]:
    """A device of its own for each module and addressing mode."""
    if request.param == "bda" and "bda" not in info.features:
        pytest.skip("needs buffer device addresses")
    with open_device(info, addressing=request.param) as opened:
        yield opened
        opened.idle()
