"""The devices a program can name: the CPU reference and every Vulkan device, opened on first use."""

from __future__ import annotations

import abc
import os
import platform
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuelvk.base import env
from fuelvk.base.dtypes import DType
from fuelvk.base.errors import DriverNotFoundError, UnknownNameError, closest
from fuelvk.base.host import instruction_set
from fuelvk.evidence import Place
from fuelvk.kernels.types import BackendId, BackendImpl, FusedKernelRegistry
from fuelvk.optimizer.lower import Target
from fuelvk.optimizer.trust import evidence_for
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.probe import Probe, announce, verdict
from fuelvk.runtime.storage import Array, Storage
from fuelvk.vulkan import DeviceInfo, enumerate_devices, match_device


@dataclass(frozen=True, slots=True)
class CpuCapabilities:
    """What the CPU backend offers to ``admits`` and cost functions."""

    backend: str = "cpu"
    threads: int = os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """One row of ``fv.devices()``."""

    spec: str
    name: str
    type: str
    driver: str
    features: tuple[str, ...]
    memory_bytes: int | None


class DeviceRecords(list[DeviceRecord]):
    """The rows, with what was found wrong on the way in ``problems``."""

    def __init__(self, rows: Sequence[DeviceRecord], problems: Sequence[str]) -> None:
        super().__init__(rows)
        self.problems = tuple(problems)


class Device(abc.ABC):
    """A device that tensors live on and plans run on. ``spec`` is its name in this process ("vulkan:0", "cpu")."""

    def __init__(self, spec: str, backend: BackendId, name: str, capabilities: Any) -> None:
        self.spec = spec
        self.backend = backend
        self.name = name
        self.capabilities = capabilities

    def __repr__(self) -> str:
        return f"<fuelvk device {self.spec}: {self.name}>"

    @property
    def usable(self) -> bool:
        """False once a device was lost, closed, or left behind by a fork."""
        return True

    def place(self, backend: str) -> Place:
        """Returns the device and driver that kernels of ``backend`` run on here, as ledgers name them."""
        return Place("cpu", "CPU reference", f"{platform.machine()} {sys.platform}", instruction_set())

    @abc.abstractmethod
    def target(self, only: BackendId | None = None, kernels: FusedKernelRegistry | None = None) -> Target:
        """Returns what plans for this device are routed over.

        ``only`` leaves one backend, ``kernels`` stand in for fuelvk's.
        """

    @abc.abstractmethod
    def upload(self, array: Array) -> Storage:
        """Returns a copy of an array on the device."""

    @abc.abstractmethod
    def download(self, buffer: Any, into: Array) -> None:
        """Waits for the device and copies a buffer's elements into a contiguous array."""

    @abc.abstractmethod
    def wait_for(self, buffer: Any) -> None:
        """Returns when the device is done with ``buffer``."""


class CpuDevice(Device):
    """The C and NumPy reference kernels on the host's own memory."""

    def __init__(self) -> None:
        super().__init__("cpu", BackendId.CPU, "CPU reference", CpuCapabilities())

    def target(self, only: BackendId | None = None, kernels: FusedKernelRegistry | None = None) -> Target:
        chosen = kernels if kernels is not None else default_kernel_registry()
        return Target(chosen, ("cpu",), {"cpu": self.capabilities}, evidence=evidence_for(self.place, chosen))

    def upload(self, array: Array) -> Storage:
        dtype = DType.of(array)
        return Storage(
            self, array.shape, dtype, array=np.array(array, dtype=dtype.numpy, order="C", copy=True)
        )

    def download(self, buffer: Any, into: Array) -> None:
        into[...] = buffer

    def wait_for(self, buffer: Any) -> None:
        """The host's work is done when its call returns."""


class VulkanDevice(Device):
    """A Vulkan device with the CPU kernels behind it for what it has no kernel for."""

    def __init__(self, spec: str, info: DeviceInfo) -> None:
        from fuelvk.vulkan import open_device

        self.info = info
        self.vk = open_device(info)
        super().__init__(
            spec, BackendId.VULKAN, f"{info.name} ({info.driver_name} {info.driver_info})", self.vk.caps
        )
        self._lock = threading.Lock()
        #: Results of kernels' preparations by source and kind. The programs that use one keep it and its source alive,
        #: so that an entry never outlives what it was made from.
        self.prepared: weakref.WeakValueDictionary[tuple[Any, ...], Any] = weakref.WeakValueDictionary()
        self._arena: Any = None
        self._probe: Probe | None = None
        self._probing = threading.Lock()
        self.programs: weakref.WeakSet[Any] = weakref.WeakSet()
        self.vk.memory.add_trim_hook(_trim_hook(weakref.ref(self)))

    @property
    def usable(self) -> bool:
        return self.vk.usable

    def place(self, backend: str) -> Place:
        if backend != BackendId.VULKAN:
            return super().place(backend)
        info = self.info
        build = info.driver_info or f"{info.driver_version >> 22}.{info.driver_version >> 12 & 0x3FF}"
        host = instruction_set() if info.type == "cpu" else ""
        return Place("vulkan", info.name, f"{info.driver_name} {build}", host)

    def target(self, only: BackendId | None = None, kernels: FusedKernelRegistry | None = None) -> Target:
        order = (
            ("vulkan",)
            if only is BackendId.VULKAN
            else ("cpu",)
            if only is BackendId.CPU
            else ("vulkan", "cpu")
        )
        chosen = kernels if kernels is not None else default_kernel_registry()
        return Target(
            chosen,
            order,
            {"vulkan": self.capabilities, "cpu": CpuCapabilities()},
            evidence=evidence_for(self.place, chosen),
            doubts=self.doubts,
        )

    def probe(self) -> Probe:
        """Returns whether the device computes what strict claims stand on; probed once, when first asked for.

        Warns, once, of a device that does not.
        """
        with self._probing:
            found, first = self._probe, self._probe is None
            if found is None:
                found = self._probe = verdict(self.vk)
        if first and not found.passed:
            announce(self.info, found)
        return found

    def doubts(self, backend: str, impl: BackendImpl) -> str | None:
        """Returns why a strict claim does not hold on this device, or None."""
        strict = backend == BackendId.VULKAN and impl.precision.canonical
        return self.probe().doubt(impl) if strict else None

    def upload(self, array: Array) -> Storage:
        dtype = DType.of(array)
        data = np.ascontiguousarray(array, dtype=dtype.numpy).reshape(array.shape)
        buffer = self.vk.alloc(data.nbytes)
        storage = Storage(self, data.shape, dtype, buffer=buffer)
        if data.nbytes:
            self.vk.write(buffer, data.reshape(-1).view(np.uint8))
        return storage

    def download(self, buffer: Any, into: Array) -> None:
        self.vk.read(buffer, into=into.reshape(-1).view(np.uint8))

    def wait_for(self, buffer: Any) -> None:
        self.vk.wait(buffer.last_use)

    def arena(self, nbytes: int, *, shared: bool) -> Any:
        """Returns memory for a plan's intermediate values.

        Plans that run on the device alone share it: one queue runs them one after the other, and each recording
        begins with a barrier. A plan with steps on the host in between needs memory of its own.
        """
        if not shared:
            return self.vk.alloc(nbytes)
        with self._lock:
            if self._arena is None or self._arena.nbytes < nbytes:
                self._arena = self.vk.alloc(nbytes)
            return self._arena


def _trim_hook(owner: weakref.ref[VulkanDevice]) -> Callable[[], None]:
    """Recordings name memory by address, so they go before memory goes."""

    def drop() -> None:
        device = owner()
        for program in list(device.programs) if device is not None else ():
            program.forget_recordings()

    return drop


_lock = threading.RLock()
_opened: dict[tuple[int, str], Device] = {}


def devices() -> DeviceRecords:
    """Returns every device found, best first, the CPU reference last; ``.problems`` says what was refused and why."""
    found = enumerate_devices()
    rows = [
        DeviceRecord(
            f"vulkan:{info.index}",
            info.name,
            info.type,
            f"{info.driver_name} {info.driver_info}".strip(),
            tuple(sorted(info.features)),
            sum(h.size for h in info.heaps if h.device_local) or None,
        )
        for info in found.devices
    ]
    rows.append(DeviceRecord("cpu", "CPU reference (C and NumPy)", "cpu", "built in", (), None))
    return DeviceRecords(rows, found.problems)


def device(spec: str | Device | None = None) -> Device:
    """Returns the device called ``spec``, opened and cached for this process.

    ``spec`` is "cpu", "vulkan:0", a device type, or a pattern over name and driver; None takes FUELVK_DEVICE, then
    the best Vulkan device, then the CPU reference. Raises UnknownNameError, or DriverNotFoundError when a Vulkan
    device is asked for and there is none.
    """
    if isinstance(spec, Device):
        return spec
    wanted = spec if spec is not None else env.get("FUELVK_DEVICE")
    with _lock:
        key = (os.getpid(), wanted or "")
        found = _opened.get(key)
        if found is not None and not found.usable:
            forget(found)
            found = None
        if found is None:
            found = _opened[key] = _open(wanted)
        return found


def _open(wanted: str | None) -> Device:
    if wanted == "cpu":
        return _single("cpu", CpuDevice)
    listed = enumerate_devices()
    if not listed.devices:
        if wanted is None:
            return _single("cpu", CpuDevice)
        if wanted.startswith("vulkan") or wanted in ("discrete", "integrated", "virtual"):
            raise DriverNotFoundError(
                "no Vulkan device was found",
                asked=wanted,
                seen="; ".join(listed.problems) or "no driver",
                hint="install libvulkan1 and a driver (mesa-vulkan-drivers has one for the CPU), or use device 'cpu'",
            )
        raise UnknownNameError(
            "unknown device", asked=wanted, allowed="cpu", hint=closest(wanted, ["cpu"]) or None
        )
    info = match_device(listed.devices, wanted)
    spec = f"vulkan:{info.index}"
    return _single(spec, lambda: VulkanDevice(spec, info))


def _single(spec: str, make: Any) -> Device:
    key = (os.getpid(), spec)
    found = _opened.get(key)
    if found is None or not found.usable:
        found = _opened[key] = make()
    return found


def forget(chosen: Device) -> None:
    """Drops a device from the cache (after it was lost or closed), so that the next request opens it anew."""
    with _lock:
        for key in [k for k, d in _opened.items() if d is chosen]:
            del _opened[key]


def opened() -> list[Device]:
    """Returns the devices this process has open, each once."""
    with _lock:
        return list({id(d): d for (pid, _), d in _opened.items() if pid == os.getpid()}.values())
