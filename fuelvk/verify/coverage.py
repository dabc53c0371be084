"""What ledgers say of the kernels as they are now: which they cover, which they lack, which claims failed.

This needs no device, so that a ledger is checked on a machine without its driver and on processors of every kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fuelvk.evidence import Place, Record
from fuelvk.evidence.ledger import Ledger
from fuelvk.kernels.types import BackendImpl
from fuelvk.optimizer.trust import claims_of
from fuelvk.verify.runner import PROTOCOL
from fuelvk.verify.suite import Suite
from fuelvk.verify.sweep_state import lags, sweeps_of

Key = tuple[str, str, str, tuple[str, ...]]


@dataclass(slots=True)
class Coverage:
    """One ledger against the kernels: ``stale`` are implementations it knows with the claims it has no record of for
    the present revision by the present protocols, ``gone`` those it knows that are no more, ``lagging`` the functions
    whose sweeps lag, ``hosts`` the instruction sets of its records.
    """

    place: Place
    covered: int = 0
    stale: dict[str, tuple[str, ...]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    failed: list[Record] = field(default_factory=list)
    lagging: list[str] = field(default_factory=list)
    hosts: tuple[str, ...] = ()

    @property
    def current(self) -> bool:
        """Whether every kernel that the ledger knows is covered as it is, and no claim failed."""
        return not (self.stale or self.failed)


def coverage(ledger: Ledger, suite: Suite) -> Coverage:
    """Returns what one ledger says of the kernels of a suite; records of sweeps may lag and count for nothing else."""
    kernels = {key: impl for key, impl in _rows(suite) if key[1] == ledger.place.backend}
    known: dict[Key, dict[str, Record]] = {}
    for r in ledger.records.values():
        if r.claim != "sweep":
            known.setdefault((r.op, r.backend, r.impl, r.dtypes), {})[r.claim] = r
    found = Coverage(ledger.place)
    for key, records in sorted(known.items()):
        impl = kernels.get(key)
        if impl is None:
            found.gone.append(_name(key))
            continue
        lacking = tuple(
            c
            for c in claims_of(impl.precision)
            if c not in records
            or (records[c].revision, records[c].protocol) != (str(impl.revision), PROTOCOL)
        )
        if lacking:
            found.stale[_name(key)] = lacking
        else:
            found.covered += 1
        found.failed += [r for r in records.values() if not r.passed and r.revision == str(impl.revision)]
    found.lagging = sorted({r.op for r in sweeps_of(ledger).values() if lags(r)})
    found.hosts = hosts_of(ledger)
    return found


def hosts_of(ledger: Ledger) -> tuple[str, ...]:
    """Returns the instruction sets that a ledger's records, sweeps aside, were made on; none for a GPU's."""
    return tuple(sorted({r.host for r in ledger.records.values() if r.claim != "sweep" and r.host}))


def untried(ledgers: Iterable[Ledger], suite: Suite) -> list[str]:
    """Returns the implementations with claims that no ledger has any record of."""
    known = {(r.op, r.backend, r.impl, r.dtypes) for each in ledgers for r in each.records.values()}
    return [_name(key) for key, impl in _rows(suite) if key not in known and claims_of(impl.precision)]


def _rows(suite: Suite) -> Iterator[tuple[Key, BackendImpl]]:
    for op, backend, impl in suite.implementations():
        yield (op.name, backend, impl.name, tuple(d.key for d in impl.dtypes)), impl


def _name(key: Key) -> str:
    op, _, impl, dtypes = key
    return f"{op} {impl} {','.join(dtypes)}"
