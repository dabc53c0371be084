"""What is verified: every implementation of a registry, the samples of its op, and the oracle that judges them."""

from __future__ import annotations

import functools
import hashlib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuelvk.graph.registry import default_fused_op_registry, default_primitive_registry
from fuelvk.graph.types import OpEntry, OpId, PrimitiveEntry, Sample
from fuelvk.kernels.types import BackendImpl, FusedKernelRegistry
from fuelvk.registry import default_kernel_registry, entry_of

SEED = 20260801


@dataclass(frozen=True)
class Case:
    """One implementation and one sample."""

    op: OpEntry
    backend: str
    impl: BackendImpl
    sample: Sample

    @property
    def id(self) -> str:
        dtypes = "_".join(dict.fromkeys(d.key for d in self.impl.dtypes))
        return f"{self.op.name}-{self.impl.name}-{dtypes}-{self.sample.label}"


def samples(op: OpEntry, impl: BackendImpl) -> tuple[Sample, ...]:
    """Returns the op's samples in the implementation's dtypes; the same on every call."""
    return _samples(op.id, impl.dtypes)


@functools.cache
def _samples(op_id: OpId, dtypes: tuple[Any, ...]) -> tuple[Sample, ...]:
    op = entry_of(op_id)
    assert op is not None
    assert op.sample_inputs is not None, op_id
    seed = int.from_bytes(hashlib.sha256(f"{SEED}{op.name}{dtypes}".encode()).digest()[:8], "big")
    return tuple(op.sample_inputs(dtypes, np.random.default_rng(seed)))


def every_case() -> Iterator[Case]:
    """Yields every implementation of the default registry with every sample of its op."""
    for op, backend, impl in implementations():
        for sample in samples(op, impl):
            yield Case(op, backend, impl, sample)


def implementations(registry: FusedKernelRegistry | None = None) -> list[tuple[OpEntry, str, BackendImpl]]:
    """Returns every implementation of a registry (the default one) once."""
    rows = []
    for op_id, backend, impl in registry if registry is not None else default_kernel_registry():
        op = entry_of(op_id)
        assert op is not None
        rows.append((op, backend, impl))
    return rows


def impl_id(row: tuple[OpEntry, str, BackendImpl]) -> str:
    """Returns a name of an implementation: op, implementation, dtypes."""
    op, _, impl = row
    return f"{op.name}-{impl.name}-" + "_".join(dict.fromkeys(d.key for d in impl.dtypes))


def oracle(op: OpEntry, sample: Sample) -> tuple[np.ndarray[Any, Any], ...]:
    """Returns the exact outputs by the op's float64 reference."""
    _, params = op.bind(sample.inputs, sample.params)
    with np.errstate(all="ignore"):
        result = importlib.import_module(f"cpu_reference.numpy.{op.name}").reference(*sample.inputs, **params)
    return result if isinstance(result, tuple) else (np.asarray(result),)


def canonical_impl(op: OpEntry, impl: BackendImpl) -> BackendImpl | None:
    """Returns the C kernel for the same dtypes, whose bits define the canonical algorithm."""
    for backend, other in default_kernel_registry().impls_for(op.id):
        if backend == "cpu" and other.precision.canonical and other.dtypes == impl.dtypes:
            return other
    return None


def computed_ops() -> list[OpEntry]:
    """Returns every op that runs a kernel (views do not)."""
    every = [*default_fused_op_registry(), *default_primitive_registry()]
    return [op for op in every if not (isinstance(op, PrimitiveEntry) and op.view_rule is not None)]
