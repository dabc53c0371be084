"""Holds implementations to their claims on a device and keeps what was found: ``fv.verify`` and ``fuelvk verify``."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import DType
from fuelvk.base.errors import ParameterError, UnknownNameError, UnsupportedError, closest
from fuelvk.base.files import replace_file
from fuelvk.evidence import CLAIMS, Place, Record, book, forget, ledger_dir, update, writable
from fuelvk.graph.types import OpEntry, Sample
from fuelvk.kernels.types import BackendImpl
from fuelvk.optimizer.trust import claims_of
from fuelvk.runtime.devices import Device, VulkanDevice
from fuelvk.runtime.devices import device as find_device
from fuelvk.verify.again import Question, in_a_new_process
from fuelvk.verify.calls import EFFORTS, Level, calls
from fuelvk.verify.protocols import Finding, Shared, Subject, findings, promised
from fuelvk.verify.suite import SEED, Suite, default_suite

PROTOCOL = 2
_SAVE_EVERY = 5.0  # seconds

Row = tuple[OpEntry, str, BackendImpl]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One record and the place it holds for."""

    place: Place
    record: Record


@dataclass(slots=True)
class Progress:
    """How far a run is: implementations done and in all, and the one at hand."""

    done: int
    total: int
    at: str


@dataclass(slots=True)
class Run:
    """A verification of one device. ``outcomes`` grows as it goes; ``left`` are implementations it had no time for,
    ``refused`` those that take no call on this device, with the reason. ``changed`` leaves out what a ledger covers,
    ``any_host`` counts records of processors of other instruction sets among that. ``problems`` names what was damaged
    in the ledgers there were.
    """

    device: Device
    suite: Suite = field(default_factory=default_suite)
    ops: Sequence[str] = ()
    dtype: DType | None = None
    claims: frozenset[str] = frozenset(CLAIMS) - {"sweep"}
    level: Level = Level.FULL
    changed: bool = False
    any_host: bool = False
    resume: bool = False
    budget: float | None = None
    folder: Path | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    _refused: dict[tuple[str, ...], str] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        """Returns the implementations that this run is to verify, those of one op and dtypes together."""
        found = []
        for op, backend, impl in self.suite.implementations():
            if backend not in self._backends() or (self.ops and op.name not in self.ops):
                continue
            if self.dtype is not None and self.dtype not in impl.dtypes:
                continue
            if self.changed and not self.stale(op, backend, impl):
                continue
            found.append((op, backend, impl))
        order: dict[tuple[str, tuple[DType, ...]], int] = {}
        for op, _, impl in found:
            order.setdefault((op.name, impl.dtypes), len(order))
        return sorted(found, key=lambda r: order[r[0].name, r[2].dtypes])

    def _backends(self) -> tuple[str, ...]:
        """Returns the backends whose kernels are this device's to verify."""
        return ("vulkan",) if isinstance(self.device, VulkanDevice) else ("cpu",)

    def stale(self, op: OpEntry, backend: str, impl: BackendImpl) -> tuple[str, ...]:
        """Returns the claims of an implementation that no record of this revision covers in this place (where it is a
        processor: on its instruction set).
        """
        place = self.device.place(backend)
        known = {
            r.claim
            for where, r in book().of_revision(str(impl.revision))
            if where == place
            and (r.op, r.impl, r.dtypes) == (op.name, impl.name, tuple(d.key for d in impl.dtypes))
            and r.protocol == PROTOCOL
            and (self.any_host or r.host == place.host)
        }
        return tuple(c for c in claims_of(impl.precision) if c in self.claims and c not in known)

    def go(self, progress: Callable[[Progress], None] | None = None) -> list[Outcome]:
        """Runs to the end or until the budget is spent; returns the outcomes.

        Where ``folder`` is given, records are written to the ledgers there as they come, and an interrupted run
        leaves behind what ``resume`` needs.
        """
        if self.folder is not None:
            writable(self.folder, self.device.place(self._backends()[0]))
            known = book()
            known.ledgers()
            self.problems += known.problems
        rows = self.rows()
        if (
            "canonical" in self.claims
            and not ckernels.available()
            and any(r[2].precision.canonical for r in rows)
        ):
            raise UnsupportedError(
                "strict kernels are held against the C kernels, which cannot run", seen=ckernels.why_missing(),
                hint="build them, or leave the claim canonical out",
            )  # fmt: skip
        done = self._done_before() if self.resume else set()
        rows = [r for r in rows if identity(*r) not in done]
        started = saved = time.monotonic()
        waiting: list[Outcome] = []
        questions: list[Question] = []
        total, number = len(rows), 0
        flushes = flushes_subnormals(self.device)
        try:
            for (op, dtypes), group in itertools.groupby(rows, key=lambda r: (r[0], r[2].dtypes)):
                members = list(group)
                shared, tried = Shared(), calls(self.suite, op, dtypes, self.level)
                for op, backend, impl in members:
                    name = identity(op, backend, impl)
                    if self.budget is not None and time.monotonic() - started > self.budget:
                        self.left.append(name)
                        continue
                    if progress is not None:
                        progress(
                            Progress(
                                number,
                                total,
                                f"{op.name} {impl.name} {'/'.join(dict.fromkeys(d.key for d in dtypes))}",
                            )
                        )
                    number += 1
                    subject = Subject(self.suite, op, backend, impl, self.device, find_device("cpu"), flushes)
                    new = self._verified(subject, shared, tried, questions)
                    self.outcomes += new
                    waiting += new
                    done.add(name)
                if time.monotonic() - saved > _SAVE_EVERY:
                    self._keep(waiting, done)
                    waiting, saved = [], time.monotonic()
            if questions:
                if progress is not None:
                    progress(Progress(number, total, "once more in a new process"))
                waiting += self._asked_again(questions)
        except BaseException:
            self._keep(waiting, done)
            raise
        self._keep(waiting, done, finished=not self.left)
        return self.outcomes

    def one(self, row: Row) -> list[Outcome]:
        """Tries the claims of one implementation; keeps nothing."""
        op, backend, impl = row
        subject = Subject(
            self.suite, op, backend, impl, self.device, find_device("cpu"), flushes_subnormals(self.device)
        )
        return self._verified(subject, Shared(), calls(self.suite, op, impl.dtypes, self.level), None)

    def _verified(
        self, subject: Subject, shared: Shared, tried: Sequence[Sample], questions: list[Question] | None
    ) -> list[Outcome]:
        """Tries the claims of an implementation; adds what a new process is to be asked to ``questions``."""
        impl, effort = subject.impl, EFFORTS[self.level]
        claims = [c for c in claims_of(impl.precision) if c in self.claims]
        if self.changed:
            claims = [c for c in claims if c in self.stale(subject.op, subject.backend, impl)]
        place = self.device.place(subject.backend)
        with np.errstate(all="ignore"):
            tried_claims = list(findings(subject, shared, tried, claims, effort.rounds))
        asked = questions is not None and effort.new_process and self.suite is default_suite()
        for finding in tried_claims:
            if finding.claim == "bit_stable" and not asked:
                finding.notes = "; ".join(n for n in (finding.notes, "not repeated in a new process") if n)
        found = [Outcome(place, self._record(subject, finding)) for finding in tried_claims]
        if not found and claims and subject.refusals:
            self.refused[identity(subject.op, subject.backend, impl)] = next(iter(subject.refusals.values()))
            key = (subject.op.name, subject.backend, impl.name, ",".join(d.key for d in impl.dtypes))
            self._refused[key] = str(impl.revision)
        if questions is not None and asked and "bit_stable" in claims and found:
            questions += Question.of(subject, tried, self.level)
        return found

    def _asked_again(self, questions: Sequence[Question]) -> list[Outcome]:
        """Lets a new process repeat what was found bit-stable; returns the outcomes that this overturns."""
        wrong = in_a_new_process(self.device, questions)
        changed = []
        for number, outcome in enumerate(self.outcomes):
            text = wrong.get(
                (outcome.record.op, outcome.record.backend, outcome.record.impl, outcome.record.dtypes)
            )
            if text is not None and outcome.record.claim == "bit_stable":
                record = replace(
                    outcome.record, passed=False, worst=max(1.0, outcome.record.worst), where=text
                )
                self.outcomes[number] = Outcome(outcome.place, record)
                changed.append(self.outcomes[number])
        return changed

    def _record(self, subject: Subject, finding: Finding) -> Record:
        impl = subject.impl
        flushed = "subnormal inputs and results left out: the device flushes them" if subject.flushes else ""
        return Record(
            op=subject.op.name,
            backend=subject.backend,
            impl=impl.name,
            dtypes=tuple(d.key for d in impl.dtypes),
            revision=str(impl.revision),
            claim=finding.claim,
            promised=promised(impl.precision, finding.claim),
            worst=float(f"{finding.worst:.6g}"),
            where=finding.where,
            inputs=finding.inputs,
            shapes=finding.shapes,
            seed=SEED,
            protocol=PROTOCOL,
            date=datetime.datetime.now(datetime.UTC).date().isoformat(),
            passed=finding.passed,
            notes="; ".join(n for n in (finding.notes, flushed if subject.backend == "vulkan" else "") if n),
            host=self.device.place(subject.backend).host,
        )

    @property
    def resumable(self) -> bool:
        """Whether an interrupted run of this device and level left behind what ``resume`` needs."""
        return self.folder is not None and self._state().is_file()

    def _state(self) -> Path:
        place = self.device.place(self._backends()[0])
        assert self.folder is not None
        return self.folder / "unfinished" / f"verify-{place.slug}-{self.level.value}.json"

    def _done_before(self) -> set[str]:
        if self.folder is None:
            return set()
        try:
            rows = json.loads(self._state().read_text(encoding="utf-8"))
            return {str(r) for r in rows}
        except (OSError, ValueError, TypeError):
            return set()

    def _keep(self, waiting: Sequence[Outcome], done: set[str], *, finished: bool = False) -> None:
        if self.folder is None:
            return
        places = {o.place: None for o in waiting}
        if finished and self._refused:
            places[self.device.place(self._backends()[0])] = None
        for place in places:
            new = [o.record for o in waiting if o.place == place]
            found = update(self.folder, place, new, refused=self._refused)
            path = str(writable(self.folder, place))
            if not any(known.startswith(path) for known in self.problems):
                self.problems += found.problems
        forget()
        if finished:
            with contextlib.suppress(FileNotFoundError):
                self._state().unlink()
        else:
            replace_file(self._state(), json.dumps(sorted(done)).encode())


def identity(op: OpEntry, backend: str, impl: BackendImpl) -> str:
    """Returns what tells an implementation of a revision from others."""
    return f"{op.name} {backend} {impl.name} {','.join(d.key for d in impl.dtypes)} {impl.revision}"


def flushes_subnormals(device: Device) -> bool:
    """Says whether a device turns subnormal results into zeros, by trying."""
    if not isinstance(device, VulkanDevice):
        return False
    from fuelvk.graph.registry import find_op
    from fuelvk.registry import default_kernel_registry
    from fuelvk.verify.harness import run_impl

    op = find_op("mul")
    assert op is not None
    impl = default_kernel_registry().lookup_by_dtypes(op.id, "vulkan", (DType.F32,) * 3)
    assert impl is not None
    tiny, half = np.array([2.0**-126], np.float32), np.array([0.5], np.float32)
    return bool(run_impl(op, "vulkan", impl, (tiny, half), {}, device)[0][0] == 0)


def chosen_claims(claims: Sequence[str] | None) -> frozenset[str]:
    """Returns the kinds of claims that are named, all by default; raises UnknownNameError."""
    known = [c for c in CLAIMS if c != "sweep"]
    for claim in claims or ():
        if claim not in known:
            raise UnknownNameError(
                "unknown kind of claim",
                asked=claim,
                allowed=", ".join(known),
                hint=closest(claim, known) or None,
            )
    return frozenset(claims or known)


def chosen_ops(names: Sequence[str], suite: Suite) -> tuple[str, ...]:
    """Returns op names in lower case; raises UnknownNameError for one that no kernel of the suite serves."""
    known = {op.name for op, _, _ in suite.implementations()}
    for name in names:
        if name.lower() not in known:
            raise UnknownNameError(
                "no kernel serves this op", asked=name, hint=closest(name, known) or "see `fuelvk ops`"
            )
    return tuple(n.lower() for n in names)


def verify(
    op: str | Sequence[str] | None = None,
    *,
    device: str | Device | None = None,
    dtype: DType | str | None = None,
    claims: Sequence[str] | None = None,
    level: Level | str = Level.FULL,
    suite: Suite | None = None,
    changed: bool = False,
    budget: float | None = None,
    keep: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[Record, ...]:
    """Holds kernels to their claims on a device and returns a record for each claim tried.

    ``op`` names one op or several (all by default), ``device`` is as in ``fv.device``, ``dtype`` leaves only
    implementations with an operand of it, ``claims`` only some kinds (``fuelvk.evidence.CLAIMS``). ``level`` is
    "smoke" or "full". ``suite`` brings kernels of one's own. ``changed`` leaves out what a ledger covers, ``budget``
    stops after so many seconds, ``keep`` writes the records to the user's ledgers. Nothing is raised for a claim
    that fails: its record says so. An implementation that the device cannot run has no record.
    """
    own = suite if suite is not None else default_suite()
    try:
        chosen = level if isinstance(level, Level) else Level(level)
    except ValueError:
        raise ParameterError(
            "no such level", asked=level, allowed=", ".join(v.value for v in Level)
        ) from None
    names = (op,) if isinstance(op, str) else tuple(op or ())
    run = Run(
        device=find_device(device),
        suite=own,
        ops=chosen_ops(names, own),
        dtype=None if dtype is None else DType.of(dtype),
        claims=chosen_claims(claims),
        level=chosen,
        changed=changed,
        budget=budget,
        folder=ledger_dir() if keep else None,
    )
    return tuple(o.record for o in run.go(progress))


def unverified(outcomes: Sequence[Outcome]) -> Iterator[Outcome]:
    """Yields the outcomes whose claim failed."""
    yield from (o for o in outcomes if not o.record.passed)
