"""The graph half of the registry: ids, entries, and the tables that hold them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

from fuelvk.base.errors import RegistryError, UnknownNameError, closest
from fuelvk.discover import collect
from fuelvk.graph.ir import Builder
from fuelvk.graph.types import FusedOpEntry, FusedOpId, OpEntry, PrimitiveEntry

__all__ = [
    "FusedOpEntry",
    "FusedOpId",
    "FusedOpRegistry",
    "FusedOps",
    "PrimitiveRegistry",
    "builder",
    "default_fused_op_registry",
    "default_primitive_registry",
    "find_op",
    "op_names",
]


class FusedOps:
    """Every fused op's id. The numbers are those of ops.md and never change."""

    SOFTMAX_LAST_DIM = FusedOpId(1, "SOFTMAX_LAST_DIM")
    FUSED_LINEAR = FusedOpId(2, "FUSED_LINEAR")
    RMS_NORM_LAST_DIM = FusedOpId(3, "RMS_NORM_LAST_DIM")
    LAYER_NORM_LAST_DIM = FusedOpId(4, "LAYER_NORM_LAST_DIM")
    ROPE = FusedOpId(5, "ROPE")
    CONV2D = FusedOpId(6, "CONV2D")
    SOFTMAX_LAST_DIM_BACKWARD = FusedOpId(7, "SOFTMAX_LAST_DIM_BACKWARD")
    LAYER_NORM_LAST_DIM_BACKWARD = FusedOpId(8, "LAYER_NORM_LAST_DIM_BACKWARD")
    RMS_NORM_LAST_DIM_BACKWARD = FusedOpId(9, "RMS_NORM_LAST_DIM_BACKWARD")
    REDUCE_MAX_TO_BACKWARD = FusedOpId(10, "REDUCE_MAX_TO_BACKWARD")
    CONV_TRANSPOSE2D = FusedOpId(11, "CONV_TRANSPOSE2D")
    FLASH_ATTN = FusedOpId(12, "FLASH_ATTN")
    PAGED_ATTN = FusedOpId(13, "PAGED_ATTN")
    QMATMUL = FusedOpId(14, "QMATMUL")
    POWI_BACKWARD = FusedOpId(15, "POWI_BACKWARD")
    INPLACE_AFFINE = FusedOpId(16, "INPLACE_AFFINE")
    FUSED_SOFTMAX_CROSS_ENTROPY = FusedOpId(17, "FUSED_SOFTMAX_CROSS_ENTROPY")
    CAUSAL_CONV1D = FusedOpId(18, "CAUSAL_CONV1D")
    SELECTIVE_SCAN = FusedOpId(19, "SELECTIVE_SCAN")
    SSD_CHUNK_SCAN = FusedOpId(20, "SSD_CHUNK_SCAN")
    NF4_MATMUL = FusedOpId(21, "NF4_MATMUL")
    FLASH_ATTN_BACKWARD_Q = FusedOpId(22, "FLASH_ATTN_BACKWARD_Q")
    FLASH_ATTN_BACKWARD_K = FusedOpId(23, "FLASH_ATTN_BACKWARD_K")
    FLASH_ATTN_BACKWARD_V = FusedOpId(24, "FLASH_ATTN_BACKWARD_V")

    @classmethod
    def all(cls) -> tuple[FusedOpId, ...]:
        """Returns the ids in the order of their numbers."""
        return tuple(sorted(v for v in vars(cls).values() if isinstance(v, FusedOpId)))


E = TypeVar("E", bound=OpEntry)


class _Registry(Generic[E]):
    """Entries by id and by name; a duplicate names both owners; frozen once built."""

    def __init__(self) -> None:
        self._by_id: dict[object, E] = {}
        self._by_name: dict[str, E] = {}
        self._frozen = False

    def register(self, entry: E) -> None:
        if self._frozen:
            raise RegistryError("the registry is frozen", asked=entry.name, hint="build one of your own")
        for other in (self._by_id.get(entry.id), self._by_name.get(entry.name)):
            if other is not None:
                raise RegistryError("two entries for one op", asked=entry.id, seen=other.id)
        self._by_id[entry.id] = entry
        self._by_name[entry.name] = entry

    def freeze(self) -> None:
        self._frozen = True

    def find(self, name: str) -> E | None:
        return self._by_name.get(name)

    def by_name(self, name: str) -> E:
        """Returns the entry called ``name``; raises UnknownNameError with the closest names."""
        entry = self._by_name.get(name.lower())
        if entry is None:
            raise UnknownNameError("unknown op", asked=name, hint=closest(name, self._by_name) or None)
        return entry

    def get(self, op_id: object) -> E | None:
        """Returns the entry of an id, or None for an op that has an id but no entry yet."""
        return self._by_id.get(op_id)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._by_name))

    def __iter__(self) -> Iterator[E]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)


class FusedOpRegistry(_Registry[FusedOpEntry]):
    """Fused ops by FusedOpId."""


class PrimitiveRegistry(_Registry[PrimitiveEntry]):
    """Primitives by PrimitiveId."""


_lock = threading.RLock()


@functools.cache
def _fused() -> FusedOpRegistry:
    from fuelvk.graph import ops

    registry = FusedOpRegistry()
    for entry in sorted(collect(ops, "OP"), key=lambda e: e.id):
        registry.register(entry)
    registry.freeze()
    return registry


@functools.cache
def _primitives() -> PrimitiveRegistry:
    from fuelvk.graph import primitives

    registry = PrimitiveRegistry()
    for entry in collect(primitives, "OPS"):
        registry.register(entry)
    registry.freeze()
    return registry


def default_fused_op_registry() -> FusedOpRegistry:
    """Returns every fused op found in ``graph/ops``; built once, frozen, safe to call from any thread."""
    with _lock:
        return _fused()


def default_primitive_registry() -> PrimitiveRegistry:
    """Returns every primitive found in ``graph/primitives``; built once, frozen."""
    with _lock:
        return _primitives()


def find_op(name: str) -> OpEntry | None:
    """Returns the fused op or primitive called ``name``, or the gradient ``<op>_backward_<input>``, or None."""
    return _registered(name) or _derived(name)


def _registered(name: str) -> OpEntry | None:
    return default_fused_op_registry().find(name) or default_primitive_registry().find(name)


@functools.cache
def _derived(name: str) -> OpEntry | None:
    from fuelvk.graph.derived import derived_gradient

    return derived_gradient(name, _registered)


def op_names() -> tuple[str, ...]:
    """Returns the names of all ops, fused and primitive."""
    return (*default_fused_op_registry().names(), *default_primitive_registry().names())


@functools.cache
def builder() -> Builder:
    """Returns a graph builder over all known ops."""
    return Builder(find_op, op_names())
