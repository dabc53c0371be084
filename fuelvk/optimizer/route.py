"""Which implementation serves a call, and why the others do not.

A claim counts towards a tolerance when it is believed: ``evidence`` is asked for each candidate what of its guarantee
is, and the rest is set aside, claim by claim (``optimizer.trust``).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Shape
from fuelvk.graph.types import OpEntry
from fuelvk.kernels.types import BackendImpl, CostEstimate, FusedKernelRegistry
from fuelvk.optimizer.tolerance import Tolerance
from fuelvk.optimizer.trust import Belief, grouped

SET_ASIDE = "set aside: "
Evidence = Callable[[OpEntry, str, BackendImpl], Belief]
Doubts = Callable[[str, BackendImpl], str | None]


class Verdict(enum.StrEnum):
    """What became of a candidate."""

    CHOSEN = "chosen"
    ALTERNATIVE = "alternative"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One implementation that was considered. ``set_aside`` names each claim that was not believed, with the reason.

    ``unfit`` says that its claims, as far as they are believed, do not fit the tolerance.
    """

    backend: str
    impl: BackendImpl
    verdict: Verdict
    reason: str
    cost: CostEstimate
    set_aside: tuple[str, ...] = ()
    unfit: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """The decision for one op at one place in a graph."""

    op: OpEntry
    dtypes: tuple[DType, ...]
    shapes: tuple[Shape | None, ...]
    chosen: Candidate | None
    candidates: tuple[Candidate, ...]

    def passed_over(self) -> tuple[Candidate, ...]:
        """Returns the implementations that would have been chosen had all their claims been believed."""
        before = self.candidates
        if self.chosen is not None:
            before = before[: next(i for i, c in enumerate(before) if c is self.chosen)]
        return tuple(c for c in before if c.unfit and c.reason.startswith(SET_ASIDE))

    def refusals(self) -> str:
        """Returns each implementation that exists with the reason it was refused, as text for an error.

        Where some are written for the dtypes asked for, only those are named.
        """
        if not self.candidates:
            return "no implementation is registered"
        fitting = [c for c in self.candidates if c.impl.dtypes[: len(self.dtypes)] == self.dtypes]
        return "; ".join(
            f"{c.impl.name}[{','.join(d.key for d in c.impl.dtypes)}]: {c.reason}"
            for c in fitting or self.candidates
        )


def matches(op: OpEntry, impl: BackendImpl, dtypes: Sequence[DType | None]) -> bool:
    """True when an implementation's dtype tuple fits a call; an omitted optional input fits any dtype.

    A variadic input repeats the tuple's first dtype.
    """
    wanted = impl.dtypes
    if op.args and op.args[-1].variadic:
        return all(d == wanted[0] for d in dtypes[:-1]) and dtypes[-1] == wanted[-1]
    return len(wanted) == len(dtypes) and all(
        d is None or d == w for d, w in zip(dtypes, wanted, strict=True)
    )


def route(
    op: OpEntry,
    dtypes: tuple[DType | None, ...],
    shapes: tuple[Shape | None, ...],
    params: Mapping[str, Any],
    *,
    kernels: FusedKernelRegistry,
    capabilities: Mapping[str, Any],
    order: Sequence[str],
    tolerance: Tolerance,
    evidence: Evidence | None = None,
    doubts: Doubts | None = None,
) -> Route:
    """Chooses among the implementations of ``op``: the first admitted one, backends in ``order``.

    ``doubts`` says why the device at hand does not bear out a claim; such an implementation serves a request that
    accepts anything, and no other.

    ``dtypes`` are those of the inputs (None where omitted) followed by the outputs; ``shapes`` likewise.
    """
    rows: list[Candidate] = []
    chosen: Candidate | None = None
    for backend in order:
        for owner, impl in kernels.impls_for(op.id):
            if owner != backend:
                continue
            belief = Belief(impl.precision)
            if evidence is not None and matches(op, impl, dtypes):
                belief = evidence(op, owner, impl)
            reason, unfit = _refusal(
                op, impl, dtypes, shapes, params, capabilities.get(backend), tolerance, belief
            )
            if reason is None and doubts is not None and not tolerance.anything:
                reason = doubts(owner, impl)
            if reason is None and chosen is None:
                verdict, reason = Verdict.CHOSEN, "first admitted"
            elif reason is None:
                verdict, reason = Verdict.ALTERNATIVE, f"admitted, after {chosen.impl.name if chosen else ''}"
            else:
                verdict = Verdict.REFUSED
            if verdict is not Verdict.REFUSED:
                reason = "; ".join(
                    r for r in (reason, tolerance.remark(belief.precision, impl.dtypes[-1])) if r
                )
            cost = impl.cost(shapes, params, capabilities.get(backend))
            candidate = Candidate(owner, impl, verdict, reason, cost, belief.set_aside, unfit)
            rows.append(candidate)
            if verdict is Verdict.CHOSEN:
                chosen = candidate
    for owner, impl in kernels.impls_for(op.id):
        if owner not in order:
            rows.append(
                Candidate(owner, impl, Verdict.REFUSED, f"backend {owner} is not used here", CostEstimate())
            )
    known = tuple(d for d in dtypes if d is not None)
    return Route(op, known, shapes, chosen, tuple(rows))


def _refusal(
    op: OpEntry,
    impl: BackendImpl,
    dtypes: tuple[DType | None, ...],
    shapes: tuple[Shape | None, ...],
    params: Mapping[str, Any],
    capabilities: Any,
    tolerance: Tolerance,
    belief: Belief,
) -> tuple[str | None, bool]:
    """Returns why an implementation does not serve, or None, and whether that is its claims."""
    if not matches(op, impl, dtypes):
        return f"written for {', '.join(d.key for d in impl.dtypes)}", False
    dtype = impl.dtypes[-1]
    reason = tolerance.refuses(belief.precision, dtype)
    if reason is None:
        return impl.admits(shapes, params, capabilities), False
    if belief.set_aside and tolerance.refuses(impl.precision, dtype) is None:
        refused = impl.admits(shapes, params, capabilities)
        if refused is not None:
            return refused, False
        reason = SET_ASIDE + grouped(belief.set_aside)
    return reason, True
