"""Which claims are believed: those with a passing record, as far as FUELVK_TRUST asks for one.

* ``ledger``: the claim passed for this revision of the kernel on this device and driver.
* ``proven``: it passed for this revision on some device, and did not fail on this one.
* ``claims``: all that is stated.

A claim that is not believed is set aside, just that claim. Records are kept by place and revision (``evidence``); a
kernel whose revision is untracked has none.
"""

from __future__ import annotations

import enum
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from fuelvk.base import env
from fuelvk.evidence import Book, Place, Record, book
from fuelvk.graph.types import OpEntry
from fuelvk.kernels.types import BackendImpl, PrecisionGuarantee


class Trust(enum.StrEnum):
    """How much is believed."""

    LEDGER = "ledger"
    PROVEN = "proven"
    CLAIMS = "claims"


class UnverifiedDeviceWarning(UserWarning):
    """No claim was ever tried on the device in use; what is believed was proven elsewhere."""


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


def believed(op: OpEntry, impl: BackendImpl, place: Place, trust: Trust, known: Book | None = None) -> Belief:
    """Returns what of an implementation's guarantee counts in ``place``, by the ledgers (``known``: those given)."""
    if trust is Trust.CLAIMS:
        return Belief(impl.precision)
    ledgers = known if known is not None else book()
    revision = str(impl.revision) if impl.revision.tracked else ""
    keys = tuple(d.key for d in impl.dtypes)

    def records(where: Place | None) -> dict[tuple[Place, str], Record]:
        rows = ledgers.of_revision(revision, where) if revision else ()
        return {(at, r.claim): r for at, r in rows if (r.op, r.impl, r.dtypes) == (op.name, impl.name, keys)}

    here = records(place)
    anywhere: dict[tuple[Place, str], Record] | None = None
    precision, aside = impl.precision, []
    for claim in claims_of(precision):
        own = here.get((place, claim))
        reason = None
        if own is not None and not own.passed:
            reason = f"it failed here on {own.date} ({own.where or own.worst})"
        elif own is None and trust is Trust.LEDGER:
            reason = "this revision was not tried on this device and driver"
        elif own is None:
            anywhere = records(None) if anywhere is None else anywhere
            tried = [r for (_, kind), r in anywhere.items() if kind == claim]
            if not tried:
                reason = "this revision was not tried on any device"
            elif not any(r.passed for r in tried):
                reason = "it failed wherever it was tried"
        if reason is not None:
            aside.append(f"{claim}, since {reason if revision else 'the kernel has no tracked revision'}")
            precision = replace(precision, **_FIELDS[claim])
            if claim == "ulp" and impl.precision.max_ulp == 0:
                precision = replace(precision, max_relative=None, max_absolute=None)
    return Belief(precision, tuple(aside))


def evidence_for(place: Callable[[str], Place]) -> Callable[[OpEntry, str, BackendImpl], Belief] | None:
    """Returns what routing asks of each candidate on a device (``place`` by backend); None where all is believed."""
    trust = Trust(env.get("FUELVK_TRUST"))
    if trust is Trust.CLAIMS:
        return None

    def evidence(op: OpEntry, backend: str, impl: BackendImpl) -> Belief:
        where = place(backend)
        _name_unverified(where, trust)
        return believed(op, impl, where, trust)

    return evidence


_lock = threading.Lock()
_named: set[Place] = set()


def _name_unverified(place: Place, trust: Trust) -> None:
    """Warns once in a process that a Vulkan device has no ledger."""
    if place.backend != "vulkan" or place in _named:
        return
    with _lock:
        if place in _named:
            return
        _named.add(place)
    if place not in book().places():
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
