"""Which claims are believed: those with a passing record, as far as FUELVK_TRUST asks for one.

* ``ledger``: the claim passed for this revision of the kernel on this device and driver; where the device is a
  processor, on one of its instruction set, since kernels are compiled for that.
* ``proven``: it passed for this revision on some device, and did not fail on this one. The C kernel that an op's
  canonical bits are defined by has them without a record.
* ``claims``: all that is stated.

A claim that is not believed is set aside, just that claim. Records are kept by place and revision (``evidence``); a
kernel whose revision is untracked has none.
"""

from __future__ import annotations

import enum
import functools
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fuelvk.base import env
from fuelvk.evidence import Book, Place, Record, book
from fuelvk.graph.registry import find_op
from fuelvk.graph.types import OpEntry
from fuelvk.kernels.types import BackendImpl, FusedKernelRegistry, PrecisionGuarantee


class Trust(enum.StrEnum):
    """How much is believed."""

    LEDGER = "ledger"
    PROVEN = "proven"
    CLAIMS = "claims"


class UnverifiedDeviceWarning(UserWarning):
    """No claim was ever tried on the device in use; what is believed was proven elsewhere."""


class DamagedLedgerWarning(UserWarning):
    """A file among the ledgers is none, or is damaged: what it recorded counts for nothing."""


class StaleEvidenceWarning(UserWarning):
    """A kernel is passed over for another, since its present revision was never verified or a claim failed."""


@dataclass(frozen=True, slots=True)
class Belief:
    """What of a guarantee counts, and a text for every claim that does not."""

    precision: PrecisionGuarantee
    set_aside: tuple[str, ...] = ()


#: Kind of claim -> the fields of a guarantee that state it, with what they are when it is set aside.
_FIELDS: dict[str, dict[str, Any]] = {
    "ulp": {"max_ulp": None},
    "relative": {"max_relative": None},
    "absolute": {"max_absolute": None},
    "bound": {"bound": None},
    "bit_stable": {"bit_stable_on_same_hardware": False},
    "batch_invariant": {"batch_invariant": False},
    "canonical": {"canonical": False},
}


def claims_of(precision: PrecisionGuarantee) -> tuple[str, ...]:
    """Returns the kinds of claims a guarantee makes; exactness (0 ULP) stands for its zero bounds as well."""
    return tuple(
        claim
        for claim, fields in _FIELDS.items()
        if not any(getattr(precision, name) is empty for name, empty in fields.items())
        and not (precision.max_ulp == 0 and claim in ("relative", "absolute"))
    )


def believed(
    op: OpEntry,
    impl: BackendImpl,
    place: Place,
    trust: Trust,
    known: Book | None = None,
    *,
    defines: bool = False,
) -> Belief:
    """Returns what of an implementation's guarantee counts in ``place``, by the ledgers (``known``: those given).

    ``defines`` says that the implementation is the one whose bits the op's canonical algorithm is defined by: under
    ``proven`` there is nothing to prove of that claim.
    """
    if trust is Trust.CLAIMS:
        return Belief(impl.precision)
    ledgers = known if known is not None else book()
    revision = str(impl.revision) if impl.revision.tracked else ""
    keys = tuple(d.key for d in impl.dtypes)
    rows = tuple(
        (at, r)
        for at, r in (ledgers.of_revision(revision) if revision else ())
        if (r.op, r.impl, r.dtypes) == (op.name, impl.name, keys)
    )
    precision, aside = impl.precision, []
    for claim in claims_of(precision):
        tried = [(at, r) for at, r in rows if r.claim == claim]
        if trust is Trust.PROVEN and defines and claim == "canonical" and revision:
            continue
        reason = _doubt(tried, place, trust)
        if reason is not None:
            aside.append(f"{claim}, since {reason if revision else 'the kernel has no tracked revision'}")
            precision = replace(precision, **_FIELDS[claim])
            if claim == "ulp" and impl.precision.max_ulp == 0:
                precision = replace(precision, max_relative=None, max_absolute=None)
    return Belief(precision, tuple(aside))


def _doubt(tried: Sequence[tuple[Place, Record]], place: Place, trust: Trust) -> str | None:
    """Returns why a claim with these records does not count in ``place``, or None."""
    own = next((r for at, r in tried if at == place), None)
    if own is not None and own.host == place.host:
        return None if own.passed else f"it failed here on {own.date} ({own.where or own.worst})"
    if trust is Trust.LEDGER:
        other = "" if own is None else f" by a processor of its instruction set, {place.host}"
        return f"this revision was not tried on this device and driver{other}"
    if not tried:
        return "this revision was not tried on any device"
    return None if any(r.passed for _, r in tried) else "it failed wherever it was tried"


def evidence_for(
    place: Callable[[str], Place], kernels: FusedKernelRegistry
) -> Callable[[OpEntry, str, BackendImpl], Belief] | None:
    """Returns what routing asks of each candidate on a device (``place`` by backend); None where all is believed.

    A belief is formed once for each set of ledgers read. What is returned keeps to the ledgers of this moment.
    """
    trust = Trust(env.get("FUELVK_TRUST"))
    if trust is Trust.CLAIMS:
        return None

    places = functools.cache(place)
    ledgers = book()

    def evidence(op: OpEntry, backend: str, impl: BackendImpl) -> Belief:
        where = places(backend)
        _name_unverified(where, trust, ledgers)
        key = (id(impl), op.name, where, trust)
        found = ledgers.beliefs.get(key)
        if found is None:
            defines = kernels.canonical(op.id, impl.dtypes) is impl
            belief = believed(op, impl, where, trust, ledgers, defines=defines)
            found = ledgers.beliefs[key] = (impl, belief)  # the kernel is kept, so that its id is
            _name_damaged(ledgers)
        return found[1]

    return evidence


def grouped(set_aside: Sequence[str]) -> str:
    """Returns the texts of a Belief as one, claims with the same reason together."""
    claims: dict[str, list[str]] = {}
    for text in set_aside:
        claim, _, reason = text.partition(", since ")
        claims.setdefault(reason, []).append(claim)
    return "; ".join(f"{', '.join(names)}, since {reason}" for reason, names in claims.items())


def mending(stale: Iterable[tuple[str, str]]) -> str:
    """Returns what to do about ops and backends whose kernels have claims set aside; empty for none."""
    known, own = [], []
    for op, backend in stale:
        if find_op(op) is None:
            own.append(f"`fv.verify({op!r}, suite=..., keep=True)` with your kernels")
        else:
            known.append(f"`fuelvk verify {op} --changed{' --device cpu' if backend == 'cpu' else ''}`")
    if not (known or own):
        return ""
    every = " (`fuelvk verify --changed` does so for all ops)" if known else ""
    commands = " and ".join(dict.fromkeys([*known, *own]))
    return f"to try what is set aside: {commands}{every}; FUELVK_TRUST=claims believes it untried"


def name_passed_over(op: str, passed_over: Sequence[tuple[BackendImpl, str]], instead: str) -> None:
    """Warns once in a process that kernels which would serve a call do not, since claims of theirs are set aside."""
    with _lock:
        if not passed_over or _STALE in _named:
            return
        _named.add(_STALE)
    impl, reason = passed_over[0]
    warnings.warn(
        f"{op}: {instead} serves, not {impl.name}, of which is {reason}. `fuelvk verify --changed` tries all claims "
        f"without a record, `fuelvk explain {op}` shows the choice, FUELVK_TRUST=claims believes them untried. (Other "
        "kernels may be passed over too; this is said once.)",
        StaleEvidenceWarning,
        stacklevel=2,
    )


_lock = threading.Lock()
_STALE = "stale"
_named: set[Place | str] = set()


def _name_damaged(ledgers: Book) -> None:
    """Warns once in a process of each set of ledgers that something in it is not believed."""
    if not ledgers.problems:
        return
    problem = ledgers.problems[0]
    with _lock:
        if problem in _named:
            return
        _named.add(problem)
    warnings.warn(
        f"{problem}; what is damaged counts for nothing until then (`fuelvk doctor` lists it all)",
        DamagedLedgerWarning,
        stacklevel=2,
    )


def _name_unverified(place: Place, trust: Trust, ledgers: Book) -> None:
    """Warns once in a process that a Vulkan device has no ledger."""
    if place.backend != "vulkan" or place in _named:
        return
    with _lock:
        if place in _named:
            return
        _named.add(place)
    if place not in ledgers.places():
        counts = (
            "its kernels' claims are not believed"
            if trust is Trust.LEDGER
            else "what is believed was proven elsewhere"
        )
        warnings.warn(
            f"no kernel was verified yet on {place}: {counts}; `fuelvk verify --smoke` tries all claims in a minute, "
            "`fuelvk verify` thoroughly",
            UnverifiedDeviceWarning,
            stacklevel=2,
        )
