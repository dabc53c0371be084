"""The plan: steps over slots, no device handle in it.

A slot is memory; a Ref says how a value lies in a slot. Views never become steps: they change the Ref.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Layout
from fuelvk.graph.types import OpEntry
from fuelvk.optimizer.route import Route

ALIGNMENT = 256


class SlotKind(enum.Enum):
    """Who owns a slot's memory: the caller (input, output), the plan for good (constant), or the arena (temp)."""

    INPUT = "input"
    CONSTANT = "constant"
    TEMP = "temp"
    OUTPUT = "output"


@dataclass(slots=True)
class Slot:
    """A piece of memory; ``offset`` is its place in the arena for temps.

    ``first`` and ``last`` are step numbers, -1 where no step uses the slot.
    """

    nbytes: int
    kind: SlotKind
    offset: int = 0
    first: int = -1
    last: int = -1


@dataclass(frozen=True, slots=True)
class Ref:
    """A value in a slot."""

    slot: int
    layout: Layout
    dtype: DType


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel call."""

    op: OpEntry
    route: Route
    inputs: tuple[Ref | None, ...]
    outputs: tuple[Ref, ...]
    params: Mapping[str, Any]

    @property
    def backend(self) -> str:
        assert self.route.chosen is not None
        return self.route.chosen.backend


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything needed to run a graph once memory for inputs and outputs is given.

    ``inputs`` are the slots of the leaves in the order they were given, ``constants`` (slot, data) pairs,
    ``outputs`` one Ref per result: contiguous, at offset 0 of a slot of its own or of an input's slot.
    """

    steps: tuple[Step, ...]
    slots: tuple[Slot, ...]
    inputs: tuple[int, ...]
    constants: tuple[tuple[int, Any], ...]
    outputs: tuple[Ref, ...]
    arena_bytes: int

    def describe(self) -> list[dict[str, Any]]:
        """Returns one record per step, for explain and for tests that plans do not change by accident."""
        rows = []
        for step in self.steps:
            assert step.route.chosen is not None
            impl = step.route.chosen.impl
            rows.append(
                {
                    "op": step.op.name,
                    "backend": step.backend,
                    "impl": impl.name,
                    "dtypes": tuple(d.key for d in impl.dtypes),
                    "revision": str(impl.revision),
                    "claim": impl.precision.summary(),
                    "shapes": tuple(
                        None if r is None else r.layout.shape for r in (*step.inputs, *step.outputs)
                    ),
                }
            )
        return rows


def pack_arena(slots: Sequence[Slot]) -> int:
    """Places temps whose lifetimes do not overlap over each other, largest first; returns the bytes needed."""
    temps = sorted(
        (s for s in slots if s.kind is SlotKind.TEMP and s.first >= 0), key=lambda s: (-s.nbytes, s.first)
    )
    placed: list[Slot] = []
    total = 0
    for slot in temps:
        size = -(-max(slot.nbytes, 1) // ALIGNMENT) * ALIGNMENT
        busy = sorted(
            (p.offset, p.offset + -(-max(p.nbytes, 1) // ALIGNMENT) * ALIGNMENT)
            for p in placed
            if p.first <= slot.last and slot.first <= p.last
        )
        at = 0
        for start, end in busy:
            if at + size <= start:
                break
            at = max(at, end)
        slot.offset = at
        total = max(total, at + size)
        placed.append(slot)
    return total
