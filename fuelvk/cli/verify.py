"""``fuelvk verify``: hold the kernels to their claims on a device, and keep what was found."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import ParameterError
from fuelvk.cli._output import Result, console, table
from fuelvk.graph.types import OpEntry


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ops", nargs="*", metavar="OP", help="names of ops (default: all)")
    parser.add_argument("--device", help="device, as in FUELVK_DEVICE")
    parser.add_argument("--dtype", help="only implementations of this dtype")
    parser.add_argument(
        "--sweep", action="store_true", help="try all 2^32 inputs of F32 functions (minutes per function)"
    )
    parser.add_argument(
        "--range", metavar="FIRST:LAST", help="with --sweep: only inputs of these bits; nothing is recorded"
    )
    parser.add_argument("--resume", action="store_true", help="go on where an interrupted run stopped")


def run(options: argparse.Namespace) -> Result:
    if options.sweep:
        return _sweep(options)
    raise ParameterError("nothing to do", allowed="--sweep")


def _sweep(options: argparse.Namespace) -> Result:
    from fuelvk.tensor.calls import entry_named
    from fuelvk.verify.sweep import LAST, Outcome, Sweep, swept_ops

    if options.dtype is not None and DType.parse(options.dtype) is not DType.F32:
        raise ParameterError(
            "only F32 functions are swept", asked=options.dtype, allowed="f32",
            hint="16-bit functions are tried on all their inputs without --sweep",
        )  # fmt: skip
    first, last = (0, LAST) if options.range is None else _range(options.range)
    entries: list[OpEntry] = [entry_named(name) for name in options.ops or swept_ops()]
    outcomes: list[Outcome] = []
    started = time.perf_counter()
    with _progress() as show:
        for entry in entries:
            sweep = Sweep(entry, options.device, first=first, last=last)
            if options.resume:
                sweep.resume()
            outcomes += sweep.run(show(entry.name))
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


def as_dict(place: Any, record: Any) -> dict[str, Any]:
    """Returns a record for JSON, with its place."""
    import json

    return {"device": place.device, "driver": place.driver, **json.loads(record.line())}


def _range(text: str) -> tuple[int, int]:
    try:
        first, last = (int(part, 0) for part in text.split(":"))
    except ValueError:
        raise ParameterError(
            "not a range of inputs", asked=text, allowed="FIRST:LAST, 0x3f800000:0x40000000"
        ) from None
    return first, last


@contextmanager
def _progress() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """Yields a maker of progress callbacks: a bar with the time left on a terminal, else a line every half minute."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bar:

            def on_bar(what: str) -> Callable[[int, int], None]:
                task = bar.add_task(what, total=None)
                return lambda done, total: bar.update(task, completed=done, total=total)

            yield on_bar
        return

    def plain(what: str) -> Callable[[int, int], None]:
        started = last = time.monotonic()

        def report(done: int, total: int) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last > 30:
                last = now
                left = (now - started) * (total - done) / max(done, 1)
                print(
                    f"{what}: {100 * done / total:.0f} %, about {left:.0f} s left",
                    file=sys.stderr,
                    flush=True,
                )

        return report

    yield plain
