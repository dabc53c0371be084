"""``fuelvk profile OP``: one op on random inputs, with the time of every kernel it ran."""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import asdict
from typing import Any

import numpy as np

import fuelvk as fv
from fuelvk.base.dtypes import DType
from fuelvk.base.errors import ParameterError
from fuelvk.cli import _parse
from fuelvk.cli._output import Result, table
from fuelvk.runtime.profile import Profile
from fuelvk.tensor.calls import entry_named


def configure(parser: argparse.ArgumentParser) -> None:
    _parse.add_call_options(parser)
    parser.add_argument("--repeat", type=int, default=20, metavar="N", help="profiled runs (default: 20)")


def run(options: argparse.Namespace) -> Result:
    if options.repeat < 1:
        raise ParameterError("nothing to profile", asked=options.repeat, allowed="--repeat 1 or more")
    inputs = _inputs(options)
    params = _parse.params(options.param)
    tolerance = _parse.tolerance(options.tolerance)
    device = fv.device(options.device)

    def call() -> Any:
        return fv.call(options.op, *inputs, device=device, tolerance=tolerance, **params)

    call()
    times = []
    for _ in range(options.repeat):
        start = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - start)
    with fv.profile() as found:
        for _ in range(options.repeat):
            call()
    wall = statistics.median(times)
    data = {"device": device.name, "call_ns": wall, "repeat": options.repeat, "kernels": kernel_rows(found)}

    def show() -> None:
        print(f"{options.op} on {device.spec}: {device.name}")
        show_kernels(found)
        print(f"one fv.call, NumPy to NumPy: {wall / 1000:.1f} us (median of {options.repeat})")

    return Result(data, show)


def _inputs(options: argparse.Namespace) -> list[Any]:
    """Returns arrays of the shapes asked for: floats normal, integers 0 (a legal index), switches random."""
    entry = entry_named(options.op)
    if not options.shape:
        raise ParameterError(
            "a profile needs shapes", allowed=f"--shape once per input of {entry.signature()}"
        )
    dtype = DType.parse(options.dtype)
    required = sum(not a.optional for a in entry.args)
    texts = options.shape * required if len(options.shape) == 1 else options.shape
    fallback = (dtype,) * (len(texts) + 1)
    dtypes = next((d for d in entry.dtypes if d[0] is dtype and len(d) > len(texts)), fallback)
    generator = np.random.default_rng(1)
    inputs: list[Any] = []
    for text, kind in zip(texts, dtypes, strict=False):
        shape = _parse.shape(text)
        if shape is None:
            inputs.append(None)
        elif kind.is_float:
            inputs.append(generator.standard_normal(shape).astype(kind.numpy))
        elif kind is DType.BOOL:
            inputs.append(generator.random(shape) < 0.5)
        else:
            inputs.append(np.zeros(shape, kind.numpy))
    return inputs


def kernel_rows(found: Profile) -> list[dict[str, Any]]:
    """Returns the rows of a profile with each one's share of the time."""
    total = max(found.total_ns, 1)
    return [{**asdict(row), "share": row.ns / total} for row in found.rows]


def show_kernels(found: Profile) -> None:
    """Prints every kernel that ran: implementation, revision, claim, calls, time, share."""
    total = max(found.total_ns, 1)
    table(
        ("op", "implementation", "revision", "claim", "calls", "us a call", "share"),
        [
            (
                row.op,
                f"{row.impl} {'/'.join(dict.fromkeys(row.dtypes))}",
                row.revision,
                row.claim,
                row.calls,
                f"{row.ns / max(row.calls, 1) / 1000:.1f}",
                f"{100 * row.ns / total:.1f}%",
            )
            for row in found.rows
        ],
        right=(4, 5, 6),
    )
