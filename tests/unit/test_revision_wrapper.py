"""The revision of a registered kernel follows its wrapper, its op and its sources, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuelvk.base.dtypes import DType
from fuelvk.graph.types import OpId, PrimitiveId
from fuelvk.kernels._cpu import c_kernel
from fuelvk.kernels._vulkan import spirv, vulkan
from fuelvk.kernels.types import CostEstimate, KernelRevisionHash, PrecisionGuarantee

ADD, SUB = PrimitiveId("add"), PrimitiveId("sub")


def kernel(*_: object) -> None:
    """Never called."""


def cost(*_: object) -> CostEstimate:
    return CostEstimate()


def gpu(wrapper: Path, op: OpId = ADD, entry: str = "add_flat") -> KernelRevisionHash:
    shader = spirv("pointwise/binary", entry, dtype=DType.F32, shape="small")
    row = vulkan(
        op,
        (DType.F32,) * 3,
        kernel,
        shaders=(shader,),
        cost=cost,
        precision=PrecisionGuarantee(True),
        wrapper=str(wrapper),
    )
    return row.impl.revision


def host(wrapper: Path, op: OpId = ADD, function: str = "add_f32") -> KernelRevisionHash:
    row = c_kernel(
        op,
        (DType.F32,) * 3,
        kernel,
        functions=(function,),
        cost=cost,
        precision=PrecisionGuarantee(True),
        wrapper=str(wrapper),
    )
    return row.impl.revision


@pytest.fixture
def wrapper(tmp_path: Path) -> Path:
    path = tmp_path / "a" / "wrapper.py"
    path.parent.mkdir()
    path.write_text("x = 1\n")
    return path


@pytest.mark.parametrize("revision", [gpu, host])
def test_a_wrapper_that_changes_moves_the_revision(revision: object, wrapper: Path, tmp_path: Path) -> None:
    assert callable(revision)
    same = tmp_path / "another folder" / "name.py"
    same.parent.mkdir()
    same.write_bytes(wrapper.read_bytes())
    assert revision(same) == revision(wrapper)
    other = tmp_path / "changed.py"
    other.write_text("x = 2\n")
    assert revision(other) != revision(wrapper)


def test_ops_entries_and_functions_are_told_apart(wrapper: Path) -> None:
    assert len({gpu(wrapper), gpu(wrapper, SUB), gpu(wrapper, ADD, "sub_flat")}) == 3
    assert len({host(wrapper), host(wrapper, SUB), host(wrapper, ADD, "matmul_f32")}) == 3


def test_a_revision_is_sixteen_digits_and_never_untracked(wrapper: Path) -> None:
    for revision in (gpu(wrapper), host(wrapper)):
        assert revision.tracked
        assert len(str(revision)) == 16
        assert revision == KernelRevisionHash(int(str(revision), 16))
    assert KernelRevisionHash.UNTRACKED != KernelRevisionHash.UNTRACKED
