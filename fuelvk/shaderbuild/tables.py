"""The variant table beside each shader source, read, checked and expanded.

A table is a TOML file with the source's stem:

    entries = ["softmax", "rms_norm"]         # entry points, compiled into one module (GLSL: always main)

    [axes]                                    # every combination is one variant
    dtype = ["f32", "f64"]                    # words:   -DDTYPE_F32=1
    width = [0, 8]                            # numbers: -DWIDTH=8

    [[exclude]]                               # combinations left out; a value, or a list of values, per axis
    dtype = "f64"
    width = [8]

    [defines]                                 # given to every variant
    UNROLL = 4

    [flags]                                   # extra compiler flags, each with its reason
    "-some-flag" = "why this shader needs it"

The axis ``mode`` (addressing: bda, ssbo) is in every table unless it gives its own.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuelvk.base.errors import ShaderBuildError, closest
from fuelvk.shaderbuild.manifest import AxisValue, variant_name

MODES: tuple[AxisValue, ...] = ("bda", "ssbo")
_KEYS = ("entries", "axes", "exclude", "defines", "flags")
_AXIS = re.compile(r"[a-z][a-z0-9_]*\Z")
_WORD = re.compile(r"[a-z0-9_]+\Z")
_DEFINE = re.compile(r"[A-Z][A-Z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Language:
    """A shader language: its folder under shaders/, its source suffix, the folder of its shared headers."""

    name: str
    suffix: str
    library: str


LANGUAGES = (Language("slang", ".slang", "lib"), Language("glsl", ".comp", "include"))


@dataclass(frozen=True, slots=True)
class VariantSpec:
    """One row of an expanded table."""

    stem: str
    axes: dict[str, AxisValue]
    defines: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        return variant_name(self.stem, self.axes)


@dataclass(frozen=True, slots=True)
class Table:
    """One shader source and what is built from it. Paths are relative to the root, with forward slashes."""

    stem: str
    language: Language
    source: str
    path: str
    entries: tuple[str, ...]
    axes: dict[str, tuple[AxisValue, ...]]
    excludes: tuple[dict[str, tuple[AxisValue, ...]], ...]
    defines: dict[str, str]
    flags: dict[str, str]

    def expand(self) -> list[VariantSpec]:
        """Returns the variants in table order; an exclude row that removes nothing is an error."""
        used = [False] * len(self.excludes)
        rows: list[VariantSpec] = []
        for values in itertools.product(*self.axes.values()):
            axes = dict(zip(self.axes, values, strict=True))
            hits = [
                i
                for i, row in enumerate(self.excludes)
                if all(axes[a] in allowed for a, allowed in row.items())
            ]
            for i in hits:
                used[i] = True
            if not hits:
                rows.append(VariantSpec(self.stem, axes, self._defines(axes)))
        for i, row in enumerate(self.excludes):
            if not used[i]:
                raise ShaderBuildError(
                    f"{self.path}: an exclude row removes nothing", seen=row, hint="delete the row"
                )
        if not rows:
            raise ShaderBuildError(f"{self.path}: the exclude rows leave no variant")
        return rows

    def _defines(self, axes: dict[str, AxisValue]) -> tuple[tuple[str, str], ...]:
        defines = dict(self.defines)
        for axis, value in axes.items():
            if isinstance(value, int):
                name, text = axis.upper(), str(value)
            else:
                name, text = f"{axis}_{value}".upper(), "1"
            if name in defines:
                raise ShaderBuildError(
                    f"{self.path}: two sources for one define", seen=name, hint="rename the axis"
                )
            defines[name] = text
        return tuple(sorted(defines.items()))


def discover(root: Path, patterns: Sequence[str] = ()) -> list[Table]:
    """Returns the tables of the shader sources under ``root``/shaders, sorted by stem.

    With ``patterns``, only those whose stem contains one of them; a pattern that meets none is an error.

    A source is ``<language>/<family>/<stem><suffix>``; names that start with "_" are helpers of their family.
    Raises ShaderBuildError for a source without a table, a table without a source, a stem in two languages.
    """
    tables: dict[str, Table] = {}
    stems: list[str] = []
    for language in LANGUAGES:
        base = root / "shaders" / language.name
        folders = sorted(p for p in base.iterdir() if p.is_dir()) if base.is_dir() else []
        for folder in folders:
            if folder.name == language.library:
                continue
            sources = {p.stem for p in folder.glob("*" + language.suffix) if not p.name.startswith("_")}
            listed = {p.stem for p in folder.glob("*.toml")}
            for stem in sorted(sources | listed):
                name = f"{folder.name}/{stem}"
                stems.append(name)
                if patterns and not any(p in name for p in patterns):
                    continue
                where = f"shaders/{language.name}/{name}"
                _both(where, language, stem in sources, stem in listed)
                if name in tables:
                    raise ShaderBuildError(
                        "two sources have one stem", seen=[tables[name].source, where + language.suffix]
                    )
                tables[name] = read_table(root, name, language)
    for pattern in patterns:
        if not any(pattern in name for name in stems):
            raise ShaderBuildError(
                "no shader has this in its name",
                asked=pattern,
                allowed=", ".join(stems),
                hint=closest(pattern, stems) or None,
            )
    return [tables[name] for name in sorted(tables)]


def _both(where: str, language: Language, has_source: bool, has_table: bool) -> None:
    if has_source and not has_table:
        raise ShaderBuildError(
            "a shader source has no variant table",
            seen=where + language.suffix,
            hint=f"write {where}.toml, or begin the name with _ if it is only included",
        )
    if has_table and not has_source:
        raise ShaderBuildError(
            "a variant table has no source", seen=where + ".toml", allowed=where + language.suffix
        )


def read_table(root: Path, stem: str, language: Language) -> Table:
    """Returns one checked table; raises ShaderBuildError naming file and key."""
    base = f"shaders/{language.name}/{stem}"
    path = base + ".toml"
    try:
        document = tomllib.loads((root / path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ShaderBuildError(f"{path}: not a TOML table", seen=str(error)) from None
    for key in document:
        if key not in _KEYS:
            raise ShaderBuildError(
                f"{path}: unknown key", seen=key, allowed=", ".join(_KEYS), hint=closest(key, _KEYS) or None
            )
    axes = _axes(path, document.get("axes", {}))
    return Table(
        stem=stem,
        language=language,
        source=base + language.suffix,
        path=path,
        entries=_entries(path, language, document.get("entries")),
        axes=axes,
        excludes=_excludes(path, axes, document.get("exclude", [])),
        defines=_defines(path, document.get("defines", {})),
        flags=_flags(path, document.get("flags", {})),
    )


def _entries(path: str, language: Language, value: Any) -> tuple[str, ...]:
    if language.name == "glsl":
        if value not in (None, ["main"]):
            raise ShaderBuildError(f"{path}: a GLSL source has one entry point", seen=value, allowed=["main"])
        return ("main",)
    if (
        not isinstance(value, list)
        or not value
        or not all(isinstance(v, str) and v.isidentifier() for v in value)
    ):
        raise ShaderBuildError(f"{path}: entries is a list of entry point names", seen=value)
    if len(set(value)) != len(value):
        raise ShaderBuildError(f"{path}: an entry point is listed twice", seen=value)
    return tuple(value)


def _axes(path: str, value: Any) -> dict[str, tuple[AxisValue, ...]]:
    if not isinstance(value, dict):
        raise ShaderBuildError(f"{path}: axes is a table of lists", seen=value)
    axes: dict[str, tuple[AxisValue, ...]] = {}
    for name, values in value.items():
        if not _AXIS.match(name):
            raise ShaderBuildError(f"{path}: an axis name is lower case letters, digits and _", seen=name)
        words = isinstance(values, list) and all(isinstance(v, str) and _WORD.match(v) for v in values)
        numbers = isinstance(values, list) and all(type(v) is int for v in values)
        if not values or not (words or numbers):
            raise ShaderBuildError(
                f"{path}: axis {name} is a list of lower case words, or of whole numbers", seen=values
            )
        if len(set(values)) != len(values):
            raise ShaderBuildError(f"{path}: axis {name} lists a value twice", seen=values)
        axes[name] = tuple(values)
    axes.setdefault("mode", MODES)
    if not set(axes["mode"]) <= set(MODES):
        raise ShaderBuildError(
            f"{path}: unknown addressing mode", seen=list(axes["mode"]), allowed=list(MODES)
        )
    return dict(sorted(axes.items()))


def _excludes(
    path: str, axes: dict[str, tuple[AxisValue, ...]], value: Any
) -> tuple[dict[str, tuple[AxisValue, ...]], ...]:
    if not isinstance(value, list) or not all(isinstance(row, dict) and row for row in value):
        raise ShaderBuildError(f"{path}: exclude is a list of rows ([[exclude]])", seen=value)
    rows: list[dict[str, tuple[AxisValue, ...]]] = []
    for row in value:
        fixed: dict[str, tuple[AxisValue, ...]] = {}
        for axis, chosen in row.items():
            if axis not in axes:
                raise ShaderBuildError(
                    f"{path}: exclude names an unknown axis", seen=axis, allowed=", ".join(axes)
                )
            values = tuple(chosen) if isinstance(chosen, list) else (chosen,)
            for v in values:
                if v not in axes[axis]:
                    raise ShaderBuildError(
                        f"{path}: exclude names a value that axis {axis} does not have",
                        seen=v,
                        allowed=list(axes[axis]),
                    )
            fixed[axis] = values
        rows.append(fixed)
    return tuple(rows)


def _defines(path: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ShaderBuildError(f"{path}: defines is a table", seen=value)
    for name, text in value.items():
        if not _DEFINE.match(name) or not isinstance(text, str | int) or isinstance(text, bool):
            raise ShaderBuildError(
                f"{path}: a define is NAME = whole number or text",
                seen=f"{name} = {text!r}",
                allowed="upper case names",
            )
    return {name: str(text) for name, text in value.items()}


def _flags(path: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ShaderBuildError(f"{path}: flags is a table of flag = reason", seen=value)
    for flag, reason in value.items():
        if not flag.startswith("-") or not isinstance(reason, str) or not reason.strip():
            raise ShaderBuildError(
                f"{path}: a flag begins with - and has a reason", seen=f"{flag} = {reason!r}"
            )
    return dict(value)
