"""What kernels and cost models may know of an open device."""

from __future__ import annotations

import re
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
    loop_iterations: int = 0  # of one invocation, all its loops together; 0: no limit


_LLVMPIPE = 13  # VkDriverId
_CUT_LOOPS = 65535
_UNCUT_SINCE = 25


def loop_limit(info: DeviceInfo) -> int:
    """Returns after how many iterations a device ends an invocation's loops, 0 where it does not.

    Mesa's CPU driver counts the iterations of all loops of an invocation together and leaves them after 65,535,
    results unwritten: seen in 22.3, no longer in 25.0. Versions between are taken to do so.
    """
    if info.driver_id != _LLVMPIPE:
        return 0
    version = re.search(r"Mesa (\d+)", info.driver_info)
    return 0 if version and int(version[1]) >= _UNCUT_SINCE else _CUT_LOOPS


def guaranteed_subgroup(info: DeviceInfo) -> int:
    """Returns the subgroup width kernels may be built for.

    Fixed by the device or one that can be required; else 0.
    """
    if "subgroup_basic" not in info.features:
        return 0
    fixed = info.min_subgroup == info.max_subgroup
    return info.subgroup_size if fixed or "size_control" in info.features else 0
