"""The records of the registry: revisions, implementations by op and dtype, freezing, duplicates, collection."""

from __future__ import annotations

import dataclasses
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import RegistryError, UnknownNameError
from fuelvk.discover import collect
from fuelvk.graph.registry import (
    FusedOpRegistry,
    FusedOps,
    default_fused_op_registry,
    default_primitive_registry,
)
from fuelvk.graph.types import FusedOpId, PrimitiveId
from fuelvk.kernels.types import (
    BackendId,
    BackendImpl,
    CostEstimate,
    FusedKernelRegistry,
    KernelCaps,
    KernelRevisionHash,
    PrecisionGuarantee,
)

F32, F16 = DType.F32, DType.F16


def impl(name: str = "k", dtypes: tuple[DType, ...] = (F32, F32), **fields: Any) -> BackendImpl:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Any, context: Any) -> None:
        """Does nothing."""

    return BackendImpl(
        name=name,
        kernel=kernel,
        dtypes=dtypes,
        cost=lambda shapes, params, capabilities: CostEstimate(),
        precision=PrecisionGuarantee.UNAUDITED,
        **fields,
    )


# --- revisions --------------------------------------------------------------------------------------------------


def test_revision_is_sixteen_hex_digits() -> None:
    assert str(KernelRevisionHash(0xABC)) == "0000000000000abc"
    assert len(str(KernelRevisionHash(2**64 - 1))) == 16


def test_untracked_equals_nothing() -> None:
    untracked = KernelRevisionHash.UNTRACKED
    assert untracked.value == 0
    assert not untracked.tracked
    assert untracked != KernelRevisionHash(0)
    assert untracked != untracked
    assert untracked not in {KernelRevisionHash(0): 1}
    assert KernelRevisionHash(5) == KernelRevisionHash(5)
    assert hash(KernelRevisionHash(5)) == hash(KernelRevisionHash(5))
    assert KernelRevisionHash(5) != KernelRevisionHash(6)
    assert KernelRevisionHash(5) != 5


@pytest.mark.parametrize("value", [-1, 2**64])
def test_revision_range(value: int) -> None:
    with pytest.raises(RegistryError, match="64 bits"):
        KernelRevisionHash(value)


# --- defaults ---------------------------------------------------------------------------------------------------


def test_records_and_defaults() -> None:
    assert CostEstimate() == CostEstimate(flops=0, bytes_moved=0, kernel_overhead_ns=0)
    assert KernelCaps() == KernelCaps(strided_input=False, requires_broadcast=False)
    row = impl()
    assert row.revision is KernelRevisionHash.UNTRACKED
    assert row.admits((), {}, None) is None
    for record in (row, CostEstimate(), KernelCaps(), PrecisionGuarantee.REFERENCE, KernelRevisionHash(1)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, dataclasses.fields(record)[0].name, 1)
        assert not hasattr(record, "__dict__")
    reference = PrecisionGuarantee.REFERENCE
    assert (reference.max_ulp, reference.max_relative, reference.max_absolute) == (0, 0.0, 0.0)
    assert reference.bit_stable_on_same_hardware
    assert BackendId.CPU.value == "cpu"
    assert str(BackendId.VULKAN) == "vulkan"


# --- FusedKernelRegistry ----------------------------------------------------------------------------------------


def test_lookups() -> None:
    registry = FusedKernelRegistry()
    first, second, half = impl("a"), impl("b"), impl("a", (F16, F16))
    for row in (first, second, half):
        registry.register(FusedOps.SOFTMAX_LAST_DIM, BackendId.CPU, row)
    gpu = impl("g", (F16, F16))
    registry.register(FusedOps.SOFTMAX_LAST_DIM, BackendId.VULKAN, gpu)
    registry.register(FusedOps.ROPE, "other", impl("o"))
    softmax = FusedOps.SOFTMAX_LAST_DIM
    assert registry.lookup(softmax, BackendId.CPU) is first
    assert registry.lookup(softmax, "cpu") is first
    assert registry.lookup(softmax, BackendId.VULKAN) is gpu
    assert registry.lookup(FusedOps.CONV2D, BackendId.CPU) is None
    assert registry.lookup_by_dtypes(softmax, BackendId.CPU, (F32, F32)) is first
    assert registry.lookup_by_dtypes(softmax, BackendId.CPU, [F16, F16]) is half
    assert registry.lookup_by_dtypes(softmax, BackendId.CPU, (F32,)) is None
    assert registry.lookup_by_dtypes(softmax, BackendId.VULKAN, (F32, F32)) is None
    assert registry.lookup(FusedOps.ROPE, "other") is not None
    assert [i.name for _, i in registry.impls_for(softmax)] == ["a", "b", "a", "g"]
    assert registry.impls_for(FusedOps.CONV2D) == ()
    assert len(registry) == 2
    assert registry.ids() == (softmax, FusedOps.ROPE)
    assert len(list(registry)) == 5


def test_duplicates_and_freezing() -> None:
    registry = FusedKernelRegistry()
    registry.register(FusedOps.ROPE, BackendId.CPU, impl())
    with pytest.raises(RegistryError, match=r"registered twice.*ROPE cpu k"):
        registry.register(FusedOps.ROPE, "cpu", impl())
    registry.register(FusedOps.ROPE, BackendId.VULKAN, impl())
    registry.freeze()
    with pytest.raises(RegistryError, match="frozen"):
        registry.register(FusedOps.ROPE, BackendId.CPU, impl("another"))


def test_primitives_have_ids_of_their_own_kind() -> None:
    registry = FusedKernelRegistry()
    registry.register(PrimitiveId("add"), BackendId.CPU, impl())
    assert registry.lookup(PrimitiveId("add"), BackendId.CPU) is not None
    assert PrimitiveId("add") != FusedOpId(1, "add")


# --- the graph half ---------------------------------------------------------------------------------------------


def test_default_graph_registries() -> None:
    fused, primitives = default_fused_op_registry(), default_primitive_registry()
    assert default_fused_op_registry() is fused
    assert [e.id.number for e in fused if isinstance(e.id, FusedOpId)] == sorted(
        e.id.number for e in fused if isinstance(e.id, FusedOpId)
    )
    assert fused.get(FusedOps.FLASH_ATTN) is not None
    assert fused.get(FusedOps.SSD_CHUNK_SCAN) is None, "an id without an entry yet"
    assert fused.by_name("SOFTMAX_LAST_DIM").id == FusedOps.SOFTMAX_LAST_DIM
    assert not set(fused.names()) & set(primitives.names())
    with pytest.raises(RegistryError, match="frozen"):
        fused.register(next(iter(fused)))
    with pytest.raises(UnknownNameError, match="softmax_last_dim"):
        fused.by_name("softmax_lastdim")
    assert len(FusedOps.all()) == 24


def test_two_entries_for_one_op_are_refused() -> None:
    registry = FusedOpRegistry()
    entry = default_fused_op_registry().by_name("flash_attn")
    registry.register(entry)
    with pytest.raises(RegistryError, match=r"two entries.*FLASH_ATTN"):
        registry.register(entry)


def test_registry_is_built_once_whatever_the_thread() -> None:
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(default_fused_op_registry())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(f) for f in found}) == 1


# --- discovery --------------------------------------------------------------------------------------------------


def _package(
    tmp_path: Path, name: str, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> types.ModuleType:
    folder = tmp_path / name
    folder.mkdir()
    for file, text in {"__init__": "", **files}.items():
        (folder / f"{file}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = __import__(name)
    for file in (name, *(f"{name}.{f}" for f in files)):
        monkeypatch.delitem(sys.modules, file, raising=False)
    return module


def test_collect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = _package(
        tmp_path, "ops_a", {"b": "OP = 'b'", "a": "OP = ('a1', 'a2')", "_help": ""}, monkeypatch
    )
    assert collect(package, "OP") == ["a1", "a2", "b"]


def test_a_stray_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = _package(tmp_path, "ops_b", {"stray": "X = 1"}, monkeypatch)
    with pytest.raises(RegistryError, match=r"ops_b\.stray defines no OP.*_stray\.py"):
        collect(package, "OP")
