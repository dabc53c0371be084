"""The report of a verification as one HTML file: every claim, and the error of functions drawn against their input."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import FuelvkError
from fuelvk.evidence import Record
from fuelvk.graph.types import Family, OpEntry, Sample
from fuelvk.kernels.types import BackendImpl
from fuelvk.runtime.devices import device as find_device
from fuelvk.verify.compare import ulp
from fuelvk.verify.harness import RefusedError, run_impl
from fuelvk.verify.runner import Row, Run

Array = np.ndarray[Any, Any]

_COLUMNS, _PER_COLUMN = 240, 64
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 720, 150, 46, 26
_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1a1a1a }
table { border-collapse: collapse; font-size: 13px } td, th { padding: .2rem .6rem; text-align: left }
tr { border-bottom: 1px solid #ddd } .bad { background: #fdd } td.n { text-align: right }
figure { margin: 1.5rem 0 } figcaption { font-weight: 600 } svg text { font-size: 11px; fill: #444 }
"""
_INTRO = (
    "An ULP is the distance between two neighbouring numbers of the result's type. The plots show the largest error "
    "among the inputs of each column; inputs run from the most negative number on the left over zero to the largest "
    "on the right, each power of two as wide as any other. The dashed line is the claim."
)


def write(path: str | Path, run: Run) -> None:
    """Writes the report of a finished run; the file needs nothing beside it."""
    Path(path).write_text(page(run), encoding="utf-8")


def page(run: Run) -> str:
    """Returns the report."""
    records = [o.record for o in run.outcomes]
    failed = [r for r in records if not r.passed]
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        f"<title>fuelvk verify: {_text(run.device.name)}</title><style>{_STYLE}</style>",
        f"<h1>Claims on {_text(run.device.name)}</h1>",
        f"<p>{len(records)} claims tried at level {run.level.value}, {len(failed)} failed.</p>",
    ]
    if failed:
        parts += ["<h2>Failed</h2>", _table(failed)]
    plots = list(_figures(run))
    if plots:
        parts += ["<h2>Error against input</h2>", f"<p>{_INTRO}</p>", *plots]
    parts += ["<h2>All claims</h2>", _table(records)]
    return "\n".join(parts) + "\n"


def _text(value: object) -> str:
    return html.escape(str(value))


def _table(records: list[Record]) -> str:
    heads = (
        "verdict",
        "op",
        "implementation",
        "dtypes",
        "claim",
        "promised",
        "worst",
        "elements",
        "where",
        "revision",
    )
    rows = [f"<tr>{''.join(f'<th>{h}</th>' for h in heads)}</tr>"]
    for r in records:
        cells = (
            "ok" if r.passed else "FAILED", r.op, r.impl, "/".join(dict.fromkeys(r.dtypes)), r.claim, r.promised,
            f"{r.worst:.4g}", f"{r.inputs:,}", "; ".join(filter(None, (r.where, r.notes))), r.revision,
        )  # fmt: skip
        kind = "" if r.passed else " class=bad"
        rows.append(f"<tr{kind}>{''.join(f'<td>{_text(c)}</td>' for c in cells)}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _figures(run: Run) -> Iterator[str]:
    """Yields a plot for every function of one float input that the run looked at."""
    tried = {(o.record.op, o.record.backend, o.record.impl, o.record.dtypes) for o in run.outcomes}
    for op, backend, impl in run.rows() if not run.changed else ():
        keys = tuple(d.key for d in impl.dtypes)
        if (op.name, backend, impl.name, keys) not in tried or not _drawn(op, impl):
            continue
        try:
            columns, worst = _columns(run, (op, backend, impl))
        except (FuelvkError, RefusedError):
            continue
        yield (
            f"<figure><figcaption>{_text(op.name)}, {_text(impl.name)}, {impl.dtypes[0].key}: at most "
            f"{columns.max():.6g} ULP here, at {worst:.9g}</figcaption>"
            f"{_plot(columns, impl.precision.max_ulp, impl.dtypes[0])}</figure>"
        )


def _drawn(op: OpEntry, impl: BackendImpl) -> bool:
    functions = op.family in (Family.TRANSCENDENTAL, Family.POINTWISE)
    same = len(impl.dtypes) == 2 and impl.dtypes[0] is impl.dtypes[1] and impl.dtypes[0].is_float
    return functions and same and not op.params and impl.precision.max_ulp != 0


def _columns(run: Run, row: Row) -> tuple[Array, float]:
    """Returns the largest error in ULPs of each column of inputs, in the order of the real line, and the input of the
    largest of all.
    """
    op, backend, impl = row
    x = inputs(impl.dtypes[0], _COLUMNS * _PER_COLUMN)
    where = run.device if backend != "cpu" else find_device("cpu")
    got = run_impl(op, backend, impl, (x,), {}, where)[0]
    exact = run.suite.oracle(op, Sample((x,), {}, "plot"))[0]
    with np.errstate(all="ignore"):
        error = np.abs(got.astype(np.longdouble) - exact) / ulp(exact, impl.dtypes[1])
        error = np.where(np.isfinite(error), error, 0)
    largest: Array = error.reshape(_COLUMNS, _PER_COLUMN).max(axis=1).astype(np.float64)
    return largest, float(x[int(error.argmax())])


def inputs(dtype: DType, count: int) -> Array:
    """Returns ``count`` finite numbers of a type in increasing order, evenly spaced by bits."""
    bits = 8 * dtype.size
    top = int(np.asarray(np.inf).astype(dtype.numpy).view(f"u{dtype.size}"))
    half = (np.arange(count // 2, dtype=np.float64) + 0.5) * (top / (count // 2))
    positive = half.astype(np.uint64)
    negative = positive[::-1] | np.uint64(1 << (bits - 1))
    whole: Array = np.concatenate([negative, positive]).astype(f"u{dtype.size}").view(dtype.numpy)
    return whole


def place(value: float, dtype: DType) -> float:
    """Returns where an input stands on the axis of a plot, from 0 to 1; as ``inputs`` spaces them."""
    top = int(np.asarray(np.inf).astype(dtype.numpy).view(f"u{dtype.size}"))
    bits = int(np.asarray(abs(value)).astype(dtype.numpy).view(f"u{dtype.size}"))
    return 0.5 + math.copysign(bits / top / 2, value)


def _ticks(dtype: DType) -> tuple[float, ...]:
    """Returns round inputs to mark."""
    wide = {DType.F16: 100.0, DType.F64: 1e150}.get(dtype, 1e18)
    return (-wide, -1.0, -1 / wide, 0.0, 1 / wide, 1.0, wide)


def _plot(columns: Array, claim: float | None, dtype: DType) -> str:
    top = max(float(columns.max()), claim or 0.0, 1e-9) * 1.1
    width, height = _WIDTH - _LEFT, _HEIGHT - _BOTTOM

    def up(value: float) -> float:
        return height * (1 - value / top)

    points = " ".join(
        f"{_LEFT + width * (i + 0.5) / columns.size:.1f},{up(float(v)):.1f}" for i, v in enumerate(columns)
    )
    marks = [f'<polyline points="{points}" fill="none" stroke="#2563eb" stroke-width="1"/>']
    if claim is not None:
        marks.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{up(claim):.1f}" y2="{up(claim):.1f}" stroke="#b91c1c" '
            f'stroke-dasharray="4 3"/>'
        )
    marks += [
        f'<text x="{_LEFT - 4}" y="{up(v) + 4:.1f}" text-anchor="end">{word}</text>'
        for v, word in ((0.0, "0"), (top / 1.1, f"{top / 1.1:.3g}"), (top / 2.2, "ULP"))
    ]
    for value in _ticks(dtype):
        x = _LEFT + place(value, dtype) * width
        marks.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{height - 4}" y2="{height}" stroke="#888"/>')
        word = f"{value:g}".replace("e+", "e").replace("-", "\u2212")
        marks.append(f'<text x="{x:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{word}</text>')
    frame = f'<rect x="{_LEFT}" y="0" width="{width}" height="{height}" fill="none" stroke="#ccc"/>'
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img">{frame}{"".join(marks)}</svg>'
