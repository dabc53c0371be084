"""All ledgers together: those that ship with fuelvk and the user's own, read when first asked.

Routing asks for one revision at a time, so files are kept as text and only the lines that name the revision are
parsed; a line that is no record proves nothing, and ``problems`` names it.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuelvk.base import env
from fuelvk.base.errors import FormatError
from fuelvk.evidence import ledger
from fuelvk.evidence.records import Place, Record

_REVISION = re.compile('"revision": "([0-9a-f]{16})"')


@dataclass(slots=True)
class Source:
    """One ledger file as text, with an index of its lines by revision made on first use."""

    path: Path
    place: Place
    text: str
    _index: dict[str, list[int]] | None = None

    def lines(self, revision: str) -> Iterator[str]:
        """Yields the lines that name a revision."""
        if self._index is None:
            index: dict[str, list[int]] = {}
            for found in _REVISION.finditer(self.text):
                index.setdefault(found[1], []).append(found.start())
            self._index = index
        for at in self._index.get(revision, ()):
            end = self.text.find("\n", at)
            yield self.text[self.text.rfind("\n", 0, at) + 1 : end if end >= 0 else len(self.text)]


@dataclass(slots=True)
class Book:
    """Ledger files as text, in the order in which they are believed: the user's own first.

    ``beliefs`` is for what is concluded from them, so that it goes when they do.
    """

    sources: tuple[Source, ...]
    problems: list[str] = field(default_factory=list)
    beliefs: dict[Any, Any] = field(default_factory=dict)
    _known: dict[tuple[str, Place | None], tuple[tuple[Place, Record], ...]] = field(default_factory=dict)

    @classmethod
    def open(cls, folders: Iterable[Path]) -> Book:
        """Returns the ledgers in ``folders``; a file that is none is named in ``problems``."""
        sources, problems = [], []
        for folder in folders:
            for path in sorted(folder.glob(f"*{ledger.SUFFIX}")) if folder.is_dir() else ():
                try:
                    text = path.read_text(encoding="utf-8")
                    place = Place.parse(text.split("\n", 1)[0])
                except (OSError, UnicodeDecodeError, FormatError) as error:
                    remedy = "move it away" if path.is_dir() else ledger.REMEDY
                    problems.append(f"{path} is set aside: {error}; next: {remedy}")
                else:
                    if not text.endswith("\n"):
                        problems.append(
                            f"{path} is cut off in its last line; next: `fuelvk verify --changed` tries anew"
                        )
                    sources.append(Source(path, place, text))
        return cls(tuple(sources), problems)

    def places(self) -> tuple[Place, ...]:
        """Returns the places that have a ledger, each once."""
        return tuple(dict.fromkeys(s.place for s in self.sources))

    def of_revision(self, revision: str, place: Place | None = None) -> tuple[tuple[Place, Record], ...]:
        """Returns the records of a revision with their places, of one place or of all.

        Of two for one claim and place, the first file's counts.
        """
        key = (revision, place)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tuple(self._search(revision, place))
        return found

    def _search(self, revision: str, place: Place | None) -> Iterator[tuple[Place, Record]]:
        seen: set[tuple[Place, tuple[str, ...]]] = set()
        for source in self.sources:
            if place is not None and source.place != place:
                continue
            lines: dict[tuple[str, ...], Record] = {}
            for line in source.lines(revision):
                try:
                    record = Record.parse(line)
                except FormatError as error:
                    self._name(
                        f"{source.path}: {error}; next: `fuelvk verify --changed` tries the claim anew"
                    )
                    continue
                old = lines.get(record.key)
                if old is None or (record.date, not record.passed) >= (old.date, not old.passed):
                    lines[record.key] = record
            for key, record in lines.items():
                if (source.place, key) not in seen:
                    seen.add((source.place, key))
                    yield source.place, record

    def _name(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def ledgers(self) -> tuple[ledger.Ledger, ...]:
        """Returns every ledger parsed in full, those of one place joined; ``problems`` grows by what is damaged."""
        joined: dict[Place, ledger.Ledger] = {}
        for source in self.sources:
            found = ledger.parse(source.text, str(source.path))
            for problem in found.problems:
                self._name(problem)
            known = joined.setdefault(source.place, found)
            if known is not found:
                for key, record in found.records.items():
                    known.records.setdefault(key, record)
        return tuple(joined.values())


def shipped_dir() -> Path:
    """Returns the folder of the ledgers that come with fuelvk."""
    return Path(__file__).parent / "ledgers"


def ledger_dir() -> Path:
    """Returns the folder of the user's own ledgers: FUELVK_LEDGER_DIR, or ``fuelvk/ledgers`` in the user's data."""
    chosen = env.get("FUELVK_LEDGER_DIR")
    if chosen is not None:
        return Path(chosen)
    return _user_dir()


@functools.cache
def _user_dir() -> Path:
    from platformdirs import user_data_path

    return user_data_path("fuelvk", appauthor=False) / "ledgers"


_lock = threading.Lock()
_books: dict[tuple[Path, ...], Book] = {}


def book() -> Book:
    """Returns the ledgers of this process, read on first use and after ``forget``."""
    folders = tuple(dict.fromkeys((ledger_dir(), shipped_dir())))
    with _lock:
        found = _books.get(folders)
        if found is None:
            found = _books[folders] = Book.open(folders)
        return found


def forget() -> None:
    """Drops what was read, so that records written since are seen."""
    with _lock:
        _books.clear()
