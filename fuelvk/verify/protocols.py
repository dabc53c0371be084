"""How each kind of claim is tried on one implementation; each protocol returns a Finding per claim.

* ulp, relative, absolute, bound: every call against the oracle, within the claim (``compare``), guard bytes intact.
* canonical: every call against the bytes of the C kernel; the C kernel itself is what others are compared with.
* bit_stable: repeats on recycled memory full of other bytes, and while another thread keeps a core busy; a new
  process is the runner's.
* batch_invariant: rows of a call alone and in another order against the same rows in the batch. What is a row is
  found by asking the oracle: an axis 0 along which it treats every row for itself.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cpu_reference.numpy._common import is_float
from fuelvk.base.dtypes import DType
from fuelvk.base.errors import UnsupportedError
from fuelvk.graph.types import OpEntry, Sample
from fuelvk.kernels.types import BackendImpl, PrecisionGuarantee
from fuelvk.runtime.devices import Device, VulkanDevice
from fuelvk.verify.calls import size
from fuelvk.verify.compare import compare, differing
from fuelvk.verify.harness import SENTINEL, GuardError, RefusedError, run_impl
from fuelvk.verify.suite import Array, Suite

Outputs = tuple[Array, ...]
_ERRORS = ("ulp", "relative", "absolute", "bound")
_TINY = 2.0**-126
_DIRT = (0xFF, 0x7F)
_ROWS = 3
_BATCHES = 4


@dataclass(slots=True)
class Finding:
    """What was found of one claim so far."""

    claim: str
    worst: float = 0.0
    where: str = ""
    inputs: int = 0
    shapes: int = 0
    passed: bool = True
    notes: str = ""

    def seen(self, worst: float, where: str, inputs: int, *, broken: bool) -> None:
        """Adds a call."""
        self.inputs += inputs
        self.shapes += 1
        if broken and self.passed:
            self.passed, self.worst, self.where = False, worst, where
        elif worst > self.worst and (broken or self.passed):
            self.worst, self.where = worst, where


def promised(precision: PrecisionGuarantee, claim: str) -> str:
    """Returns a claim in words."""
    if claim == "ulp":
        return "exact" if precision.max_ulp == 0 else f"{precision.max_ulp:g} ULP"
    if claim == "relative":
        return f"{precision.max_relative:g}"
    if claim == "absolute":
        return f"{precision.max_absolute:g}"
    if claim == "bound" and precision.bound is not None:
        return (precision.bound.__doc__ or "a bound by shape").strip().splitlines()[0].rstrip(".")
    return ""


@dataclass(slots=True)
class Subject:
    """One implementation on one device, with what its calls gave so far."""

    suite: Suite
    op: OpEntry
    backend: str
    impl: BackendImpl
    device: Device
    host: Device
    flushes: bool
    results: dict[str, Outputs] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    guards: dict[str, str] = field(default_factory=dict)
    left: int = SENTINEL

    def run(self, call: Sample) -> Outputs:
        """Returns the outputs of a call; raises RefusedError where the implementation does not take it.

        The outputs' memory is full of ``left`` beforehand.
        """
        where = self.device if self.backend != "cpu" else self.host
        return run_impl(self.op, self.backend, self.impl, call.inputs, call.params, where, self.left)

    def first(self, call: Sample) -> Outputs | None:
        """Returns what the first run of a call gave; None where it was refused or wrote outside its output."""
        label = call.label
        if label not in self.results and label not in self.refusals and label not in self.guards:
            try:
                self.results[label] = self.run(call)
            except (RefusedError, UnsupportedError) as reason:
                self.refusals[label] = str(reason)
            except GuardError as fault:
                self.guards[label] = str(fault)
        return self.results.get(label)


@dataclass(slots=True)
class Shared:
    """What all implementations of an op in some dtypes are held against; computed once."""

    exact: dict[str, Outputs] = field(default_factory=dict)
    canonical: dict[str, Outputs | str] = field(default_factory=dict)
    batches: list[Batch] | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """A call whose inputs ``along`` have rows along axis 0, as the outputs do."""

    call: Sample
    along: tuple[int, ...]
    rows: int

    def of(self, picks: Any) -> Sample:
        """Returns the call with these rows only."""
        inputs = tuple(
            np.ascontiguousarray(x[picks]) if i in self.along and x is not None else x
            for i, x in enumerate(self.call.inputs)
        )
        return replace(self.call, inputs=inputs)


def excluded(subject: Subject, call: Sample) -> bool:
    """Says whether claims exclude a call: subnormal inputs on a device that flushes them."""
    return (
        subject.flushes
        and subject.backend == "vulkan"
        and any(
            x is not None
            and DType.of(x).is_float
            and bool(((x != 0) & (np.abs(x.astype(np.float64)) < _TINY)).any())
            for x in call.inputs
        )
    )


def errors(
    subject: Subject, shared: Shared, calls: Sequence[Sample], claims: Sequence[str]
) -> Iterator[Finding]:
    """Tries the bounds among ``claims`` on every call."""
    findings = {c: Finding(c) for c in claims if c in _ERRORS}
    if not findings:
        return
    flushes = subject.flushes and subject.backend == "vulkan"
    for call in calls:
        got = None if excluded(subject, call) else subject.first(call)
        if call.label in subject.guards:
            for finding in findings.values():
                finding.seen(np.inf, f"{call.label}: {subject.guards[call.label]}", 0, broken=True)
        if got is None:
            continue
        exact = shared.exact.get(call.label)
        if exact is None:
            exact = shared.exact[call.label] = subject.suite.oracle(subject.op, call)
        _, params = subject.op.bind(call.inputs, call.params)
        for number, (result, want) in enumerate(zip(got, exact, strict=True)):
            report = compare(
                result, want, subject.impl.precision, DType.of(result),
                inputs=call.inputs, params=params, flushes=flushes,
            )  # fmt: skip
            measured = {
                "ulp": report.worst_ulp, "relative": report.worst_relative, "absolute": report.worst_absolute,
                "bound": report.worst_bound_ratio,
            }  # fmt: skip
            for kind, finding in findings.items():
                broken = kind in report.kinds or "values" in report.kinds
                worst = np.inf if "values" in report.kinds else measured[kind]
                text = "; ".join(report.broken) if "values" in report.kinds else _place(report, call, number)
                finding.seen(worst, f"{call.label} {text}", result.size, broken=broken)
    yield from findings.values()


def _place(report: Any, call: Sample, output: int) -> str:
    """Returns where the worst error is, with the inputs where they stand element by element."""
    if report.where is None:
        return ""
    text = f"{list(report.where)}"
    if output:
        text = f"output {output} {text}"
    values = []
    for x in call.inputs:
        if x is None or x.ndim > len(report.where) or x.size == 0:
            continue
        at = report.where[len(report.where) - x.ndim :]
        if all(i < n or n == 1 for i, n in zip(at, x.shape, strict=True)):
            values.append(repr(x[tuple(0 if n == 1 else i for i, n in zip(at, x.shape, strict=True))].item()))
    given = f" of {', '.join(values)}" if len(values) == sum(x is not None for x in call.inputs) else ""
    return f"{text}{given}: {report.got!r} for {report.want!r}"


def canonical(subject: Subject, shared: Shared, calls: Sequence[Sample]) -> Finding:
    """Compares every call with the bytes of the C kernel."""
    finding = Finding("canonical")
    reference = subject.suite.canonical(subject.op, subject.impl)
    if reference is None:
        return replace(finding, passed=False, where="there is no C kernel for these dtypes")
    if reference is subject.impl:
        finding.notes = "this kernel defines the bits"
    judge = Subject(subject.suite, subject.op, "cpu", reference, subject.host, subject.host, False)
    for call in calls:
        got = None if excluded(subject, call) else subject.first(call)
        if got is None:
            continue
        want = shared.canonical.get(call.label)
        if want is None:
            try:
                want = judge.run(call)
            except RefusedError as reason:
                want = str(reason)
            shared.canonical[call.label] = want
        if isinstance(want, str):
            return replace(finding, passed=False, where=f"the C kernel does not run: {want}")
        _hold(finding, call.label, got, want, flushes=subject.flushes and subject.backend == "vulkan")
    return finding


def _hold(finding: Finding, label: str, got: Outputs, want: Outputs, *, flushes: bool = False) -> None:
    for a, b in zip(got, want, strict=True):
        count, text = differing(a, b, flushes=flushes)
        finding.seen(count, f"{label}: {text}" if count else "", a.size, broken=count > 0)


def _hold_again(finding: Finding, label: str, subject: Subject, call: Sample, want: Outputs) -> None:
    """Runs a call once more and compares; one that the implementation does not take counts for nothing."""
    try:
        _hold(finding, label, subject.run(call), want)
    except GuardError as fault:
        finding.seen(np.inf, f"{label}: {fault}", 0, broken=True)
    except (RefusedError, UnsupportedError):
        return


def bit_stable(subject: Subject, calls: Sequence[Sample], rounds: int) -> Finding:
    """Repeats the largest call on recycled memory and beside other work."""
    finding = Finding("bit_stable")
    taken = [c for c in sorted(calls, key=size, reverse=True) if subject.first(c) is not None][:rounds]
    for call in taken:
        first = subject.first(call)
        assert first is not None
        for number, disturbed in enumerate((*(_recycled(subject, call, p) for p in _DIRT[:rounds]), _busy())):
            label = f"{call.label}, repeat {number + 1}"
            with disturbed:
                _hold_again(finding, label, subject, call, first)
    return finding


@contextlib.contextmanager
def _recycled(subject: Subject, call: Sample, pattern: int) -> Iterator[None]:
    """Leaves memory of the sizes of a call behind, filled with a pattern, for the next run to find; that of its
    outputs is full of it too.
    """
    sizes = [
        max(x.nbytes, 1) for x in (*subject.results[call.label], *(i for i in call.inputs if i is not None))
    ]
    if subject.backend == "vulkan" and isinstance(subject.device, VulkanDevice):
        vk = subject.device.vk
        dirt = [vk.alloc(n) for n in sizes]
        for buffer in dirt:
            vk.write(buffer, np.full(buffer.nbytes, pattern, np.uint8))
        for buffer in dirt:
            buffer.free()
    else:
        for n in sizes:
            np.full(n, pattern, np.uint8)
    before, subject.left = subject.left, pattern
    try:
        yield
    finally:
        subject.left = before


@contextlib.contextmanager
def _busy() -> Iterator[None]:
    """Keeps another core busy."""
    stop = threading.Event()
    numbers = np.random.default_rng(1).random(1 << 14)

    def work() -> None:
        while not stop.is_set():
            np.sort(numbers)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def batch_invariant(subject: Subject, shared: Shared, calls: Sequence[Sample], rounds: int) -> Finding:
    """Runs rows alone, and all rows in reverse, against the same rows in the batch."""
    finding = Finding("batch_invariant")
    if shared.batches is None:
        shared.batches = list(_batches(subject.suite, subject.op, calls, shared))
    for batch in shared.batches[: _BATCHES if rounds > 1 else 1]:
        whole = None if excluded(subject, batch.call) else subject.first(batch.call)
        if whole is None:
            continue
        picks: list[Any] = [slice(i, i + 1) for i in sorted({0, batch.rows // 2, batch.rows - 1})[:_ROWS]]
        picks.append(slice(None, None, -1))
        for pick in picks:
            named = "reversed" if pick.step else f"row {pick.start} alone"
            want = tuple(np.ascontiguousarray(y[pick]) for y in whole)
            _hold_again(finding, f"{batch.call.label}, {named}", subject, batch.of(pick), want)
    if not finding.shapes:
        finding.notes = "no call has rows along its first axis"
    return finding


def _batches(suite: Suite, op: OpEntry, calls: Sequence[Sample], shared: Shared) -> Iterator[Batch]:
    """Yields calls whose first axis is one of rows, by the oracle; the largest first."""
    for call in sorted(calls, key=size, reverse=True):
        if size(call) > 1 << 16:
            continue
        exact = shared.exact.get(call.label)
        if exact is None:
            exact = shared.exact[call.label] = suite.oracle(op, call)
        rows = {y.shape[0] if y.ndim else 0 for y in exact}
        if len(rows) != 1 or not 2 <= (count := rows.pop()) <= 4096:
            continue
        along = tuple(
            i for i, x in enumerate(call.inputs) if x is not None and x.ndim and x.shape[0] == count
        )
        for chosen in dict.fromkeys((along, along[:1], along[:3])):
            batch = Batch(call, chosen, count)
            if chosen and _rows_stand_alone(suite, op, batch, exact):
                yield batch
                break


def _rows_stand_alone(suite: Suite, op: OpEntry, batch: Batch, exact: Outputs) -> bool:
    for pick in (slice(0, 1), slice(batch.rows - 1, batch.rows), slice(None, None, -1)):
        try:
            alone = suite.oracle(op, batch.of(pick))
        except Exception:  # the oracle of a call that is none: not rows
            return False
        for y, whole in zip(alone, exact, strict=True):
            if not _alike(y, whole[pick]):
                return False
    return True


def _alike(y: Array, want: Array) -> bool:
    """Says whether two exact results are the same but for the last digits of the oracle's own arithmetic."""
    if y.shape != want.shape or not np.allclose(y, want, rtol=1e-9, atol=0, equal_nan=True):
        return False
    return not is_float(y) or bool(np.all((np.signbit(y) == np.signbit(want)) | (y != 0)))


def findings(
    subject: Subject, shared: Shared, calls: Sequence[Sample], claims: Sequence[str], rounds: int
) -> Iterator[Finding]:
    """Tries ``claims`` on one implementation; yields nothing where it took no call on this device."""
    if all(subject.first(c) is None and c.label in subject.refusals for c in calls):
        return
    yield from errors(subject, shared, calls, claims)
    if "canonical" in claims:
        yield canonical(subject, shared, calls)
    if "bit_stable" in claims:
        yield bit_stable(subject, calls, rounds)
    if "batch_invariant" in claims:
        yield batch_invariant(subject, shared, calls, rounds)
