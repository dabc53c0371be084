"""Reads the build output: which variants exist, what they ask of a device, and their SPIR-V.

The file is written by `builder.py`. This module reads nothing else until a variant's `spirv()` is called, and
imports nothing heavy.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuelvk.base.errors import ShaderBuildError, UnknownNameError, closest
from fuelvk.shaderbuild.paths import REBUILD, output_dir, source_root
from fuelvk.shaderbuild.relative import from_relative, to_relative

FORMAT = 1
MANIFEST = "manifest.json"

AxisValue = str | int


def checksum(content: bytes) -> str:
    """Returns the checksum kept for a file: 128 bits of SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()[:32]


def variant_name(stem: str, axes: Mapping[str, AxisValue]) -> str:
    """Returns ``family/stem[axis=value,...]`` with the axes sorted."""
    return f"{stem}[{','.join(f'{k}={v}' for k, v in sorted(axes.items()))}]"


def read_module(path: Path) -> bytes:
    """Returns the bytes of a module: the file itself, or in a wheel its part of the pack of its folder."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        pack = pack_of(path.parent)
        if not pack.is_file():
            raise
    module = _unpacked(pack).get(path.name)
    if module is None:
        raise ValueError(f"{pack} has no {path.name}")
    return from_relative(module)


def pack_of(folder: Path) -> Path:
    """Returns the file that holds the modules of ``folder`` in a wheel."""
    return folder.with_name(folder.name + ".spv.xz")


def pack_modules(modules: Mapping[str, bytes]) -> bytes:
    """Returns the compressed form of one shader's modules by file name, which `read_module` reads.

    Together they take a third less than one by one, having most of their code in common. Literals in words of 32 bits
    halve what a wheel's own compression would leave.
    """
    import lzma

    sizes = json.dumps({name: len(modules[name]) for name in sorted(modules)}).encode()
    content = b"".join([sizes, b"\n", *(to_relative(modules[name]) for name in sorted(modules))])
    words = {"id": lzma.FILTER_LZMA2, "preset": 9, "lc": 2, "lp": 2, "pb": 2}
    return lzma.compress(content, format=lzma.FORMAT_XZ, filters=[words])


@functools.lru_cache(maxsize=4)
def _unpacked(pack: Path) -> Mapping[str, bytes]:
    import lzma

    try:
        head, _, rest = lzma.decompress(pack.read_bytes()).partition(b"\n")
    except lzma.LZMAError as error:
        raise ValueError(f"{pack}: {error}") from None
    modules, start = {}, 0
    for name, size in json.loads(head).items():
        modules[name] = rest[start : start + size]
        start += size
    return modules


@dataclass(frozen=True, slots=True)
class EntryInfo:
    """One entry point, as read from the binary.

    ``workgroup`` is its size in invocations per axis, ``push_size`` the bytes of push constants it reads (0:
    none), ``bindings`` the storage-buffer bindings of set 0 it uses (empty under device addresses).
    """

    workgroup: tuple[int, int, int]
    push_size: int
    bindings: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """One compiled module: one source under one choice of axes, with all its entry points.

    ``digest`` covers what decides the binary: the bytes of every source file read, defines, entries, target,
    compiler, flags, push-constant layout and specialization constants. It is the same on every machine.
    """

    stem: str
    axes: Mapping[str, AxisValue]
    entries: Mapping[str, EntryInfo]
    capabilities: frozenset[str]
    digest: int
    push_layout: tuple[tuple[str, int, int], ...]
    spec_constants: tuple[tuple[int, str], ...]
    file: Path
    _checksum: str
    _sources: Mapping[str, str]
    _freshness: Freshness

    @property
    def name(self) -> str:
        return variant_name(self.stem, self.axes)

    def spirv(self) -> bytes:
        """Returns the module; raises ShaderBuildError when it is missing, damaged or behind its sources."""
        self._freshness.require(self.name, self._sources)
        try:
            content = read_module(self.file)
        except (OSError, EOFError, ValueError) as error:
            raise ShaderBuildError(
                "a built shader cannot be read", asked=self.name, seen=str(error), hint=_rebuild_hint()
            ) from None
        if checksum(content) != self._checksum:
            raise ShaderBuildError(
                "a built shader is damaged: its bytes are not those the build wrote",
                asked=self.name,
                seen=f"{self.file} with checksum {checksum(content)}",
                allowed=self._checksum,
                hint=_rebuild_hint(),
            )
        return content


class Freshness:
    """Answers, once per file, whether a source still has the bytes it was built from; yes without sources."""

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._current: dict[str, str | None] = {}

    def changed(self, sources: Mapping[str, str]) -> list[str]:
        """Returns the names whose content differs from the recorded checksums."""
        if self._root is None:
            return []
        return [name for name, recorded in sources.items() if self._checksum(self._root, name) != recorded]

    def require(self, variant: str, sources: Mapping[str, str]) -> None:
        changed = self.changed(sources)
        if changed:
            raise ShaderBuildError(
                "a built shader is older than its sources",
                asked=variant,
                seen="changed since the build: " + ", ".join(changed),
                hint=_rebuild_hint(),
            )

    def _checksum(self, root: Path, name: str) -> str | None:
        if name not in self._current:
            try:
                self._current[name] = checksum((root / name).read_bytes())
            except OSError:
                self._current[name] = None
        return self._current[name]


class Manifest:
    """All variants of one build output. Made by `load_manifest`."""

    def __init__(self, directory: Path, document: Mapping[str, Any], root: Path | None) -> None:
        self.directory = directory
        self.compilers: Mapping[str, Mapping[str, Any]] = document["compilers"]
        self._stems: Mapping[str, Any] = document["stems"]
        self._made: dict[str, tuple[Variant, ...]] = {}
        self._freshness = Freshness(root)

    @property
    def stems(self) -> tuple[str, ...]:
        return tuple(self._stems)

    def variants(self, stem: str, **fixed: AxisValue) -> list[Variant]:
        """Returns the variants of ``stem`` that have all of the ``fixed`` axis values, in table order."""
        made = self._of(stem)
        axes = self.axes(stem)
        for axis in fixed:
            if axis not in axes:
                raise UnknownNameError(
                    f"shader {stem} has no such axis",
                    asked=axis,
                    allowed=", ".join(axes),
                    hint=closest(axis, axes) or None,
                )
        return [v for v in made if all(v.axes[axis] == value for axis, value in fixed.items())]

    def variant(self, stem: str, **axes: AxisValue) -> Variant:
        """Returns the one variant with exactly these axes; raises UnknownNameError with those that exist."""
        if set(axes) != set(self.axes(stem)):
            raise UnknownNameError(
                f"shader {stem} is chosen by a value for each axis", seen=axes, allowed=dict(self.axes(stem))
            )
        found = self.variants(stem, **axes)
        if not found:
            names = [v.name for v in self._of(stem)]
            raise UnknownNameError(
                "no such shader variant",
                asked=variant_name(stem, axes),
                allowed=", ".join(names),
                hint=_rebuild_hint(),
            )
        return found[0]

    def axes(self, stem: str) -> Mapping[str, list[AxisValue]]:
        """Returns the axes of ``stem`` and their values."""
        axes: Mapping[str, list[AxisValue]] = self._record(stem)["axes"]
        return axes

    def stale_sources(self) -> list[str]:
        """Returns the source files that changed since the build; empty in an installed wheel."""
        return sorted({name for r in self._stems.values() for name in self._freshness.changed(r["files"])})

    def __iter__(self) -> Iterator[Variant]:
        for stem in self._stems:
            yield from self._of(stem)

    def _record(self, stem: str) -> Mapping[str, Any]:
        record: Mapping[str, Any] | None = self._stems.get(stem)
        if record is None:
            raise UnknownNameError(
                "no such shader",
                asked=stem,
                allowed=", ".join(self._stems),
                hint=closest(stem, self._stems) or _rebuild_hint(),
            )
        return record

    def _of(self, stem: str) -> tuple[Variant, ...]:
        made = self._made.get(stem)
        if made is None:
            record = self._record(stem)
            files = list(record["files"].items())
            made = tuple(self._make(stem, files, row) for row in record["variants"])
            self._made[stem] = made
        return made

    def _make(self, stem: str, files: list[tuple[str, str]], row: Mapping[str, Any]) -> Variant:
        return Variant(
            stem=stem,
            axes=row["axes"],
            entries={
                name: EntryInfo((wg[0], wg[1], wg[2]), push_size, tuple(bindings))
                for name, (wg, push_size, bindings) in row["entries"].items()
            },
            capabilities=frozenset(row["capabilities"]),
            digest=int(row["digest"], 16),
            push_layout=tuple((name, offset, size) for name, offset, size in row["push"]),
            spec_constants=tuple((number, kind) for number, kind in row["spec"]),
            file=self.directory / row["file"],
            _checksum=row["checksum"],
            _sources=dict(files[i] for i in row["closure"]),
            _freshness=self._freshness,
        )


def load_manifest(directory: Path | None = None) -> Manifest:
    """Returns the manifest of the build in ``directory`` (default: the package's own), read once per process.

    Raises ShaderBuildError when there is none, or when it cannot be understood.
    """
    return _load(output_dir() if directory is None else Path(directory))


@functools.cache
def _load(directory: Path) -> Manifest:
    return Manifest(directory, read_document(directory), source_root())


def read_document(directory: Path) -> Mapping[str, Any]:
    """Returns the parsed manifest.json; raises ShaderBuildError."""
    path = directory / MANIFEST
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ShaderBuildError(
            "the shaders have not been built", asked=str(path), hint=_rebuild_hint()
        ) from None
    except (OSError, ValueError) as error:
        raise ShaderBuildError(
            "the shader manifest is damaged", asked=str(path), seen=str(error), hint=_rebuild_hint()
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        seen = document.get("format") if isinstance(document, dict) else type(document).__name__
        raise ShaderBuildError(
            "the shader manifest has another format",
            asked=str(path),
            seen=seen,
            allowed=FORMAT,
            hint=_rebuild_hint(),
        )
    return document


def _rebuild_hint() -> str:
    return f"run `{REBUILD}`" if source_root() is not None else "reinstall the fuelvk package"
