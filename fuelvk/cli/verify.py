"""``fuelvk verify``: hold the kernels to their claims on a device, and keep what was found."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import FormatError, ParameterError
from fuelvk.cli._output import Result, console, table
from fuelvk.evidence import Place, Record
from fuelvk.graph.types import OpEntry

if TYPE_CHECKING:
    from fuelvk.verify.sweep_source import Level
    from fuelvk.verify.sweep_state import SweepState


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ops", nargs="*", metavar="OP", help="names of ops (default: all)")
    parser.add_argument("--device", help="device, as in FUELVK_DEVICE")
    parser.add_argument("--dtype", help="only implementations with an operand of this dtype")
    parser.add_argument("--claims", metavar="KIND,...", help="only these kinds of claims, e.g. ulp,canonical")
    parser.add_argument(
        "--smoke", action="store_true", help="a few inputs each: under a minute on a CPU driver"
    )
    parser.add_argument(
        "--changed",
        action="store_true",
        help="only claims that no ledger covers for this revision; with --sweep, only what was not swept as it is",
    )
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="stop after so many seconds")
    parser.add_argument("--resume", action="store_true", help="go on where an interrupted run stopped")
    parser.add_argument("--html", metavar="FILE", help="write a report with plots of error against input")
    parser.add_argument(
        "--compare",
        nargs=2,
        metavar=("A", "B"),
        help="show where the bits of two devices differ, and nothing else",
    )
    parser.add_argument(
        "--sweep", action="store_true", help="try all 2^32 inputs of F32 functions (minutes per function)"
    )
    parser.add_argument(
        "--range", metavar="FIRST:LAST", help="with --sweep: only inputs of these bits; nothing is recorded"
    )
    parser.add_argument(
        "--status",
        action="store_true",
        help="with --sweep: show what sweeps there are and which lag; run none",
    )
    parser.add_argument(
        "--merge", metavar="FOLDER", help="add the ledgers in a folder to those kept here, and nothing else"
    )


def run(options: argparse.Namespace) -> Result:
    if options.compare is not None:
        return _differences(options)
    if options.merge is not None:
        return _merge(options)
    if options.sweep and options.status:
        return _status(options)
    return _sweep(options) if options.sweep else _claims(options)


def _claims(options: argparse.Namespace) -> Result:
    from fuelvk.evidence import ledger_dir
    from fuelvk.runtime.devices import device
    from fuelvk.verify.calls import Level
    from fuelvk.verify.runner import Progress, Run, chosen_claims, chosen_ops
    from fuelvk.verify.suite import default_suite
    from fuelvk.verify.sweep_state import State, states

    claims = chosen_claims(None if options.claims is None else [c.strip() for c in options.claims.split(",")])
    job = Run(
        device=device(options.device),
        ops=chosen_ops(options.ops, default_suite()),
        dtype=None if options.dtype is None else DType.of(options.dtype),
        claims=claims,
        level=Level.SMOKE if options.smoke else Level.FULL,
        changed=options.changed,
        resume=options.resume,
        budget=options.budget,
        folder=ledger_dir(),
    )
    if options.resume and not job.resumable:
        text = f"nothing is left to resume: no interrupted run on {job.device.name}; without --resume all is tried"
        return Result({"level": job.level.value, "records": [], "left": []}, lambda: console().print(text))
    if options.html is not None:
        _page(options.html)
    started = time.perf_counter()
    trouble: list[str] = []
    interrupted = False
    with progress() as show:
        report = show("verify")

        def step(at: Progress) -> None:
            report(at.done, at.total, at.at)

        try:
            job.go(step)
        except KeyboardInterrupt:
            interrupted = True
        except (FormatError, OSError) as error:
            if not job.outcomes:
                raise
            trouble.append(f"not all was kept: {error}")
    outcomes = job.outcomes
    seconds = time.perf_counter() - started
    failed = [o for o in outcomes if not o.record.passed]
    swept = states(device(options.device), options.ops)
    lagging = dict.fromkeys(s.op for s in swept if s.state is State.LAGGING)
    if options.html is not None:
        from fuelvk.verify.report import write

        try:
            write(options.html, job)
        except OSError as error:
            trouble.append(f"the report was not written: {error}")

    kept = "" if trouble else f"; kept in {ledger_dir()}"

    def show_table() -> None:
        # Everything when a few ops were asked for; else failures, and a count for the rest.
        rows = outcomes if options.ops else failed
        if rows:
            headers = (
                "",
                "op",
                "implementation",
                "dtypes",
                "claim",
                "promised",
                "worst",
                "evidence",
                "where",
            )
            table(headers, [_row(o.record) for o in rows], right=(6,))
        place = device(options.device)
        console().print(
            f"{len(outcomes)} claims of {len({(o.record.op, o.record.impl, o.record.dtypes) for o in outcomes})} "
            f"implementations on {place.name}: {len(failed)} failed; {seconds:.0f} s{kept}"
        )
        if interrupted:
            console().print("interrupted; the same command with --resume goes on with what is left")
        if job.refused:
            console().print(f"{len(job.refused)} implementations take no call on this device")
        if job.left:
            console().print(
                f"{len(job.left)} implementations left when the budget was spent; --resume goes on"
            )
        if options.changed and not outcomes:
            console().print("every claim has a record of its kernel's present revision")
        if options.ops and swept:
            _show_sweeps(swept)
        elif lagging:
            console().print(
                f"sweeps that lag: {', '.join(lagging)}; `fuelvk verify --sweep --status` shows more"
            )
        for problem in (*job.problems, *trouble):
            console().print(f"warning: {problem}")

    data = {
        "level": job.level.value,
        "seconds": seconds,
        "records": [as_dict(o.place, o.record) for o in outcomes],
        "refused": job.refused,
        "left": job.left,
        "interrupted": interrupted,
        "problems": [*job.problems, *trouble],
        "sweeps": [s.as_dict() for s in swept],
    }
    return Result(data, show_table, status=130 if interrupted else int(bool(failed or trouble)))


def _page(name: str) -> None:
    """Raises ParameterError where a report could not be written, before the work is done."""
    path = Path(name)
    if (
        path.is_dir()
        or not path.parent.is_dir()
        or not os.access(path if path.exists() else path.parent, os.W_OK)
    ):
        raise ParameterError(
            "the report cannot be written", asked=name, seen="a folder" if path.is_dir() else "no such place",
            allowed="a file in a folder that exists and can be written", hint="make the folder, or name another",
        )  # fmt: skip


def _row(record: Record) -> tuple[str, ...]:
    return (
        "ok" if record.passed else "FAILED",
        record.op,
        record.impl,
        "/".join(dict.fromkeys(record.dtypes)),
        record.claim,
        record.promised,
        f"{record.worst:.4g}",
        f"{record.inputs:,} elements, {record.shapes} calls",
        "; ".join(part for part in (record.where if record.worst else "", record.notes) if part),
    )


def _differences(options: argparse.Namespace) -> Result:
    from fuelvk.verify.differences import differences

    with progress() as show:
        found = differences(*options.compare, ops=options.ops, dtype=options.dtype, progress=show("compare"))

    def show_table() -> None:
        if found.rows:
            table(
                ("op", "dtypes", "on A", "on B", "call", "difference"),
                [(r.op, "/".join(dict.fromkeys(r.dtypes)), r.a, r.b, r.call, r.text) for r in found.rows],
            )
        console().print(
            f"A: {found.a}; B: {found.b}; {found.calls} calls of {found.ops} ops and dtypes compared"
        )
        console().print(f"{len(found.rows)} calls differ" if found.rows else "the same bytes throughout")
        if found.skipped:
            console().print(f"{found.skipped} ops and dtypes run on one of them only")

    return Result(found.as_dict(), show_table, status=int(bool(found.rows)))


def _sweep(options: argparse.Namespace) -> Result:
    from fuelvk.tensor.calls import entry_named
    from fuelvk.verify.sweep import LAST, Outcome, Sweep, swept_ops
    from fuelvk.verify.sweep_source import Level

    if options.dtype is not None and DType.parse(options.dtype) is not DType.F32:
        raise ParameterError(
            "only F32 functions are swept", asked=options.dtype, allowed="f32",
            hint="16-bit functions are tried on all their inputs without --sweep",
        )  # fmt: skip
    first, last = (0, LAST) if options.range is None else _range(options.range)
    entries: list[OpEntry] = [entry_named(name) for name in options.ops or swept_ops()]
    outcomes: list[Outcome] = []
    started = time.perf_counter()
    with progress() as show:
        for entry in entries:
            levels = _not_current(entry.name, options.device) if options.changed else frozenset(Level)
            if not levels:
                continue
            sweep = Sweep(entry, options.device, first=first, last=last, levels=levels)
            if options.resume:
                sweep.resume()
            try:
                outcomes += sweep.run(show(entry.name))
            except KeyboardInterrupt:
                done = f"{sweep.next - first:,} of {last - first + 1:,} inputs of {entry.name}"
                print(
                    f"interrupted: {done} were tried; the same command with --resume goes on", file=sys.stderr
                )
                raise
    rows = [o.record for o in outcomes]

    def show_table() -> None:
        table(
            (
                "",
                "op",
                "implementation",
                "worst ULP",
                "at input",
                "not CR",
                "settled",
                "unlike C",
                "claim",
                "notes",
            ),
            [
                (
                    "ok" if r.passed else "FAILED",
                    r.op,
                    r.impl,
                    f"{r.worst:.9g}",
                    r.where,
                    f"{r.counts['not_correctly_rounded']:,}",
                    f"{r.counts['settled_by_mpmath']:,}",
                    f"{r.counts['bytes_unlike_c']:,}",
                    r.promised,
                    r.notes,
                )
                for r in rows
            ],
            right=(3, 5, 6, 7),
        )
        for place in dict.fromkeys(str(o.place) for o in outcomes):
            console().print(place)
        inputs = last - first + 1
        console().print(f"{inputs:,} inputs a function, {time.perf_counter() - started:.0f} s")

    data = {"first": first, "last": last, "records": [as_dict(o.place, o.record) for o in outcomes]}
    return Result(data, show_table, status=int(not all(r.passed for r in rows)))


def _not_current(op: str, name: str | None) -> frozenset[Level]:
    from fuelvk.runtime.devices import device
    from fuelvk.verify.sweep_state import State, states

    return frozenset(s.level for s in states(device(name), [op]) if s.state is not State.CURRENT)


def _status(options: argparse.Namespace) -> Result:
    from fuelvk.runtime.devices import device
    from fuelvk.tensor.calls import entry_named
    from fuelvk.verify.sweep_state import states

    found = states(device(options.device), [entry_named(name).name for name in options.ops])
    return Result({"sweeps": [s.as_dict() for s in found]}, lambda: _show_sweeps(found))


def _show_sweeps(found: Sequence[SweepState]) -> None:
    """Shows the sweeps in the ledgers: ``current`` ones prove what they say of the function as it is."""
    table(
        ("sweep of", "level", "backend", "", "worst ULP", "at input", "not CR", "promised", "on"),
        [
            (s.op, s.level.value, s.backend, s.state.value, *_found(s.record))
            for s in found
        ],
        right=(4, 6),
    )  # fmt: skip


def _found(record: Record | None) -> tuple[str, ...]:
    if record is None:
        return ("",) * 5
    wrong = f"{record.counts.get('not_correctly_rounded', 0):,}"
    return f"{record.worst:.9g}", record.where, wrong, record.promised, record.date


def _merge(options: argparse.Namespace) -> Result:
    from fuelvk.evidence import ledger_dir, merge

    folder = Path(options.merge)
    if not folder.is_dir():
        raise ParameterError("not a folder", asked=options.merge, allowed="a folder of ledgers, *.jsonl")
    merged, problems = merge(ledger_dir(), folder)

    def show_table() -> None:
        for ledger, count in merged:
            console().print(f"{ledger.place}: {count} records new or changed, {len(ledger.records)} in all")
        console().print(f"kept in {ledger_dir()}" if merged else f"nothing merged from {folder}")
        for problem in problems:
            console().print(f"warning: {problem}")

    rows = [{"device": x.place.device, "driver": x.place.driver, "changed": n} for x, n in merged]
    data = {"folder": str(ledger_dir()), "ledgers": rows, "problems": problems}
    return Result(data, show_table, status=int(bool(problems)))


def as_dict(place: Place, record: Record) -> dict[str, Any]:
    """Returns a record for JSON, with its place."""
    return {"device": place.device, "driver": place.driver, **json.loads(record.line())}


def _range(text: str) -> tuple[int, int]:
    try:
        first, last = (int(part, 0) for part in text.split(":"))
    except ValueError:
        raise ParameterError(
            "not a range of inputs", asked=text, allowed="FIRST:LAST, 0x3f800000:0x40000000"
        ) from None
    return first, last


Report = Callable[..., None]


@contextmanager
def progress() -> Iterator[Callable[[str], Report]]:
    """Yields a maker of progress reports (done, total, what): a bar with the time left on a terminal, else a line
    every half minute.
    """
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bar:

            def on_bar(name: str) -> Report:
                task = bar.add_task(name, total=None)

                def report(done: int, total: int, what: str = "") -> None:
                    bar.update(task, completed=done, total=total, description=f"{name} {what}".strip())

                return report

            yield on_bar
        return

    def plain(name: str) -> Report:
        started = last = time.monotonic()

        def report(done: int, total: int, what: str = "") -> None:
            nonlocal last
            now = time.monotonic()
            if now - last > 30:
                last = now
                left = (now - started) * (total - done) / max(done, 1)
                words = f"{name} {what}".strip()
                print(
                    f"{words}: {100 * done / total:.0f} %, about {left:.0f} s left",
                    file=sys.stderr,
                    flush=True,
                )

        return report

    yield plain
