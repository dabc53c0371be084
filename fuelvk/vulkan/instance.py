"""The Vulkan instance, one per process and validation mode; enumeration and choice of devices."""

from __future__ import annotations

import fnmatch
import os
import threading
from dataclasses import dataclass
from typing import Any

from fuelvk.base import env
from fuelvk.base.errors import FuelvkError, ParameterError, UnknownNameError, closest
from fuelvk.vulkan import debug
from fuelvk.vulkan.debug import Debug
from fuelvk.vulkan.features import DeviceInfo, describe
from fuelvk.vulkan.loader import Api, api, check, prepare_driver_environment

_API_VERSION = 1 << 22 | 3 << 12
_PREFERENCE = {"discrete": 0, "integrated": 1, "virtual": 2, "other": 3, "cpu": 4}
_PORTABILITY = "VK_KHR_portability_enumeration"


@dataclass(frozen=True, slots=True)
class DeviceList:
    """The devices that can be used, and a sentence about each thing that stands in the way of others."""

    devices: tuple[DeviceInfo, ...]
    problems: tuple[str, ...]


class Instance:
    """A VkInstance with its physical devices. ``mode`` is "" (no validation), "core" or "sync"."""

    __slots__ = ("api", "debug", "handle", "mode", "physical")

    def __init__(self, mode: str) -> None:
        prepare_driver_environment()
        self.api: Api = api()
        self.mode = mode
        self.debug = Debug(raising=bool(mode))
        self.handle = self._create()
        self.physical: list[Any] = list(
            self.api.listed("vkEnumeratePhysicalDevices", "VkPhysicalDevice", self.handle)
        )

    def _create(self) -> Any:
        a = self.api
        available = {
            a.text(e.extensionName)
            for e in a.listed("vkEnumerateInstanceExtensionProperties", "VkExtensionProperties", a.null)
        }
        if self.mode:
            debug.require_layer(a)
        extensions = [name for name in (debug.DEBUG_UTILS, _PORTABILITY) if name in available]
        messenger = self.debug.create_info(a) if debug.DEBUG_UTILS in extensions else a.null
        chain, kept = debug.validation_chain(a, self.mode, messenger) if self.mode else (messenger, [])
        layer_names, layer_cells = a.strings([debug.LAYER] if self.mode else [])
        extension_names, extension_cells = a.strings(extensions)
        name = a.ffi.new("char[]", b"fuelvk")
        application = a.new(
            "VkApplicationInfo", pApplicationName=name, pEngineName=name, apiVersion=_API_VERSION
        )
        info = a.new(
            "VkInstanceCreateInfo",
            pNext=chain,
            flags=1 if _PORTABILITY in extensions else 0,
            pApplicationInfo=application,
            enabledLayerCount=len(layer_cells),
            ppEnabledLayerNames=layer_names,
            enabledExtensionCount=len(extension_cells),
            ppEnabledExtensionNames=extension_names,
        )
        cell = a.ffi.new("VkInstance*")
        try:
            check(a.lib.vkCreateInstance(info, a.null, cell), "vkCreateInstance")
        except FuelvkError as error:
            for message in self.debug.messages:
                error.add_note(f"loader: {message.text}")
            raise
        del kept
        if self.mode:
            self.debug.attach(a, cell[0], messenger)
        return cell[0]

    def describe(self) -> DeviceList:
        """Returns the usable devices of this instance and why the others are not."""
        disabled = frozenset(part.strip() for part in env.get("FUELVK_DISABLE").split(",") if part.strip())
        devices: list[DeviceInfo] = []
        problems: list[str] = []
        for index, handle in enumerate(self.physical):
            info, reason = describe(self.api, handle, index, disabled)
            if info is None:
                problems.append(reason)
            else:
                devices.append(info)
        problems += [
            f"loader: {m.text}" for m in self.debug.messages if m.severity == "error" and not self.mode
        ]
        return DeviceList(tuple(devices), tuple(problems))


class _Instances:
    """The instances of this process. A forked child starts with none: its parent's belong to the parent."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.lock = threading.Lock()
        self.made: dict[str, Instance] = {}

    def get(self, mode: str) -> Instance:
        with self.lock:
            found = self.made.get(mode)
            if found is None:
                found = self.made[mode] = Instance(mode)
            return found


_instances = _Instances()


def validation_mode(validation: bool | None = None) -> str:
    """Returns "", "core" or "sync" for an argument (None: FUELVK_VALIDATION)."""
    word: str = env.get("FUELVK_VALIDATION")
    if validation is None:
        return {"0": "", "1": "sync"}.get(word, word)
    return ("core" if word == "core" else "sync") if validation else ""


def instance(mode: str = "") -> Instance:
    """Returns this process's instance for a validation mode; a forked child gets one of its own."""
    return _instances.get(mode)


def enumerate_devices() -> DeviceList:
    """Returns every usable Vulkan device.

    Without loader or driver the list is empty and says why. Raises ParameterError only, for an environment
    variable with a value it does not take.
    """
    try:
        found = instance(validation_mode()).describe()
    except ParameterError:
        raise
    except FuelvkError as error:
        return DeviceList((), (str(error), *getattr(error, "__notes__", ())))
    if not found.devices and not found.problems:
        return DeviceList(
            (), ("the Vulkan loader found no device; install a driver (Debian: mesa-vulkan-drivers)",)
        )
    return found


def match_device(devices: tuple[DeviceInfo, ...], spec: str | int | None = None) -> DeviceInfo:
    """Returns the device that ``spec`` names.

    An index (``"vulkan:0"``, ``"0"``, ``0``), a type (``"cpu"``, ``"discrete"``, ``"integrated"``,
    ``"virtual"``), a case-insensitive pattern or part of name, driver name and driver info. The best of
    those that fit is taken, with None the best of all. Raises UnknownNameError when nothing matches.
    """
    ranked = sorted(devices, key=_rank)
    word = "" if spec is None else str(spec).strip().lower()
    bare = word.removeprefix("vulkan:") if word != "vulkan" else ""
    if bare.isdigit():
        chosen = [d for d in ranked if d.index == int(bare)]
    elif not bare:
        chosen = ranked
    elif bare in _PREFERENCE:
        chosen = [d for d in ranked if d.type == bare]
    else:
        chosen = [d for d in ranked if _matches(bare, f"{d.name} {d.driver_name} {d.driver_info}".lower())]
    if chosen:
        return chosen[0]
    names = {f"vulkan:{d.index}": d.name for d in devices}
    raise UnknownNameError(
        "no Vulkan device of that name",
        asked=spec,
        allowed=", ".join(f"{key} ({name})" for key, name in names.items()) or "no Vulkan device is present",
        hint=closest(word, [*names, *(d.name.lower() for d in devices)]) or "run `fuelvk devices`",
    )


def _rank(device: DeviceInfo) -> tuple[int, int, tuple[int, ...], int]:
    """Orders devices from best to worst: by type, then by what they offer and how new their driver's API is."""
    return (
        _PREFERENCE.get(device.type, 3),
        -len(device.features),
        tuple(-part for part in device.api_version),
        device.index,
    )


def _matches(pattern: str, text: str) -> bool:
    return pattern in text or fnmatch.fnmatch(text, pattern) or fnmatch.fnmatch(text, f"*{pattern}*")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_instances.forget)
