"""Builds what changed, and only when a whole source succeeds puts its variants in place.

A source is replaced as a whole: if one of its variants fails, its previous output stays. Modules are named
by content and the manifest is replaced last, so that at every moment it names complete files.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuelvk.base.errors import ShaderBuildError
from fuelvk.base.files import exclusive, replace_file
from fuelvk.base.hashing import digest64
from fuelvk.shaderbuild.compilers import Compiler, compiler_for
from fuelvk.shaderbuild.manifest import FORMAT, MANIFEST, checksum, read_document, variant_name
from fuelvk.shaderbuild.paths import output_dir, source_root
from fuelvk.shaderbuild.reflect import reflect
from fuelvk.shaderbuild.revision import Snapshot, variant_digest
from fuelvk.shaderbuild.tables import Table, VariantSpec, discover

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did. ``warnings`` are the compilers' own words, each once."""

    variants: int
    compiled: int
    reused: int
    seconds: float
    warnings: tuple[str, ...]
    output: Path


@dataclass(slots=True)
class _Source:
    """One table on its way through the build: manifest rows by variant position, and the new modules."""

    table: Table
    variants: list[VariantSpec]
    rows: list[dict[str, Any] | None]
    modules: dict[str, bytes] = field(default_factory=dict)
    error: ShaderBuildError | None = None


def build(
    *,
    root: Path | None = None,
    output: Path | None = None,
    patterns: Sequence[str] = (),
    jobs: int | None = None,
    progress: Progress | None = None,
) -> BuildReport:
    """Builds every shader, or those whose stem contains one of ``patterns``, and returns what was done.

    Raises ShaderBuildError for the first broken source, after the others have been put in place.
    """
    started = time.perf_counter()
    root = _root(root)
    output = output_dir() if output is None else output
    tables = discover(root, patterns)
    with exclusive(output / ".lock"):
        previous = _previous(output)
        snapshot = Snapshot(root)
        compilers = {name: compiler_for(name) for name in sorted({t.language.name for t in tables})}
        sources = [_reuse(output, previous, snapshot, compilers, table) for table in tables]
        try:
            warnings, compiled = _compile(
                root, snapshot, compilers, sources, jobs or os.cpu_count() or 2, progress
            )
        finally:
            for compiler in compilers.values():
                compiler.close()
        for source in sources:
            _check_axes(source)
        document = _document(previous, snapshot, compilers, sources, keep=bool(patterns))
        _write(output, document, sources)
    failures = [s.error for s in sources if s.error is not None]
    if failures:
        failures.sort(key=lambda e: e.message)
        raise _joined(failures)
    total = sum(len(s.variants) for s in sources)
    return BuildReport(total, compiled, total - compiled, time.perf_counter() - started, warnings, output)


def check(
    *,
    root: Path | None = None,
    output: Path | None = None,
    patterns: Sequence[str] = (),
    jobs: int | None = None,
    share: float = 1.0,
    progress: Progress | None = None,
) -> list[str]:
    """Compiles a share of the variants anew and returns, as sentences, how ``output`` differs.

    Which ones the sources decide, so that every state of them has others. Those left out must be whole, with the
    digest of these sources; one that is not is compiled too. The compiler is started for each, unlike in a build.
    """
    root = _root(root)
    output = output_dir() if output is None else output
    stems = read_document(output)["stems"]
    tables, snapshot = discover(root, patterns), Snapshot(root)
    languages = sorted({table.language.name for table in tables})
    compilers = {name: compiler_for(name, resident=False) for name in languages}
    sources = [_reuse(output, {"stems": stems}, snapshot, compilers, table) for table in tables]
    for source, i in _sample(snapshot, sources, share):
        source.rows[i] = None
    again = [[i for i, row in enumerate(source.rows) if row is None] for source in sources]
    _compile(root, snapshot, compilers, sources, jobs or os.cpu_count() or 2, progress)
    wrong = [str(source.error) for source in sources if source.error is not None]
    if not patterns:
        found = {table.stem for table in tables}
        wrong += [f"{stem}: built, but has no source any more" for stem in stems if stem not in found]
    for source, compiled in zip(sources, again, strict=True):
        stem = source.table.stem
        rows = stems[stem]["variants"] if stem in stems else []
        built = {variant_name(stem, row["axes"]): row for row in rows}
        for i in compiled:
            name, row = source.variants[i].name, source.rows[i]
            reason = None if row is None else _difference(output, built.get(name), row)
            wrong += [] if reason is None else [f"{name}: {reason}"]
        names = {variant.name for variant in source.variants}
        wrong += [f"{name}: built, but not in the table" for name in built if name not in names]
    return wrong


def _sample(snapshot: Snapshot, sources: Sequence[_Source], share: float) -> list[tuple[_Source, int]]:
    """Returns the variants to compile: at least ``share`` of all, ranked by their names and the sources' bytes."""
    seed = digest64(*(snapshot.checksum(name) for name in snapshot.names()))
    ranked = sorted(
        ((s, i) for s in sources for i in range(len(s.variants))),
        key=lambda job: digest64(seed, job[0].variants[job[1]].name),
    )
    return ranked[: math.ceil(share * len(ranked))]


def _difference(output: Path, have: Mapping[str, Any] | None, want: Mapping[str, Any]) -> str | None:
    """Returns how a manifest row differs from one made anew, None where it does not."""
    if have is None:
        return "not built"
    if have["checksum"] != want["checksum"]:
        return "the sources give other bytes"
    if have["digest"] != want["digest"]:
        return "the revision is out of date"
    path = output / have["file"]
    whole = path.is_file() and checksum(path.read_bytes()) == have["checksum"]
    return None if whole else "its file is missing or damaged"


def _root(root: Path | None) -> Path:
    root = source_root() if root is None else root
    if root is None:
        raise ShaderBuildError(
            "there are no shader sources here: an installed package carries the finished SPIR-V",
            hint="run this in a clone of the repository",
        )
    return root.resolve()


def _previous(output: Path) -> Mapping[str, Any]:
    """Returns the stems of the last build; nothing when there is none that can be used."""
    try:
        document: Mapping[str, Any] = read_document(output)
    except ShaderBuildError:
        return {"stems": {}, "compilers": {}}
    return document


def _reuse(
    output: Path,
    previous: Mapping[str, Any],
    snapshot: Snapshot,
    compilers: Mapping[str, Compiler],
    table: Table,
) -> _Source:
    variants = table.expand()
    record = previous["stems"].get(table.stem)
    rows: list[dict[str, Any] | None] = [None] * len(variants)
    if record is not None:
        names = list(record["files"])
        old = {variant_name(table.stem, row["axes"]): row for row in record["variants"]}
        for i, variant in enumerate(variants):
            row = old.get(variant.name)
            if row is not None:
                closure = [names[k] for k in row["closure"]]
                if _unchanged(output, snapshot, compilers[table.language.name], table, variant, row, closure):
                    rows[i] = {**row, "closure": closure}
    return _Source(table, variants, rows)


def _unchanged(
    output: Path,
    snapshot: Snapshot,
    compiler: Compiler,
    table: Table,
    variant: VariantSpec,
    row: Mapping[str, Any],
    closure: Sequence[str],
) -> bool:
    if _shadowed(snapshot.root, table, closure):
        return False
    try:
        push = [(name, offset, size) for name, offset, size in row["push"]]
        spec = [(number, kind) for number, kind in row["spec"]]
        digest = variant_digest(snapshot, table, variant, compiler, closure, push, spec)
        intact = bool(checksum((output / row["file"]).read_bytes()) == row["checksum"])
        return intact and bool(f"{digest:016x}" == row["digest"])
    except (OSError, KeyError, TypeError, ValueError):
        return False


def _shadowed(root: Path, table: Table, closure: Sequence[str]) -> bool:
    """True when a file that was not read would now be found before one that was.

    Includes look beside the including file before they look into the library.
    """
    library = f"shaders/{table.language.name}/{table.language.library}/"
    folder = table.source.rsplit("/", 1)[0] + "/"
    return any(
        name.startswith(library) and (root / folder / name[len(library) :]).exists()
        for name in closure
        if folder + name[len(library) :] not in closure
    )


def _compile(
    root: Path,
    snapshot: Snapshot,
    compilers: Mapping[str, Compiler],
    sources: Sequence[_Source],
    jobs: int,
    progress: Progress | None,
) -> tuple[tuple[str, ...], int]:
    waiting = [(s, i) for s in sources for i, row in enumerate(s.rows) if row is None]
    # Large axis values mean long unrolled code: started last, one of them would keep a single core busy at the end.
    waiting.sort(key=lambda job: -sum(v for v in job[0].variants[job[1]].axes.values() if isinstance(v, int)))
    warnings: dict[str, None] = {}
    done = 0
    with tempfile.TemporaryDirectory(prefix="fuelvk-shaders-") as scratch, ThreadPoolExecutor(jobs) as pool:
        running: dict[Future[tuple[dict[str, Any], bytes, str] | None], tuple[_Source, int]] = {}
        for number, (source, i) in enumerate(waiting):
            folder = Path(scratch) / str(number)
            running[pool.submit(_one, root, snapshot, compilers, source, i, folder)] = (source, i)
        for future in as_completed(running):
            source, i = running[future]
            try:
                result = future.result()
            except ShaderBuildError as error:
                if source.error is None:
                    source.error = error
                result = None
            if result is not None:
                row, module, words = result
                source.rows[i] = row
                source.modules[row["file"]] = module
                if words:
                    warnings.setdefault(words)
            done += 1
            if progress is not None:
                progress(done, len(waiting), source.variants[i].name)
    return tuple(warnings), len(waiting)


def _one(
    root: Path,
    snapshot: Snapshot,
    compilers: Mapping[str, Compiler],
    source: _Source,
    index: int,
    scratch: Path,
) -> tuple[dict[str, Any], bytes, str] | None:
    """Compiles one variant; returns manifest row, module and warnings; None when its source has failed."""
    if source.error is not None:
        return None
    table, variant = source.table, source.variants[index]
    compiler = compilers[table.language.name]
    scratch.mkdir()
    made = compiler.compile(root, table, variant, scratch)
    facts = reflect(made.spirv)
    missing = [entry for entry in table.entries if entry not in facts.entries]
    if missing:
        raise ShaderBuildError(
            f"{table.path}: entry points not in the module", seen=missing, allowed=list(facts.entries)
        )
    moved = snapshot.moved(made.closure)
    if moved:
        raise ShaderBuildError(
            f"{table.source}: sources changed during the build", seen=", ".join(moved), hint="build again"
        )
    total = checksum(made.spirv)
    digest = variant_digest(snapshot, table, variant, compiler, made.closure, facts.push, facts.spec)
    row = {
        "axes": variant.axes,
        "file": f"{table.stem}/{total[:16]}.spv",
        "checksum": total,
        "digest": f"{digest:016x}",
        "closure": list(made.closure),
        "capabilities": list(facts.capabilities),
        "push": [list(member) for member in facts.push],
        "spec": [list(constant) for constant in facts.spec],
        "entries": {
            name: [list(e.workgroup), e.push_size, list(e.bindings)]
            for name, e in sorted(facts.entries.items())
        },
    }
    return row, made.spirv, made.warnings


def _check_axes(source: _Source) -> None:
    """Refuses an axis that never changes the module: its variants would be copies to choose between."""
    if source.error is not None:
        return
    for axis, values in source.table.axes.items():
        groups: dict[str, set[str]] = {}
        sizes: dict[str, int] = {}
        for row in source.rows:
            assert row is not None
            key = json.dumps({k: v for k, v in row["axes"].items() if k != axis}, sort_keys=True)
            groups.setdefault(key, set()).add(row["checksum"])
            sizes[key] = sizes.get(key, 0) + 1
        if any(size > 1 for size in sizes.values()) and all(len(found) == 1 for found in groups.values()):
            source.error = ShaderBuildError(
                f"{source.table.path}: axis {axis} is not used: its values give the same module",
                seen=list(values),
                hint=f"read it in {source.table.source}, or drop it from the table",
            )
            return


def _document(
    previous: Mapping[str, Any],
    snapshot: Snapshot,
    compilers: Mapping[str, Compiler],
    sources: Sequence[_Source],
    *,
    keep: bool,
) -> dict[str, Any]:
    """Returns the manifest. With ``keep``, sources not asked for stay as they were; broken ones always do."""
    used = dict(previous["compilers"]) if keep else {}
    for compiler in compilers.values():
        used[compiler.tool.name] = {
            "version": compiler.tool.version,
            "flags": list(compiler.flags),
            "origin": compiler.tool.origin,
        }
        validator = compiler.validator
        used[validator.name] = {"version": validator.version, "flags": [], "origin": validator.origin}
    stems: dict[str, Any] = dict(previous["stems"]) if keep else {}
    for source in sources:
        stem = source.table.stem
        if source.error is None:
            stems[stem] = _stem_record(source, snapshot)
        elif stem in previous["stems"]:
            stems[stem] = previous["stems"][stem]
    return {"format": FORMAT, "compilers": dict(sorted(used.items())), "stems": dict(sorted(stems.items()))}


def _stem_record(source: _Source, snapshot: Snapshot) -> dict[str, Any]:
    rows = [row for row in source.rows if row is not None]
    names = sorted({name for row in rows for name in row["closure"]})
    index = {name: i for i, name in enumerate(names)}
    return {
        "source": source.table.source,
        "axes": {axis: list(values) for axis, values in source.table.axes.items()},
        "files": {name: snapshot.checksum(name) for name in names},
        "variants": [{**row, "closure": [index[name] for name in row["closure"]]} for row in rows],
    }


def _write(output: Path, document: Mapping[str, Any], sources: Iterable[_Source]) -> None:
    for source in sources:
        if source.error is None:
            for name, module in source.modules.items():
                replace_file(output / name, module)
    content = json.dumps(document, separators=(",", ":")).encode() + b"\n"
    path = output / MANIFEST
    if not path.is_file() or path.read_bytes() != content:
        replace_file(path, content)
    kept = {row["file"] for record in document["stems"].values() for row in record["variants"]}
    for old in output.rglob("*.spv"):
        if old.relative_to(output).as_posix() not in kept:
            old.unlink()
    for folder in sorted((p for p in output.rglob("*") if p.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def _joined(failures: Sequence[ShaderBuildError]) -> ShaderBuildError:
    first = failures[0]
    if len(failures) == 1:
        return first
    more = "; ".join(error.message for error in failures[1:])
    return ShaderBuildError(
        first.message,
        asked=first.asked,
        seen=first.seen,
        allowed=first.allowed,
        hint=f"{len(failures) - 1} more: {more}",
    )
