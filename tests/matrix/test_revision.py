"""Revisions identify what decides a result: they are tracked, distinct, and follow their sources."""

from __future__ import annotations

from collections import defaultdict

from fuelvk.kernels.types import KernelRevisionHash
from tests.support.cases import implementations


def test_revisions_tell_implementations_apart() -> None:
    owners: dict[int, set[str]] = defaultdict(set)
    for op, backend, impl in implementations():
        owners[impl.revision.value].add(f"{op.name} {backend} {impl.name} {[d.key for d in impl.dtypes]}")
    shared = {str(KernelRevisionHash(k)): sorted(v) for k, v in owners.items() if len(v) > 1}
    for names in shared.values():
        assert len({n.split("[")[0] for n in names}) == 1, f"one revision for different kernels: {names}"


def test_a_second_build_of_the_registry_gives_the_same_revisions() -> None:
    from fuelvk.kernels.types import FusedKernelRegistry
    from fuelvk.registry import default_kernel_registry, register_default_kernels

    again = FusedKernelRegistry()
    register_default_kernels(again)
    assert [(i, b, x.revision.value) for i, b, x in again] == [
        (i, b, x.revision.value) for i, b, x in default_kernel_registry()
    ]
