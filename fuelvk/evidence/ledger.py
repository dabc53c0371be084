"""One ledger file: a line that names device and driver, then one record a line, sorted, so that files merge by line.

A line that is no record is named in ``problems`` and not believed; ``update`` moves it to ``<file>.aside`` and keeps
it there. A file that is no ledger, or that of another place, is moved there as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fuelvk.base.errors import FormatError
from fuelvk.base.files import exclusive, replace_file
from fuelvk.evidence.records import Place, Record

SUFFIX = ".jsonl"
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
            f"{name} is set aside: {error.message}", seen=error.seen, allowed=error.allowed
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
        raise FormatError(f"{path} is set aside: it cannot be read", seen=error) from None
    return parse(text, str(path))


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
    ``<file>.aside``, named in ``problems`` of the ledger returned.
    """
    path = folder / f"{place.slug}{SUFFIX}"
    with exclusive(folder / f".{path.name}.lock"):
        found = Ledger(place)
        if path.exists():
            try:
                found = read(path)
                if found.place != place:
                    raise FormatError(f"{path} is set aside: it belongs to {found.place}", allowed=str(place))
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


def merge(folder: Path, other: Path) -> list[tuple[Ledger, int]]:
    """Adds the records of all ledgers in the folder ``other`` to those in ``folder``.

    Of two records of one claim the later one stays; on the same day one that failed, and else the one of ``other``.
    Returns each ledger with the number of records that it gained or that changed. Raises FormatError, before anything
    is written, when a file in ``other`` is no ledger or holds a line that is no record.
    """
    given = [read(path) for path in sorted(other.glob(f"*{SUFFIX}"))]
    for each in given:
        if each.problems:
            raise FormatError("a damaged ledger is not merged", seen="; ".join(each.problems))
    merged = []
    for each in given:
        path = folder / f"{each.place.slug}{SUFFIX}"
        before = set(path.read_text(encoding="utf-8").split("\n")) if path.exists() else set()
        found = update(folder, each.place, each.records.values(), _later)
        merged.append((found, len({r.line() for r in found.records.values()} - before)))
    return merged


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
