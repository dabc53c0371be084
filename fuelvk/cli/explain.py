"""``fuelvk explain OP``."""

from __future__ import annotations

import argparse

import fuelvk as fv
from fuelvk.base.dtypes import DType
from fuelvk.cli import _parse
from fuelvk.cli._output import Result, console, table
from fuelvk.optimizer.trust import grouped
from fuelvk.tensor.explanation import RouteRow


def configure(parser: argparse.ArgumentParser) -> None:
    _parse.add_call_options(parser)
    parser.add_argument("--all", action="store_true", help="list implementations for other dtypes too")


def run(options: argparse.Namespace) -> Result:
    shapes = [_parse.shape(text) for text in options.shape] if options.shape else None
    found = fv.explain(
        options.op,
        shapes=shapes,
        dtype=options.dtype,
        device=options.device,
        tolerance=_parse.tolerance(options.tolerance),
        **_parse.params(options.param),
    )

    def show() -> None:
        console().print(f"{found.subject} on {found.device}, tolerance {found.tolerance}")
        key = DType.parse(options.dtype).key
        shown = [r for r in found.routes if options.all or key in r.dtypes]
        rows = [
            (
                r.verdict,
                r.impl,
                "/".join(dict.fromkeys(r.dtypes)),
                r.claim,
                f"{r.flops:,}",
                f"{r.bytes_moved:,}",
                r.revision,
                _why(r),
            )
            for r in shown
        ]
        headers = ("", "implementation", "dtypes", "claim", "flops", "bytes", "revision", "why")
        table(headers, rows, right=(4, 5))
        if len(shown) < len(found.routes):
            print(f"{len(found.routes) - len(shown)} more are written for other dtypes; --all lists them")
        if found.advice:
            print(found.advice)

    return Result(found.as_dict(), show)


def _why(row: RouteRow) -> str:
    """Returns the reason, with the claims that are set aside where it does not name them itself."""
    if not row.set_aside or "set aside: " in row.reason:
        return row.reason
    return f"{row.reason}; set aside: {grouped(row.set_aside)}"
