"""docs/own-kernels.md as it stands: a GLSL kernel and a Python function through the protocols, the gate and a call."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuelvk.evidence import forget
from fuelvk.shaderbuild.paths import source_root

pytestmark = pytest.mark.build


def blocks() -> dict[str, list[str]]:
    root = source_root()
    assert root is not None
    found: dict[str, list[str]] = {}
    for language, text in re.findall(
        r"```(\w+)\n(.*?)```", (root / "docs/own-kernels.md").read_text(), re.DOTALL
    ):
        found.setdefault(language, []).append(text)
    return found


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own") / "mine"
    (folder / "shaders/glsl/activation").mkdir(parents=True)
    text = blocks()
    (folder / "shaders/glsl/activation/softsign.comp").write_text(text["glsl"][0])
    (folder / "shaders/glsl/activation/softsign.toml").write_text(text["toml"][0])
    (folder / "kernels.py").write_text(text["python"][0])
    (folder / "use.py").write_text("from kernels import *\n" + "".join(text["python"][1:3]))
    (folder / "test_mine.py").write_text("from kernels import *\n" + text["python"][3])
    return folder


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    forget()
    yield
    forget()


def run(mine: Path, *arguments: str, trust: str) -> subprocess.CompletedProcess[str]:
    root = source_root()
    assert root is not None
    environment = {
        **os.environ,
        "FUELVK_TRUST": trust,
        "FUELVK_LEDGER_DIR": str(mine.parent / "ledgers"),
        "PYTHONPATH": os.pathsep.join([str(root), str(mine)]),
    }
    return subprocess.run(
        [sys.executable, *arguments], cwd=mine, env=environment, capture_output=True, text=True, check=False
    )


def test_the_example_runs_and_its_records_open_the_gate(mine: Path) -> None:
    done = run(mine, "use.py", trust="ledger")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(("True", "False"))]
    assert {line.split()[2] for line in lines} == {"ulp", "bit_stable", "batch_invariant"}
    assert all(line.startswith("True") for line in lines)
    assert list((mine.parent / "ledgers").glob("*.jsonl"))


def test_an_edited_shader_is_no_longer_believed(mine: Path, tmp_path: Path) -> None:
    use = "from kernels import *\nimport fuelvk as fv\n" + blocks()["python"][2]
    (mine / "again.py").write_text(use)
    assert run(mine, "again.py", trust="ledger").returncode == 0
    shader = mine / "shaders/glsl/activation/softsign.comp"
    text = shader.read_text()
    kernels = (mine / "kernels.py").read_text()
    try:
        shader.write_text(text + "// edited\n")
        (mine / "kernels.py").write_text(
            kernels.replace("return x / (np.float32(1)", "return  x / (np.float32(1)")
        )
        failed = run(mine, "again.py", trust="ledger")
    finally:
        shader.write_text(text)
        (mine / "kernels.py").write_text(kernels)
    assert failed.returncode == 1
    assert "ToleranceError" in failed.stderr
    assert "set aside: ulp, bit_stable, batch_invariant, since this revision was not tried" in failed.stderr
    assert "fv.verify('softsign', suite=..., keep=True)" in failed.stderr


def test_the_plug_in_makes_a_test_of_every_claim(mine: Path) -> None:
    done = run(
        mine,
        "-m",
        "pytest",
        "-q",
        "-p",
        "fuelvk.verify.pytest_plugin",
        "--strict-markers",
        "test_mine.py",
        trust="claims",
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"\b3 passed", done.stdout), done.stdout


def test_a_claim_that_is_not_kept_fails_the_test(mine: Path) -> None:
    bold = (mine / "kernels.py").read_text().replace("max_ulp=4", "max_ulp=0.5")
    (mine / "bold.py").write_text(bold)
    (mine / "test_bold.py").write_text("from bold import *\n" + blocks()["python"][3])
    done = run(
        mine, "-m", "pytest", "-q", "-p", "fuelvk.verify.pytest_plugin", "test_bold.py", trust="claims"
    )
    assert done.returncode == 1
    assert re.search(r"1 failed, 2 passed", done.stdout), done.stdout
