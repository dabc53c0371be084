"""Every op is complete: entry, oracle, C kernel, Vulkan kernel, samples, error samples, audited claims, revision."""

from __future__ import annotations

import importlib

import pytest

from fuelvk.base.dtypes import DType
from fuelvk.graph.registry import default_fused_op_registry
from fuelvk.graph.types import OpEntry
from fuelvk.kernels.types import Audit, BackendImpl
from fuelvk.registry import default_kernel_registry
from tests.support.cases import computed_ops, impl_id, implementations, samples

OPS = computed_ops()
IMPLS = implementations()


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_op_has_an_oracle_samples_and_refusals(op: OpEntry) -> None:
    assert callable(importlib.import_module(f"cpu_reference.numpy.{op.name}").reference)
    assert op.dtypes, "no dtypes"
    assert op.sample_inputs is not None
    refuses = len(op.args) > 1 or op.params or set(op.dtypes) != {(d, d) for d in DType}
    assert not refuses or (op.error_inputs is not None and list(op.error_inputs()))
    assert op.doc


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_dtype_of_an_op_runs_on_both_backends(op: OpEntry) -> None:
    registry = default_kernel_registry()
    for backend in ("cpu", "vulkan"):
        have = {impl.dtypes for owner, impl in registry.impls_for(op.id) if owner == backend}
        assert set(op.dtypes) <= have, f"{backend} lacks {set(op.dtypes) - have}"


@pytest.mark.parametrize("row", IMPLS, ids=impl_id)
def test_every_implementation_is_audited_tracked_and_sampled(row: tuple[OpEntry, str, BackendImpl]) -> None:
    op, _, impl = row
    assert impl.precision.audit is not Audit.UNAUDITED
    assert impl.revision.tracked
    labels = [s.label for s in samples(op, impl)]
    assert labels
    assert len(labels) == len(set(labels))


def test_fused_ops_have_decompositions() -> None:
    for op in default_fused_op_registry():
        assert callable(op.decompose)
        assert op.pattern is not None
