"""What kernels and cost models may know of an open device."""

from __future__ import annotations

from dataclasses import dataclass

from fuelvk.vulkan.features import DeviceInfo


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What kernels and cost models may know of an open device."""

    backend: str
    name: str
    device_type: str
    features: frozenset[str]
    addressing: str
    subgroup_width: int
    max_invocations: int
    max_groups: tuple[int, int, int]
    max_buffer_range: int
    max_shared_memory: int
    unified_memory: bool
    fingerprint: str


def guaranteed_subgroup(info: DeviceInfo) -> int:
    """Returns the subgroup width kernels may be built for.

    Fixed by the device or one that can be required; else 0.
    """
    if "subgroup_basic" not in info.features:
        return 0
    fixed = info.min_subgroup == info.max_subgroup
    return info.subgroup_size if fixed or "size_control" in info.features else 0
