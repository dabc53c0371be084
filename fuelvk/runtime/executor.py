"""Runs plans: binds slots to memory, records Vulkan steps once per binding, replays them."""

from __future__ import annotations

import abc
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from fuelvk.kernels._vulkan import VulkanContext
from fuelvk.optimizer.plan import Plan, Ref, SlotKind, Step
from fuelvk.runtime import profile
from fuelvk.runtime.devices import CpuDevice, Device, VulkanDevice
from fuelvk.runtime.storage import FAULT_WORDS, Array, Faults, Source, Storage
from fuelvk.vulkan import Buffer, Recorder, Recording

RECORDINGS = 8


class Program(abc.ABC):
    """A plan made ready for one device. ``run`` takes one Storage or host array per input of the plan."""

    def __init__(self, plan: Plan, device: Device) -> None:
        self.plan = plan
        self.device = device

    @abc.abstractmethod
    def run(self, inputs: Sequence[Storage | Array]) -> tuple[Storage, ...]:
        """Computes the plan's outputs."""


def program(plan: Plan, device: Device) -> Program:
    """Returns the program that runs ``plan`` on ``device``."""
    if isinstance(device, VulkanDevice):
        return VulkanProgram(plan, device)
    assert isinstance(device, CpuDevice)
    return CpuProgram(plan, device)


def host_view(raw: Array, ref: Ref) -> Array:
    """Returns the elements of ``ref`` in a slot's bytes as an array (possibly strided, never copied)."""
    dtype, layout = ref.dtype.numpy, ref.layout
    if not layout.elements:
        return np.empty(layout.shape, dtype)
    flat = raw[: raw.size // dtype.itemsize * dtype.itemsize].view(dtype)
    strides = tuple(s * dtype.itemsize for s in layout.strides)
    return as_strided(flat[layout.offset :], layout.shape, strides)


def _call_cpu(step: Step, inputs: Sequence[Array | None], outputs: Sequence[Array]) -> None:
    assert step.route.chosen is not None
    layouts = tuple(None if r is None else r.layout for r in (*step.inputs, *step.outputs))
    ready = [None if a is None else np.ascontiguousarray(a).reshape(a.shape) for a in inputs]
    step.route.chosen.impl.kernel(ready, outputs, layouts, step.params, None)


class CpuProgram(Program):
    """Runs every step on host arrays."""

    def __init__(self, plan: Plan, device: CpuDevice) -> None:
        super().__init__(plan, device)
        self._constants = {slot: _host_bytes(data) for slot, data in plan.constants}

    def run(self, inputs: Sequence[Storage | Array]) -> tuple[Storage, ...]:
        plan = self.plan
        memory: dict[int, Array] = dict(self._constants)
        for number, given in zip(plan.inputs, inputs, strict=True):
            memory[number] = _host_bytes(given)
        for number, slot in enumerate(plan.slots):
            if number not in memory:
                memory[number] = np.empty(slot.nbytes, np.uint8)
        for step in plan.steps:
            arguments = [None if r is None else host_view(memory[r.slot], r) for r in step.inputs]
            with profile.host_step(step):
                _call_cpu(step, arguments, [host_view(memory[r.slot], r) for r in step.outputs])
        return tuple(
            Storage(self.device, r.layout.shape, r.dtype, array=host_view(memory[r.slot], r))
            for r in plan.outputs
        )


def _host_bytes(data: Any) -> Array:
    if isinstance(data, Storage):
        data = data.array if data.array is not None else data.numpy()
    elif isinstance(data, Source):
        data = data.numpy()
    return np.ascontiguousarray(data).reshape(-1).view(np.uint8)


class _Bound:
    """A plan recorded for one set of buffers: recordings and host steps in order, and the memory they own."""

    __slots__ = ("constants", "free", "owned", "segments")

    def __init__(self) -> None:
        self.segments: list[Recording | Step] = []
        self.owned: list[Buffer] = []
        self.free: dict[int, list[Buffer]] = {}
        self.constants: dict[bytes, Buffer] = {}


class VulkanProgram(Program):
    """Records the plan's Vulkan steps; steps routed to the CPU run between the recordings."""

    device: VulkanDevice

    def __init__(self, plan: Plan, device: VulkanDevice) -> None:
        super().__init__(plan, device)
        self._lock = threading.RLock()
        on_device = all(step.backend == "vulkan" for step in plan.steps)
        self._arena = device.arena(plan.arena_bytes, shared=on_device) if plan.arena_bytes else None
        self._constants = {slot: _resident(data, device) for slot, data in plan.constants}
        self._bound: OrderedDict[tuple[Any, ...], _Bound] = OrderedDict()
        self._prepared: dict[tuple[Any, ...], Buffer] = {}
        #: Ops whose kernels may report a fault, one per word; None until the plan was recorded once.
        self._labels: list[str] | None = None
        device.programs.add(self)

    def forget_recordings(self) -> None:
        """Drops recordings; called before device memory is given back, perhaps by another thread under pressure.

        It never waits: a recording that stays behind because its program is busy is refused when it is submitted.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._bound.clear()
            finally:
                self._lock.release()

    def run(
        self, inputs: Sequence[Storage | Array], outputs: Sequence[Buffer] | None = None
    ) -> tuple[Storage, ...]:
        """Submits the plan and returns its outputs without waiting for the device.

        ``outputs`` are buffers to write the results to, in the plan's order; fresh ones by default.
        """
        vk = self.device.vk
        uploads: list[Buffer] = []
        given: list[Buffer] = []
        for data in inputs:
            if isinstance(data, Storage):
                assert data.buffer is not None
                given.append(data.buffer)
            else:
                buffer = vk.alloc(data.nbytes)
                uploads.append(buffer)
                given.append(buffer)
                if data.nbytes:
                    vk.write(buffer, data.reshape(-1).view(np.uint8))
        slots = self.plan.slots
        made = outputs if outputs is not None else [vk.alloc(slots[r.slot].nbytes) for r in self.plan.outputs]
        results = {r.slot: buffer for r, buffer in zip(self.plan.outputs, made, strict=True)}
        inherited = [f for s in inputs if isinstance(s, Storage) for f in s.faults if not f.clean]
        with self._lock:
            words = None if self._labels == [] else vk.alloc(4 * FAULT_WORDS)
            self._submit(given, results, words)
            if self._labels and words is not None:
                inherited.append(Faults(self.device, words, self._labels))
        for buffer in uploads:
            buffer.free()
        faults = tuple(dict.fromkeys(inherited))
        return tuple(
            [
                Storage(self.device, r.layout.shape, r.dtype, buffer=results[r.slot], faults=faults)
                for r in self.plan.outputs
            ]
        )

    def _submit(self, given: Sequence[Buffer], results: dict[int, Buffer], words: Buffer | None) -> None:
        collector = profile.current()
        named = (*given, *results.values()) if words is None else (*given, *results.values(), words)
        key = tuple([b.address or (b.key, b.offset) for b in named])
        bound = None if collector is not None else self._bound.get(key)
        if bound is None:
            bound = self._bind(given, results, words, profiled=collector is not None)
            if collector is None:
                self._bound[key if self._labels else key[: len(given) + len(results)]] = bound
                if len(self._bound) > RECORDINGS:
                    self._bound.popitem(last=False)
        else:
            self._bound.move_to_end(key)
        memory = None
        for segment in bound.segments:
            if isinstance(segment, Step):
                memory = memory or self._memory(given, results)
                self._host_step(segment, memory)
            else:
                self.device.vk.submit(segment)
        if collector is not None:
            collector.add_recordings(self.plan, bound.segments, self.device)

    def _memory(self, given: Sequence[Buffer], results: dict[int, Buffer]) -> dict[int, Buffer]:
        memory = dict(zip(self.plan.inputs, given, strict=True))
        for number, storage in self._constants.items():
            assert storage.buffer is not None
            memory[number] = storage.buffer
        memory.update(results)
        for number, slot in enumerate(self.plan.slots):
            if slot.kind is SlotKind.TEMP:
                assert self._arena is not None or not slot.nbytes
                memory[number] = (
                    self._arena.view(slot.offset, slot.nbytes)
                    if self._arena is not None
                    else self.device.vk.alloc(0)
                )
        return memory

    def _bind(
        self, given: Sequence[Buffer], results: dict[int, Buffer], words: Buffer | None, *, profiled: bool
    ) -> _Bound:
        memory = self._memory(given, results)
        launch = _Launch(self, _Bound(), profiled, words)
        constant_keys = {s.buffer.key for s in self._constants.values() if s.buffer is not None}
        launch.constant_keys = constant_keys
        for number, step in enumerate(self.plan.steps):
            if step.backend == "vulkan":
                launch.record(number, step, memory)
            else:
                launch.host(step)
        launch.finish()
        self._labels = launch.labels
        return launch.bound

    def _host_step(self, step: Step, memory: dict[int, Buffer]) -> None:
        vk = self.device.vk

        def fetch(ref: Ref) -> Array:
            raw = np.empty(memory[ref.slot].nbytes, np.uint8)
            if raw.nbytes:
                vk.read(memory[ref.slot], into=raw)
            return host_view(raw, ref)

        arguments = [None if r is None else fetch(r) for r in step.inputs]
        outputs = [np.empty(r.layout.shape, r.dtype.numpy) for r in step.outputs]
        with profile.host_step(step):
            _call_cpu(step, arguments, outputs)
        for ref, array in zip(step.outputs, outputs, strict=True):
            if array.nbytes:
                vk.write(memory[ref.slot], array.reshape(-1).view(np.uint8))


class _Launch:
    """What kernel wrappers draw on while a plan is recorded (kernels._vulkan.Launch)."""

    def __init__(self, owner: VulkanProgram, bound: _Bound, profiled: bool, words: Buffer | None) -> None:
        self.labels: list[str] = []
        self._words = words
        self.owner = owner
        self.bound = bound
        self.device = owner.device.vk
        self.constant_keys: set[Any] = set()
        self._profiled = profiled
        self._recorder: Recorder | None = None
        self._override: Recorder | None = None
        self._step: Step | None = None
        self._borrowed: list[Buffer] = []

    @property
    def recorder(self) -> Recorder:
        if self._override is not None:
            return self._override
        if self._recorder is None:
            self._recorder = self.device.recorder("plan", profile=self._profiled)
        return self._recorder

    def record(self, number: int, step: Step, memory: dict[int, Buffer]) -> None:
        assert step.route.chosen is not None
        self._step = step
        inputs = [None if r is None else memory[r.slot] for r in step.inputs]
        outputs = [memory[r.slot] for r in step.outputs]
        layouts = tuple(None if r is None else r.layout for r in (*step.inputs, *step.outputs))
        context = VulkanContext(self, f"{number}:{step.op.name}")
        step.route.chosen.impl.kernel(inputs, outputs, layouts, step.params, context)
        for buffer in self._borrowed:
            self.bound.free.setdefault(buffer.nbytes, []).append(buffer)
        self._borrowed.clear()

    def host(self, step: Step) -> None:
        self.finish()
        self.bound.segments.append(step)

    def finish(self) -> None:
        if self._recorder is not None:
            self.bound.segments.append(self._recorder.finish(keep=False))
            self._recorder = None

    def scratch(self, nbytes: int) -> Buffer:
        waiting = self.bound.free.get(nbytes)
        if waiting:
            buffer = waiting.pop()
        else:
            buffer = self.device.alloc(nbytes)
            self.bound.owned.append(buffer)
        self._borrowed.append(buffer)
        return buffer

    def constant(self, data: bytes) -> Buffer:
        found = self.bound.constants.get(data)
        if found is None:
            found = self.bound.constants[data] = self.device.alloc(len(data))
            self.device.write(found, data)
        return found

    def prepare(self, source: Buffer, nbytes: int, record: Callable[[Buffer], None], key: str) -> Buffer:
        if source.key not in self.constant_keys:
            scratch = self.scratch(nbytes)
            record(scratch)
            return scratch
        full_key = (source.key, source.offset, key, nbytes)
        shared = self.owner.device.prepared
        found = self.owner._prepared.get(full_key) or shared.get(full_key)
        if found is None:
            found = shared[full_key] = self.device.alloc(nbytes)
            self._override = self.device.recorder("prepare")
            try:
                record(found)
                self.device.submit(self._override.finish())
            finally:
                self._override = None
        self.owner._prepared[full_key] = found
        return found

    def error_slot(self) -> tuple[Buffer, int]:
        """A word of the run's faults. They are zeroed before the first kernel that may raise one.

        Kernels beyond the last word share it.
        """
        assert self._step is not None
        assert self._words is not None
        if not self.labels:
            self.recorder.fill(self._words)
        if len(self.labels) < FAULT_WORDS:
            self.labels.append(self._step.op.name)
        return self._words, len(self.labels) - 1


def _resident(data: Any, device: VulkanDevice) -> Storage:
    return data.on(device) if isinstance(data, Source) else device.upload(np.asarray(data))
