"""Every environment variable fuelvk reads, declared once; docs/env.md is generated from this table."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuelvk.base.errors import ParameterError, UnknownNameError, closest


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable: its type is ``kind`` (bool, int, str, path or a tuple of allowed words)."""

    name: str
    kind: type | tuple[str, ...]
    default: Any
    help: str


#: What FUELVK_TRUST is when it is not set.
TRUST = "proven"

VARIABLES: tuple[Variable, ...] = (
    Variable(
        "FUELVK_DEVICE",
        str,
        None,
        "Device used when none is named: `cpu`, `vulkan:0`, a type (`discrete`, `integrated`, `virtual`), or a pattern over name and driver.",
    ),
    Variable(
        "FUELVK_ADDRESSING",
        ("auto", "bda", "ssbo"),
        "auto",
        "How kernels reach buffers: by device address (`bda`) or by descriptors (`ssbo`). `auto` takes the one measured to be faster on the driver.",
    ),
    Variable(
        "FUELVK_VALIDATION",
        ("0", "1", "core", "sync"),
        "0",
        "Vulkan validation layers: `core`, or `sync` (also `1`) for core and synchronisation validation; messages become exceptions.",
    ),
    Variable(
        "FUELVK_MEMORY_BUDGET",
        int,
        None,
        "Bytes of device memory a device may hold; default: what the driver reports as available.",
    ),
    Variable(
        "FUELVK_FORCE_STAGING",
        bool,
        False,
        "Move data through staging buffers even where device memory is mapped (used by tests).",
    ),
    Variable(
        "FUELVK_DISABLE", str, "", "Comma-separated device features to treat as absent, e.g. `f16,i64`."
    ),
    Variable(
        "FUELVK_PROBE",
        ("auto", "always", "off"),
        "auto",
        "Whether a Vulkan device's strict claims are tried on hard inputs before they are first relied on: `auto` once for each device, driver build and revision of the kernels (the verdict is kept in the cache folder), `always` in every process, `off` never.",
    ),
    Variable(
        "FUELVK_LAVAPIPE_THREADS",
        int,
        None,
        "Worker threads of Mesa's CPU driver (LP_NUM_THREADS). Unset: one per core. 0 runs kernels on the queue's own thread: cheapest for plans of many tiny kernels, one core for big ones.",
    ),
    Variable(
        "FUELVK_CACHE_DIR",
        Path,
        None,
        "Folder for compilers, drivers, pipeline caches; default: the user's cache folder.",
    ),
    Variable(
        "FUELVK_TRUST",
        ("ledger", "proven", "claims"),
        TRUST,
        "Which claims of kernels count: `ledger` (proven on this very device and driver), `proven` (proven for this revision of the kernel on some device), `claims` (all that is stated). See docs/claims.md.",
    ),
    Variable(
        "FUELVK_LEDGER_DIR",
        Path,
        None,
        "Folder of your own ledgers, which `fuelvk verify` writes; default: `fuelvk/ledgers` in the user's data folder.",
    ),
    Variable(
        "FUELVK_SLANGC", str, None, "Path of slangc used to build shaders instead of the pinned package."
    ),
    Variable(
        "FUELVK_GLSLANG",
        str,
        None,
        "Path of glslangValidator used to build shaders instead of the pinned package.",
    ),
    Variable(
        "FUELVK_SPIRV_VAL",
        str,
        None,
        "Path of spirv-val used to check shaders instead of the pinned package.",
    ),
    Variable(
        "FUELVK_SPIRV_DIR",
        Path,
        None,
        "Folder with built SPIR-V and its manifest; default: the one inside the package.",
    ),
    Variable(
        "FUELVK_MODEL_DIR",
        Path,
        None,
        "Folder that holds the MiniLM model files (model.safetensors, config.json, tokenizer.json).",
    ),
)

_BY_NAME = {variable.name: variable for variable in VARIABLES}
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"", "0", "false", "no", "off"}


def get(name: str) -> Any:
    """Returns the value of a declared variable, converted; raises ParameterError on a value that is not allowed."""
    variable = _BY_NAME.get(name)
    if variable is None:
        raise UnknownNameError(
            "unknown environment variable",
            asked=name,
            hint=closest(name, _BY_NAME) or "declare it in base/env.py",
        )
    raw = os.environ.get(name)
    if raw is None or (raw == "" and variable.kind is not bool):
        return variable.default
    return _convert(variable, raw)


def _convert(variable: Variable, raw: str) -> Any:
    kind = variable.kind
    if isinstance(kind, tuple):
        if raw.lower() in kind:
            return raw.lower()
        raise ParameterError(
            f"{variable.name} has a value it does not take", seen=raw, allowed=", ".join(kind)
        )
    if kind is bool:
        word = raw.lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        raise ParameterError(f"{variable.name} is a switch", seen=raw, allowed="0 or 1")
    if kind is int:
        try:
            return int(raw, 0)
        except ValueError:
            raise ParameterError(f"{variable.name} is a whole number", seen=raw, allowed="digits") from None
    return Path(raw).expanduser() if kind is Path else raw


@contextlib.contextmanager
def scoped(**values: str | None) -> Iterator[None]:
    """Sets variables for a ``with`` block and restores them; ``None`` unsets one."""
    old = {name: os.environ.get(name) for name in values}
    try:
        for name, value in values.items():
            _assign(name, value)
        yield
    finally:
        for name, value in old.items():
            _assign(name, value)


def _assign(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def cache_dir() -> Path:
    """Returns the cache folder (not created): FUELVK_CACHE_DIR, or ``fuelvk`` in the user's cache folder."""
    chosen = get("FUELVK_CACHE_DIR")
    if chosen is not None:
        return Path(chosen)
    try:
        from platformdirs import user_cache_path
    except ImportError:  # an isolated wheel build has no dependencies installed
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(
            "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
        )
        return Path(base) / "fuelvk"
    return user_cache_path("fuelvk", appauthor=False)


def markdown() -> str:
    """Returns docs/env.md."""
    lines = [
        "# Environment variables",
        "",
        "Generated by `python -m fuelvk.cli.docs` from `fuelvk/base/env.py`; do not edit.",
        "",
        "| variable | type | default | meaning |",
        "|---|---|---|---|",
    ]
    for v in VARIABLES:
        kind = (
            "one of " + ", ".join(f"`{k}`" for k in v.kind)
            if isinstance(v.kind, tuple)
            else v.kind.__name__.lower()
        )
        default = "" if v.default in (None, "") else f"`{v.default}`"
        lines.append(f"| `{v.name}` | {kind} | {default} | {v.help} |")
    return "\n".join(lines) + "\n"
