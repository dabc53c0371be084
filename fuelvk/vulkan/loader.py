"""The Vulkan loader, found on first use; every native call's result turned into a typed error.

The raw cffi layer of the ``vulkan`` package is used, not its wrappers, which cost 2 to 18 microseconds a
call.
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import Any

from fuelvk.base import env
from fuelvk.base.errors import (
    DeviceLostError,
    DriverNotFoundError,
    FuelvkError,
    OutOfDeviceMemoryError,
    UnsupportedError,
    VulkanCallError,
)

VK_SUCCESS = 0
VK_INCOMPLETE = 5
VK_TIMEOUT = 2
WHOLE_SIZE = 2**64 - 1

#: Results of calls, by name, class and what to do next. The numbers are those of the Vulkan specification.
_RESULTS: dict[int, tuple[str, type[FuelvkError], str | None]] = {
    -1: ("VK_ERROR_OUT_OF_HOST_MEMORY", OutOfDeviceMemoryError, "free host memory"),
    -2: (
        "VK_ERROR_OUT_OF_DEVICE_MEMORY",
        OutOfDeviceMemoryError,
        "free tensors, or trim the device's memory",
    ),
    -3: ("VK_ERROR_INITIALIZATION_FAILED", UnsupportedError, "check the driver with `vulkaninfo`"),
    -4: ("VK_ERROR_DEVICE_LOST", DeviceLostError, "open a new device"),
    -5: ("VK_ERROR_MEMORY_MAP_FAILED", OutOfDeviceMemoryError, "free host address space"),
    -6: ("VK_ERROR_LAYER_NOT_PRESENT", UnsupportedError, "install the layer"),
    -7: ("VK_ERROR_EXTENSION_NOT_PRESENT", UnsupportedError, None),
    -8: ("VK_ERROR_FEATURE_NOT_PRESENT", UnsupportedError, None),
    -9: (
        "VK_ERROR_INCOMPATIBLE_DRIVER",
        DriverNotFoundError,
        "install a Vulkan driver (Debian: mesa-vulkan-drivers)",
    ),
    -10: (
        "VK_ERROR_TOO_MANY_OBJECTS",
        OutOfDeviceMemoryError,
        "close devices or drop buffers that are not needed",
    ),
    -12: ("VK_ERROR_FRAGMENTED_POOL", OutOfDeviceMemoryError, None),
    -13: ("VK_ERROR_UNKNOWN", VulkanCallError, None),
    -1000069000: ("VK_ERROR_OUT_OF_POOL_MEMORY", OutOfDeviceMemoryError, None),
    -1000257000: ("VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS", VulkanCallError, None),
}

_LOADER_HINT = "install the Vulkan loader and a driver (Debian: apt install libvulkan1 mesa-vulkan-drivers)"


class Api:
    """The three handles that all device code works with: cffi's ``ffi``, the library, the constants."""

    __slots__ = ("ffi", "lib", "null", "vk")

    def __init__(self, ffi: Any, lib: Any, vk: Any) -> None:
        self.ffi = ffi
        self.lib = lib
        self.vk = vk
        self.null = ffi.NULL

    def new(self, name: str, **fields: Any) -> Any:
        """Returns a new structure with its sType and ``fields`` set.

        What its pointers refer to must be kept alive.
        """
        return self.ffi.new(name + "*", {"sType": _structure_type(name), **fields})

    def strings(self, values: list[str]) -> tuple[Any, list[Any]]:
        """Returns a ``char*[]`` of the values (NULL when empty) and the cells that must outlive it."""
        cells = [self.ffi.new("char[]", value.encode()) for value in values]
        return (self.ffi.new("char*[]", cells) if cells else self.null), cells

    def text(self, field: Any) -> str:
        """Returns a fixed-size char array of a structure as text."""
        return str(self.ffi.string(field).decode(errors="replace"))

    def listed(self, call: str, ctype: str, *arguments: Any) -> Any:
        """Returns the array of a two-call enumeration ``vkX(*arguments, &count, array)``."""
        function = getattr(self.lib, call)
        count = self.ffi.new("uint32_t*")
        while True:
            check(function(*arguments, count, self.null) or 0, call)
            array = self.ffi.new(f"{ctype}[]", count[0])
            if check(function(*arguments, count, array) or 0, call) != VK_INCOMPLETE:
                return array[0 : count[0]]

    def function(self, loaded: Any, name: str, call: str = "vkGetDeviceProcAddr") -> Any:
        """Returns an extension's function for a device or instance, or None when the driver has none."""
        cell = self.ffi.new("char[]", name.encode())
        address = getattr(self.lib, call)(loaded, cell)
        return self.ffi.cast("PFN_" + name, address) if address != self.null else None


@functools.cache
def _structure_types() -> dict[str, int]:
    names = api().ffi.typeof("VkStructureType").relements
    return {name.removeprefix("VK_STRUCTURE_TYPE").replace("_", ""): value for name, value in names.items()}


def _structure_type(name: str) -> int:
    return _structure_types()[name[2:].upper()]


def check(result: int, call: str) -> int:
    """Returns a success code; raises the typed error of a failure, naming the call and the result."""
    if result < 0:
        raise failure(result, call)
    return result


def failure(result: int, call: str, **facts: Any) -> FuelvkError:
    """Returns the exception that stands for a failed call."""
    name, error, hint = _RESULTS.get(result, (f"VkResult {result}", VulkanCallError, None))
    facts.setdefault("hint", hint)
    return error(f"{call} failed with {name}", **facts)


@functools.cache
def api() -> Api:
    """Returns the Vulkan library, loading it on the first call.

    Raises DriverNotFoundError when there is none.
    """
    prepare_driver_environment()
    try:
        vk = importlib.import_module("vulkan._vulkan")
        ffi = importlib.import_module("vulkan._vulkancache").ffi
    except ImportError as error:
        raise DriverNotFoundError(
            "the Python package 'vulkan' is missing", seen=error, hint="pip install vulkan"
        ) from error
    except OSError as error:
        raise DriverNotFoundError("no Vulkan loader library", seen=error, hint=_LOADER_HINT) from error
    return Api(ffi, vk.lib, vk)


def prepare_driver_environment() -> None:
    """Sets what Mesa's drivers read once when they start, unless the user has set it already."""
    threads = env.get("FUELVK_LAVAPIPE_THREADS")
    if threads is not None:
        os.environ.setdefault("LP_NUM_THREADS", str(threads))
    os.environ.setdefault("MESA_SHADER_CACHE_DIR", str(env.cache_dir() / "mesa"))
