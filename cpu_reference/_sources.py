"""The text that a C kernel is made of: its file, everything it includes, and the flags.

In a source tree the files are read where they lie; an installed package carries a snapshot of them,
``c/_sources.json``, written by the build, so that revisions are the same in both.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from cpu_reference._table import FLAGS, KERNELS, SOURCES

FOLDER = Path(__file__).parent / "c"
STRICT = Path(__file__).parent.parent / "shaders" / "slang" / "lib"
SNAPSHOT = FOLDER / "_sources.json"

_QUOTED = re.compile(r'^\s*#\s*(?:include|define\s+BODY)\s+"([^"]+)"', re.MULTILINE)


def in_source_tree() -> bool:
    """Returns whether the C files and the strict headers lie beside this package."""
    return (FOLDER / "common.h").is_file() and (STRICT / "strict" / "strict.h").is_file()


@cache
def _locate(name: str, folder: Path) -> Path | None:
    for candidate in (folder / name, FOLDER / name, STRICT / name):
        if candidate.is_file():
            return candidate.resolve()
    return None


@cache
def _public_name(path: Path) -> str:
    root = STRICT if path.is_relative_to(STRICT.resolve()) else FOLDER
    return path.relative_to(root.resolve()).as_posix()


def _read_tree() -> dict[str, dict[str, str]]:
    """Returns {"text": {name: text}, "includes": {name: names it includes, one a line}} of the source tree."""
    text: dict[str, str] = {}
    includes: dict[str, str] = {}
    waiting = [(FOLDER / name).resolve() for name in SOURCES]
    while waiting:
        path = waiting.pop()
        name = _public_name(path)
        if name in text:
            continue
        text[name] = path.read_text(encoding="utf-8")
        found = [
            p for quoted in _QUOTED.findall(text[name]) if (p := _locate(quoted, path.parent)) is not None
        ]
        includes[name] = "\n".join(sorted({_public_name(p) for p in found}))
        waiting += found
    return {"text": text, "includes": includes}


@cache
def _sources() -> Mapping[str, Mapping[str, str]]:
    if in_source_tree():
        return _read_tree()
    loaded: dict[str, dict[str, str]] = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    return loaded


def revision_sources(name: str) -> list[tuple[str, bytes]]:
    """Returns (name, bytes) of every file kernel ``name`` is compiled from, sorted, then its compiler flags.

    Names are relative ("rows.c", "strict/exp.h"), line ends are \\n. Raises KeyError for an unknown kernel.
    """
    return revision_sources_of(source_of(name))


def source_of(name: str) -> str:
    """Returns the C file that defines kernel ``name``; raises KeyError."""
    return KERNELS[name].source


def revision_sources_of(source: str) -> list[tuple[str, bytes]]:
    """The ``revision_sources`` of every kernel that one C file defines."""
    sources = _sources()
    closure: set[str] = set()
    waiting = [source]
    while waiting:
        file = waiting.pop()
        if file not in closure:
            closure.add(file)
            waiting += [f for f in sources["includes"][file].split("\n") if f]
    return [(file, sources["text"][file].encode()) for file in sorted(closure)] + [
        ("flags", " ".join(FLAGS).encode())
    ]


def strict_headers() -> dict[str, str]:
    """Returns the text of every header of the strict library by its name ("exp_cr.h")."""
    prefix = "strict/"
    return {n.removeprefix(prefix): t for n, t in _sources()["text"].items() if n.startswith(prefix)}


@cache
def strict_table() -> bytes:
    """Returns the constant table of the strict functions, 32-bit words in order, as a shader's buffer holds it."""
    text = _sources()["text"]["strict/tables_constants.h"].replace("\\\n", " ")
    found = re.search(r"#define ST_TABLE_WORDS (.*)", text)
    count = re.search(r"#define ST_TABLE_COUNT (\d+)", text)
    assert found is not None and count is not None
    words = [int(word, 16) for word in re.findall(r"0x[0-9a-f]+", found[1])]
    assert len(words) == int(count[1])
    return struct.pack(f"<{len(words)}I", *words)


def build_digest() -> str:
    """Returns a digest of all sources, flags and declarations; a compiled module carries that of its own."""
    state = hashlib.blake2b(digest_size=16)
    parts = [f"{name}\0{text}" for name, text in sorted(_sources()["text"].items())]
    for part in [*parts, " ".join(FLAGS), *(k.declaration for k in KERNELS.values())]:
        raw = part.encode()
        state.update(len(raw).to_bytes(8, "little") + raw)
    return state.hexdigest()


def write_snapshot() -> None:
    """Writes the snapshot that an installed package reads; reproducible bytes."""
    content = json.dumps(_read_tree(), indent=0, sort_keys=True) + "\n"
    if not SNAPSHOT.is_file() or SNAPSHOT.read_text(encoding="utf-8") != content:
        SNAPSHOT.write_text(content, encoding="utf-8")
