"""Runs one implementation of one op, with guard bytes around every output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.graph import ir
from fuelvk.graph.registry import find_op
from fuelvk.graph.types import OpEntry
from fuelvk.kernels.types import BackendImpl, FusedKernelRegistry
from fuelvk.optimizer.lower import Target, lower
from fuelvk.optimizer.plan import Plan
from fuelvk.optimizer.tolerance import Tolerance
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.devices import Device, VulkanDevice
from fuelvk.runtime.executor import VulkanProgram, program

Array = np.ndarray[Any, Any]
GUARD = 256
SENTINEL = 0xA5


class RefusedError(Exception):
    """The implementation does not take this call on this device; the text says why."""


class GuardError(AssertionError):
    """A byte outside an output was written to."""


def only(op: OpEntry, backend: str, impl: BackendImpl) -> FusedKernelRegistry:
    """Returns a registry with one implementation of ``op`` (and the copies a plan may need)."""
    registry = FusedKernelRegistry()
    registry.register(op.id, backend, impl)
    copy = find_op("copy")
    assert copy is not None
    if copy.id != op.id:
        for owner, row in default_kernel_registry().impls_for(copy.id):
            registry.register(copy.id, owner, row)
    return registry


def plan_of(
    op: OpEntry,
    backend: str,
    impl: BackendImpl,
    inputs: Sequence[Array | None],
    params: Mapping[str, Any],
    device: Device,
) -> Plan:
    """Returns the plan of one call served by ``impl``; raises RefusedError with its reason."""
    bound, converted = op.bind(tuple(inputs), params)
    values = tuple(None if x is None else ir.leaf(None, x.shape, DType.of(x)) for x in bound)
    outputs = ir.apply(op, values, converted)
    shapes = (*(None if v is None else v.shape for v in values), *(o.shape for o in outputs))
    capabilities = device.target().capabilities
    if backend not in capabilities:
        raise RefusedError(f"{device.spec} has no {backend}")
    reason = impl.admits(shapes, converted, capabilities[backend])
    if reason is not None:
        raise RefusedError(reason)
    target = Target(only(op, backend, impl), (backend,), capabilities)
    leaves = [v for v in values if v is not None]
    return lower(outputs, leaves, target, Tolerance.unbounded(), fusing=False)


def run_impl(
    op: OpEntry,
    backend: str,
    impl: BackendImpl,
    inputs: Sequence[Array | None],
    params: Mapping[str, Any],
    device: Device,
    left: int = SENTINEL,
) -> tuple[Array, ...]:
    """Returns the outputs of one implementation; fails when a byte outside an output changed.

    ``left`` is the byte that a device's memory for outputs is full of beforehand.
    """
    runner = program(plan_of(op, backend, impl, inputs, params, device), device)
    given = [np.ascontiguousarray(x).reshape(x.shape) for x in inputs if x is not None]
    if not isinstance(runner, VulkanProgram):
        return tuple(s.numpy() for s in runner.run(given))
    return run_guarded(runner, given, left)


def run_guarded(runner: VulkanProgram, given: Sequence[Array], left: int = SENTINEL) -> tuple[Array, ...]:
    """Runs a program with its outputs inside larger buffers and checks the bytes around them."""
    assert isinstance(runner.device, VulkanDevice)
    vk = runner.device.vk
    alignment = max(GUARD, vk.info.limits.storage_alignment)
    sizes = [r.layout.elements * r.dtype.size for r in runner.plan.outputs]
    wholes = [vk.alloc(alignment + n + alignment) for n in sizes]
    for whole, nbytes in zip(wholes, sizes, strict=True):
        content = np.full(whole.nbytes, SENTINEL, np.uint8)
        content[alignment : alignment + nbytes] = left
        vk.write(whole, content)
    views = [w.view(alignment, n) for w, n in zip(wholes, sizes, strict=True)]
    made = runner.run(given, views)
    results = []
    for whole, ref, nbytes in zip(wholes, runner.plan.outputs, sizes, strict=True):
        raw = np.frombuffer(bytes(vk.read(whole)), np.uint8)
        before, after = raw[:alignment], raw[alignment + nbytes :]
        for side, guard in (("before", before), ("after", after)):
            if not (guard == SENTINEL).all():
                raise GuardError(f"a byte {side} the output was overwritten")
        data = raw[alignment : alignment + nbytes].copy()
        results.append(data.view(ref.dtype.numpy).reshape(ref.layout.shape))
    for storage in made:
        storage.raise_faults()
    return tuple(results)
