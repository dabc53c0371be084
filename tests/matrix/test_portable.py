"""On a device with nothing beyond what Vulkan 1.2 demands, every 32-bit op still has a Vulkan kernel."""

from __future__ import annotations

import pytest

from fuelvk.base.dtypes import DType
from fuelvk.graph import ir
from fuelvk.graph.types import OpEntry
from fuelvk.kernels.types import BackendImpl
from fuelvk.registry import default_kernel_registry
from fuelvk.vulkan import Capabilities
from tests.support.cases import computed_ops, impl_id, samples

WORDS = {DType.F32, DType.I32, DType.U32}
ROWS = [(op, dtypes) for op in computed_ops() for dtypes in op.dtypes if set(dtypes) <= WORDS]


def bare(addressing: str) -> Capabilities:
    """The least a device may offer: no 8-, 16- or 64-bit types, no subgroup operations, small workgroups."""
    return Capabilities(
        backend="vulkan",
        name="the least",
        device_type="integrated",
        features=frozenset({"timeline"} | ({"bda"} if addressing == "bda" else set())),
        addressing=addressing,
        subgroup_width=0,
        max_invocations=128,
        max_groups=(65535, 65535, 65535),
        max_buffer_range=1 << 27,
        max_shared_memory=16384,
        unified_memory=True,
        fingerprint="none",
    )


@pytest.mark.parametrize("addressing", ["ssbo", "bda"])
@pytest.mark.parametrize(
    ("op", "dtypes"), ROWS, ids=[f"{o.name}-{'_'.join(d.key for d in t)}" for o, t in ROWS]
)
def test_every_op_on_words_runs_anywhere(op: OpEntry, dtypes: tuple[DType, ...], addressing: str) -> None:
    rows: list[BackendImpl] = [
        impl
        for backend, impl in default_kernel_registry().impls_for(op.id)
        if backend == "vulkan" and impl.dtypes == dtypes
    ]
    assert rows
    reasons = {}
    for impl in rows:
        sample = samples(op, impl)[0]
        bound, params = op.bind(sample.inputs, sample.params)
        values = tuple(None if x is None else ir.leaf(None, x.shape, DType.of(x)) for x in bound)
        outputs = ir.apply(op, values, params)
        shapes = (*(None if v is None else v.shape for v in values), *(o.shape for o in outputs))
        reasons[impl_id((op, "vulkan", impl))] = impl.admits(shapes, params, bare(addressing))
    assert None in reasons.values(), reasons
