"""Imports point down only (design.md section 2), and some modules stay free of NumPy."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fuelvk

ROOT = Path(fuelvk.__file__).parent

# What each room may import, besides itself. `fuelvk.graph` stands for everything under it.
PUBLIC = "__init__"  # the lazy public names
BASE = frozenset({"base"})
GRAPH = BASE | {"graph", "discover"}
VULKAN = BASE | {"vulkan"}
SHADERBUILD = BASE | {"shaderbuild"}
KERNELS = GRAPH | VULKAN | SHADERBUILD | {"kernels"}
REGISTRY = KERNELS | {"registry"}
OPTIMIZER = REGISTRY | {"optimizer", "evidence"}
RUNTIME = OPTIMIZER | {"runtime"}
VERIFY = OPTIMIZER | RUNTIME | {"verify"}
TENSOR = RUNTIME | {"tensor", "ops"}
ALL = TENSOR | VERIFY | {"formats", "models", "cli", "fused", PUBLIC}
ALLOWED: dict[str, frozenset[str]] = {
    "base": frozenset(),
    "evidence": BASE,
    "discover": BASE,
    "graph": GRAPH,
    "vulkan": VULKAN,
    "shaderbuild": SHADERBUILD,
    "kernels": KERNELS,
    "registry": REGISTRY,
    "fused": REGISTRY,
    "optimizer": OPTIMIZER,
    "runtime": RUNTIME,
    "verify": VERIFY,
    "tensor": TENSOR,
    "ops": TENSOR,
    "formats": TENSOR | {"formats"},
    "models": TENSOR | {"formats", "models", PUBLIC},
    "cli": ALL,
    "__main__": ALL,
    "__init__": ALL,
}


def room_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else path.stem


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Yields (line, room) for every import of fuelvk, wherever it stands; those for type checkers only as well."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "relative"
        for name in names:
            parts = name.split(".")
            if parts[0] == "fuelvk":
                room = parts[1] if len(parts) > 1 else PUBLIC
                there = (ROOT / room).exists() or (ROOT / f"{room}.py").exists()
                yield node.lineno, room if there else PUBLIC


def faults(path: Path) -> list[str]:
    room = room_of(path)
    allowed = ALLOWED.get(room)
    if allowed is None:
        return [f"{path}: {room} is not a room of the design; give it a row in ALLOWED"]
    return [
        f"{path}:{line}: {room} may not import {target}"
        for line, target in imported(path)
        if target != room and target not in allowed
    ]


SOURCES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=[str(p.relative_to(ROOT)) for p in SOURCES])
def test_imports_point_down(path: Path) -> None:
    assert faults(path) == []


def test_a_bad_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    for room in ("graph", "kernels", "base"):
        (tmp_path / room).mkdir()
    bad = tmp_path / "graph" / "bad.py"
    bad.write_text("def f():\n    from fuelvk.kernels import types\n")
    good = tmp_path / "kernels" / "good.py"
    good.write_text("from fuelvk.graph import types\nimport fuelvk.base\n")
    relative = tmp_path / "base" / "near.py"
    relative.write_text("from . import dtypes\n")
    assert faults(bad) == [f"{bad}:2: graph may not import kernels"]
    assert faults(good) == []
    assert faults(relative) == [f"{relative}:1: base may not import relative"]


def test_the_oracles_know_only_dtypes() -> None:
    reference = ROOT.parent / "cpu_reference"
    for path in sorted(reference.rglob("*.py")):
        for line, target in imported(path):
            assert target in ("base", "graph"), f"{path}:{line}: cpu_reference may not import {target}"


@pytest.mark.parametrize(
    "module",
    ["fuelvk", "fuelvk.base.errors", "fuelvk.base.env", "fuelvk.base.hashing", "fuelvk.shaderbuild"],
)
def test_import_needs_no_numpy(module: str) -> None:
    code = f"import sys; import {module}; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT.parent, check=False).returncode == 0
