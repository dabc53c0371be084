"""The content digest of a variant: everything that decides the binary, nothing that does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from fuelvk.base.hashing import digest64
from fuelvk.shaderbuild.compilers import Compiler
from fuelvk.shaderbuild.manifest import FORMAT, checksum
from fuelvk.shaderbuild.tables import Table, VariantSpec


class Snapshot:
    """Source files as they were when first asked for, so that one build works on one state of the tree."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._content: dict[str, bytes] = {}
        self._stamps: dict[str, tuple[int, int]] = {}
        for path in sorted((root / "shaders").rglob("*")):
            if path.is_file():
                self.content(path.relative_to(root).as_posix())

    def names(self) -> list[str]:
        """Returns the files under shaders/, relative to the root, sorted."""
        return sorted(name for name in self._content if name.startswith("shaders/"))

    def content(self, name: str) -> bytes:
        """Returns a file's bytes; raises FileNotFoundError."""
        if name not in self._content:
            path = self.root / name
            self._stamps[name] = _stamp(path)
            self._content[name] = path.read_bytes()
        return self._content[name]

    def checksum(self, name: str) -> str:
        return checksum(self.content(name))

    def moved(self, names: Iterable[str]) -> list[str]:
        """Returns the files that were written to since the snapshot."""
        return [
            name
            for name in names
            if name not in self._stamps or _stamp(self.root / name) != self._stamps[name]
        ]


def _stamp(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size


def variant_digest(
    snapshot: Snapshot,
    table: Table,
    variant: VariantSpec,
    compiler: Compiler,
    closure: Sequence[str],
    push: Sequence[tuple[str, int, int]],
    spec: Sequence[tuple[int, str]],
) -> int:
    """Returns the 64-bit digest. Files enter by name in the repository; times, folders and host do not."""
    parts: list[bytes | str | int] = [FORMAT, table.language.name, compiler.tool.name, compiler.tool.version]
    for group in (
        [*compiler.flags, *table.flags],
        table.entries,
        [f"{name}={value}" for name, value in variant.defines],
        [f"{name}@{offset}+{size}" for name, offset, size in push],
        [f"{number}:{kind}" for number, kind in spec],
    ):
        parts.append(len(group))
        parts.extend(group)
    for name in sorted(closure):
        parts.extend((name, snapshot.content(name)))
    return digest64(*parts)
