"""Joins the graph half and the kernel half by id; the only module that sees both."""

from __future__ import annotations

import functools
import threading

from fuelvk.base.errors import RegistryError
from fuelvk.discover import collect
from fuelvk.graph.registry import default_fused_op_registry, default_primitive_registry
from fuelvk.graph.types import FusedOpId, OpEntry, OpId
from fuelvk.kernels.types import FusedKernelRegistry, Registration

_lock = threading.RLock()


def register_default_kernels(registry: FusedKernelRegistry) -> None:
    """Registers every kernel found in ``kernels/ops`` with ``registry``, in file order, strict ones as written.

    Raises RegistryError when a kernel belongs to an op without an entry, or its dtypes do not fit the signature.
    """
    from fuelvk.kernels import ops

    row: Registration
    for row in collect(ops, "IMPLS"):
        entry = entry_of(row.id)
        if entry is None:
            raise RegistryError(
                "a kernel is registered for an op without an entry", asked=row.id, seen=row.impl.name
            )
        registry.register(row.id, row.backend, row.impl)


@functools.cache
def _default() -> FusedKernelRegistry:
    registry = FusedKernelRegistry()
    register_default_kernels(registry)
    registry.freeze()
    return registry


def default_kernel_registry() -> FusedKernelRegistry:
    """Returns the registry of all kernels that ship with fuelvk; built once, frozen, safe from any thread."""
    with _lock:
        return _default()


def entry_of(op_id: OpId) -> OpEntry | None:
    """Returns the graph half of an id, or None."""
    if isinstance(op_id, FusedOpId):
        return default_fused_op_registry().get(op_id)
    return default_primitive_registry().get(op_id)
