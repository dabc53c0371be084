"""The default suite as rows: every implementation, every sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fuelvk.graph.registry import default_fused_op_registry, default_primitive_registry
from fuelvk.graph.types import OpEntry, PrimitiveEntry, Sample
from fuelvk.kernels.types import BackendImpl
from fuelvk.verify.suite import Array, default_suite


@dataclass(frozen=True)
class Case:
    """One implementation and one sample."""

    op: OpEntry
    backend: str
    impl: BackendImpl
    sample: Sample

    @property
    def id(self) -> str:
        return f"{impl_id((self.op, self.backend, self.impl))}-{self.sample.label}"


def samples(op: OpEntry, impl: BackendImpl) -> tuple[Sample, ...]:
    """Returns the op's samples in the implementation's dtypes; the same on every call."""
    return default_suite().samples(op, impl.dtypes)


def every_case() -> Iterator[Case]:
    """Yields every implementation of the default registry with every sample of its op."""
    for op, backend, impl in implementations():
        for sample in samples(op, impl):
            yield Case(op, backend, impl, sample)


def implementations() -> list[tuple[OpEntry, str, BackendImpl]]:
    """Returns every implementation of the default registry once."""
    return list(default_suite().implementations())


def impl_id(row: tuple[OpEntry, str, BackendImpl]) -> str:
    """Returns a name of an implementation: op, implementation, dtypes."""
    op, _, impl = row
    return f"{op.name}-{impl.name}-" + "_".join(dict.fromkeys(d.key for d in impl.dtypes))


def oracle(op: OpEntry, sample: Sample) -> tuple[Array, ...]:
    """Returns the exact outputs by the op's float64 reference."""
    return default_suite().oracle(op, sample)


def canonical_impl(op: OpEntry, impl: BackendImpl) -> BackendImpl | None:
    """Returns the C kernel for the same dtypes, whose bits define the canonical algorithm."""
    return default_suite().canonical(op, impl)


def computed_ops() -> list[OpEntry]:
    """Returns every op that runs a kernel (views do not)."""
    every = [*default_fused_op_registry(), *default_primitive_registry()]
    return [op for op in every if not (isinstance(op, PrimitiveEntry) and op.view_rule is not None)]
