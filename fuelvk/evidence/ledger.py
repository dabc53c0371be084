"""One ledger file: a line that names device and driver, then one record a line, sorted, so that files merge by line.

A line that is no record is named in ``problems`` and not believed; ``update`` moves it to ``<file>.aside`` and keeps
it there. A file that is no ledger, or that of another place, is moved there as a whole. A folder that cannot be written
is a FormatError, and ``writable`` asks for it before the work.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fuelvk.base.errors import FormatError
from fuelvk.base.files import exclusive, replace_file
from fuelvk.evidence.records import Place, Record

SUFFIX = ".jsonl"
REMEDY = "the next `fuelvk verify` writes a new ledger there and keeps this file as <file>.aside"
_NOTHING: Mapping[tuple[str, ...], str] = {}


@dataclass(slots=True)
class Ledger:
    """The records of one place. ``problems`` names what was not believed, ``damaged`` holds those lines."""

    place: Place
    records: dict[tuple[str, ...], Record] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Takes a record; of two for one claim the later one stays, on the same day one that failed."""
        old = self.records.get(record.key)
        if old is None or (record.date, not record.passed) >= (old.date, not old.passed):
            self.records[record.key] = record

    def text(self) -> str:
        """Returns the file: the same bytes for the same records."""
        return "\n".join([self.place.header(), *(r.line() for _, r in sorted(self.records.items()))]) + "\n"


def parse(text: str, name: str) -> Ledger:
    """Returns the ledger in ``text``; raises FormatError when the first line does not name a place."""
    lines = text.split("\n")
    try:
        found = Ledger(Place.parse(lines[0]))
    except FormatError as error:
        raise FormatError(
            f"{name} is set aside: {error.message}", seen=error.seen, allowed=error.allowed, hint=REMEDY
        ) from None
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        try:
            found.add(Record.parse(line))
        except FormatError as error:
            found.problems.append(f"{name}:{number}: {error}")
            found.damaged.append(line)
    return found


def read(path: Path) -> Ledger:
    """Returns the ledger in a file; raises FormatError when it cannot be read or is not a ledger."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path} is set aside: it cannot be read", seen=error, hint=REMEDY) from None
    return parse(text, str(path))


def writable(folder: Path, place: Place) -> Path:
    """Returns the path of the ledger of ``place`` in ``folder``, which exists then.

    Raises FormatError where the folder cannot be made or written, or where something else is in the file's place.
    """
    path = folder / f"{place.slug}{SUFFIX}"
    probe = folder / f".{path.name}.{os.getpid()}.{threading.get_ident()}.probe"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise FormatError(
            "ledgers cannot be written", asked=folder, seen=error, allowed="a folder that can be written",
            hint="set FUELVK_LEDGER_DIR to one",
        ) from None  # fmt: skip
    if path.exists() and not path.is_file():
        raise FormatError(
            "the ledger cannot be written", asked=path, seen="something else than a file in its place",
            allowed="a file, or nothing", hint="move it away, or set FUELVK_LEDGER_DIR",
        )  # fmt: skip
    return path


def update(
    folder: Path,
    place: Place,
    records: Iterable[Record],
    stays: Callable[[Record, Record], bool] | None = None,
    refused: Mapping[tuple[str, ...], str] = _NOTHING,
) -> Ledger:
    """Adds records to the ledger of ``place`` in ``folder``, replacing older ones of the same claims; atomic.

    An old record stays where the same kernel passed the same protocol on more inputs, or where ``stays`` (of the old
    and the new record of one claim) says so. ``refused`` are implementations (the first four parts of a record's key)
    that the place no longer runs, with their revision: what the ledger has of other revisions of theirs goes.
    Several processes may do so at once. Nothing that was in the file is lost: what is not believed goes to
    ``<file>.aside``, named in ``problems`` of the ledger returned. Raises FormatError where nothing can be written.
    """
    path = writable(folder, place)
    with exclusive(folder / f".{path.name}.lock"):
        found = Ledger(place)
        if path.exists():
            try:
                found = read(path)
                if found.place != place:
                    raise FormatError(
                        f"{path} is set aside: it belongs to {found.place}", allowed=str(place), hint=REMEDY
                    )
            except FormatError as error:
                found = Ledger(place, problems=[str(error)])
                _set_aside(path, path.read_bytes())
        if found.damaged:
            _set_aside(path, "".join(f"{line}\n" for line in found.damaged).encode())
            found.damaged = []
        if refused:
            found.records = {k: r for k, r in found.records.items() if not _obsolete(r, refused)}
        for record in records:
            old = found.records.get(record.key)
            if old is None or not (stays or _stronger)(old, record):
                found.records[record.key] = record
        replace_file(path, found.text().encode())
    return found


def merge(folder: Path, other: Path) -> tuple[list[tuple[Ledger, int]], list[str]]:
    """Adds the records of all ledgers in the folder ``other`` to those in ``folder``.

    Of two records of one claim the later one stays; on the same day one that failed, and else the one of ``other``.
    Returns each ledger with the number of records that it gained or that changed, and a text for every file that was
    not merged: one in ``other`` that is no ledger or holds a line that is no record, or what ``update`` sets aside.
    """
    merged: list[tuple[Ledger, int]] = []
    problems: list[str] = []
    for source in sorted(other.glob(f"*{SUFFIX}")):
        try:
            each = read(source)
        except FormatError as error:
            problems.append(
                f"not merged: {error.message}; seen: {error.seen}; next: get it anew from its owner"
            )
            continue
        if each.problems:
            shown = "; ".join(each.problems[:3]) + ("; ..." if len(each.problems) > 3 else "")
            problems.append(f"not merged: {source} is damaged: {shown}; next: get it anew from its owner")
            continue
        path = folder / f"{each.place.slug}{SUFFIX}"
        try:
            before = {r.line() for r in read(path).records.values()}
        except FormatError:
            before = set()
        found = update(folder, each.place, each.records.values(), _later)
        problems += found.problems
        merged.append((found, len({r.line() for r in found.records.values()} - before)))
    return merged, problems


def _later(old: Record, new: Record) -> bool:
    """Says whether an old record stays beside one from elsewhere."""
    return (old.date, not old.passed) > (new.date, not new.passed)


def _obsolete(record: Record, refused: Mapping[tuple[str, ...], str]) -> bool:
    """Says whether a record is of an older revision of an implementation that is now refused; sweeps stay."""
    return record.claim != "sweep" and refused.get(record.key[:4], record.revision) != record.revision


def _stronger(old: Record, new: Record) -> bool:
    """Says whether an old record stays: the same kernel passed the same protocol on more inputs, and passed again."""
    same = (old.revision, old.protocol, old.promised, old.host) == (
        new.revision,
        new.protocol,
        new.promised,
        new.host,
    )
    return same and old.passed and new.passed and old.inputs > new.inputs


def _set_aside(path: Path, content: bytes) -> None:
    """Appends what is not believed to a file beside the ledger."""
    with path.with_name(path.name + ".aside").open("ab") as file:
        file.write(content if content.endswith(b"\n") else content + b"\n")
