"""Which sweeps the ledgers hold, and whether they are of the functions as they are."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cpu_reference.truth import FUNCTIONS
from fuelvk.base.dtypes import DType
from fuelvk.evidence import Ledger, Place, Record, book
from fuelvk.graph.registry import find_op
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.devices import Device
from fuelvk.runtime.devices import device as find_device
from fuelvk.verify.sweep_source import Level, level_of, level_swept, source


class State(enum.Enum):
    """What a record of a sweep is worth."""

    CURRENT = "current"
    LAGGING = "lagging"
    NEVER = "never run"
    UNKNOWN = "source not installed"


@dataclass(frozen=True, slots=True)
class SweepState:
    """One level of a function on one backend, with the record of its sweep there; None where there is none."""

    op: str
    level: Level
    backend: str
    state: State
    record: Record | None

    def as_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        return {
            "op": self.op,
            "level": self.level.value,
            "backend": self.backend,
            "state": self.state.value,
            "record": None if self.record is None else json.loads(self.record.line()),
        }


def sweeps_of(ledger: Ledger) -> dict[tuple[str, Level], Record]:
    """Returns the sweeps in a ledger by function and level.

    Of two, left by implementations of different names, the one of the present source; else the later one.
    """
    found: dict[tuple[str, Level], Record] = {}
    for record in ledger.records.values():
        if record.claim == "sweep":
            key = record.op, level_of_record(record)
            old = found.get(key)
            if old is None or (not lags(record), record.date) >= (not lags(old), old.date):
                found[key] = record
    return found


def lags(record: Record) -> bool:
    """Says whether a sweep is of another source than the function has now."""
    return level_swept(record) is None


def level_of_record(record: Record) -> Level:
    """Returns the level a sweep is of: by its source; by its implementation where that changed."""
    found = level_swept(record)
    if found is not None:
        return found
    by_name = {"vulkan.functions_cheap": Level.CHEAP, "vulkan.functions_driver": Level.DRIVER}
    return by_name.get(record.impl, Level.ROUNDED)


def states(
    device: Device, ops: Sequence[str] = (), ledgers: Iterable[Ledger] | None = None
) -> list[SweepState]:
    """Returns the state of the sweeps of ``ops`` (default: all that can be swept) in C and on a device.

    ``ledgers`` are those to look into; by default the user's own and those that ship.
    """
    host = find_device("cpu")
    places = {"cpu": host.place("cpu"), "vulkan": device.place("vulkan")}
    if device.backend.value != "vulkan":
        del places["vulkan"]
    known: dict[tuple[Place, str, Level], Record] = {}
    for ledger in book().ledgers() if ledgers is None else ledgers:
        for key, record in sweeps_of(ledger).items():
            known[ledger.place, *key] = record
    found = []
    for op in ops or FUNCTIONS:
        for backend, level in _levels(op):
            if backend in places:
                last = known.get((places[backend], op, level))
                found.append(SweepState(op, level, backend, _state(op, level, last), last))
    return found


def _levels(op: str) -> list[tuple[str, Level]]:
    """Returns the backends and levels of a function's implementations that are swept, C first."""
    entry = find_op(op)
    if entry is None or op not in FUNCTIONS:
        return []
    rows = [
        (backend, level_of(impl))
        for backend, impl in default_kernel_registry().impls_for(entry.id)
        if impl.dtypes == (DType.F32, DType.F32) and (backend != "cpu" or impl.precision.canonical)
    ]
    return sorted(rows, key=lambda row: (row[0], list(Level).index(row[1])))


def _state(op: str, level: Level, record: Record | None) -> State:
    if record is None:
        return State.NEVER
    if not lags(record):
        return State.CURRENT
    return State.LAGGING if source(op, level) else State.UNKNOWN
