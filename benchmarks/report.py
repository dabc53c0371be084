"""Medians, spread and ratios of a run, as data and as a table."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.figures import FIGURES, Figure

#: Subjects that bars are not taken from: fuelvk itself, and NumPy, which is no Vulkan library.
_NOT_PEERS = ("fuelvk", "fuelvk-threads0", "numpy")

#: The figure of a device copy, which movement is held against.
COPY = "copy_gbs"

Samples = Mapping[str, Mapping[str, Sequence[object]]]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: fuelvk's median and range, every subject's median, and what became of the bar."""

    figure: Figure
    value: float | None
    low: float | None
    high: float | None
    others: dict[str, float]
    bar: float | None
    met: bool | None

    def ratio(self) -> float | None:
        """Returns how many times better fuelvk is than the best peer; None without either."""
        peers = [v for k, v in self.others.items() if k not in _NOT_PEERS and v > 0]
        if not peers or not self.value:
            return None
        return min(peers) / self.value if self.figure.lower else self.value / max(peers)


def rows(samples: Samples, wanted: Sequence[str]) -> list[Row]:
    """Returns a row per figure that some subject has."""
    made = []
    for figure in FIGURES:
        if wanted and figure.name not in wanted:
            continue
        own = _numbers(samples.get(figure.subject, {}).get(figure.name, ()))
        others = {
            subject: statistics.median(numbers)
            for subject, figures in samples.items()
            if subject != figure.subject
            and not (subject.startswith("fuelvk"))
            and (numbers := _numbers(figures.get(figure.name, ())))
        }
        if not own and not others:
            continue
        value = statistics.median(own) if own else None
        peers = {k: v for k, v in others.items() if k not in _NOT_PEERS}
        copy = _numbers(samples.get(figure.subject, {}).get(COPY, ()))
        least = statistics.median(copy) if copy else None
        bar = None
        if figure.bar:
            bar = figure.bar.value(peers, lower=figure.lower, copy=least, numpy=others.get("numpy"))
        met = None if bar is None or value is None else (value <= bar if figure.lower else value >= bar)
        low, high = (min(own), max(own)) if own else (None, None)
        made.append(Row(figure, value, low, high, others, bar, met))
    return made


def _numbers(values: Sequence[object]) -> list[float]:
    return [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]


def as_dict(row: Row) -> dict[str, object]:
    return {
        "figure": row.figure.name,
        "subject": row.figure.subject,
        "unit": row.figure.unit,
        "median": row.value,
        "low": row.low,
        "high": row.high,
        "others": row.others,
        "times_best_peer": row.ratio(),
        "bar": row.bar,
        "bar_words": row.figure.bar.words() if row.figure.bar else None,
        "met": row.met,
    }


def show(made: Sequence[Row], subjects: Sequence[str]) -> None:
    """Prints the table: a column per subject, then how fuelvk stands against the best peer and the bar."""
    from fuelvk.cli._output import table

    others = [s for s in subjects if not s.startswith("fuelvk")]
    lines = []
    for row in made:
        spread = "" if row.low is None or row.low == row.high else f"{_short(row.low)}..{_short(row.high)}"
        ratio = row.ratio()
        bar = "" if row.figure.bar is None else row.figure.bar.words()
        if bar and row.bar is not None and row.figure.bar is not None and row.figure.bar.limit is None:
            bar += f" = {_short(row.bar)}"
        lines.append(
            (
                row.figure.title,
                row.figure.unit,
                _short(row.value),
                spread,
                *(_short(row.others.get(s)) for s in others),
                "" if ratio is None else f"{ratio:.2g} x",
                bar,
                {True: "met", False: "NOT MET", None: ""}[row.met],
            )
        )
    right = tuple(range(2, 5 + len(others)))
    headers = ("figure", "unit", "fuelvk", "range", *others, "vs best", "bar", "")
    table(headers, lines, right=right, whole=range(len(headers)))


def markdown(made: Sequence[Row], subjects: Sequence[str], heading: str) -> str:
    """Returns the figures as a Markdown table under a line that says where they were taken."""
    others = [s for s in subjects if not s.startswith("fuelvk")]
    headers = ("", "unit", "fuelvk", *others, "bar")
    lines = [heading, "", "| " + " | ".join(headers) + " |", "|" + "---|" * len(headers)]
    for row in made:
        verdict = {True: "met", False: "not met", None: ""}[row.met]
        bar = f"{row.figure.bar.words()}: {verdict}" if row.figure.bar and verdict else ""
        cells = (
            row.figure.title,
            row.figure.unit,
            _short(row.value),
            *(_short(row.others.get(s)) for s in others),
            bar,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _short(value: float | None) -> str:
    if value is None:
        return ""
    if value and abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
