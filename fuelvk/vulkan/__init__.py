"""Device work on Vulkan 1.2 and newer: devices, memory, pipelines, recording, submission. Knows no op.

Nothing is loaded before ``enumerate_devices`` or ``open_device`` is called.
"""

from __future__ import annotations

from fuelvk.vulkan.buffers import Buffer
from fuelvk.vulkan.capabilities import Capabilities
from fuelvk.vulkan.commands import Recorder, Recording
from fuelvk.vulkan.device import Device, open_device
from fuelvk.vulkan.features import DeviceInfo, FloatControls, Heap, Limits
from fuelvk.vulkan.instance import DeviceList, enumerate_devices, match_device
from fuelvk.vulkan.memory import MemoryStatistics
from fuelvk.vulkan.pipelines import Pipeline

__all__ = [
    "Buffer",
    "Capabilities",
    "Device",
    "DeviceInfo",
    "DeviceList",
    "FloatControls",
    "Heap",
    "Limits",
    "MemoryStatistics",
    "Pipeline",
    "Recorder",
    "Recording",
    "enumerate_devices",
    "match_device",
    "open_device",
]
