"""What commands give back, and the tables people read."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Result:
    """What a command found: ``data`` for JSON, ``show`` prints it for people, ``status`` ends the process."""

    data: dict[str, Any]
    show: Callable[[], None]
    status: int = 0


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    title: str | None = None,
    right: Sequence[int] = (),
    whole: Sequence[int] = (),
) -> None:
    """Prints a table as wide as the terminal; columns in ``right`` are aligned so, those in ``whole`` not cut."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(title=title, box=SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for number, header in enumerate(headers):
        justify: Literal["left", "right"] = "right" if number in right else "left"
        made.add_column(header, justify=justify, overflow="fold", no_wrap=number in whole)
    for row in rows:
        made.add_row(*(_text(cell) for cell in row))
    console().print(made)


def console() -> Any:
    """Returns a rich console on stdout; output that is no terminal is not squeezed into 80 columns."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 150, highlight=False, markup=False)


def _text(cell: object) -> Any:
    from rich.text import Text

    return Text(str(cell))


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """Shows ``what`` beside a spinner on a terminal while the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def size(nbytes: int | None) -> str:
    """Returns a number of bytes for people."""
    if nbytes is None:
        return ""
    amount = float(nbytes)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"
