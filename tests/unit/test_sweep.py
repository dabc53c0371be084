"""The sweep: what it counts, that it goes on where it stopped, what it records, and that a wrong kernel fails."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuelvk.base.errors import ParameterError, UnsupportedError
from fuelvk.cli import main
from fuelvk.evidence import read
from fuelvk.graph.registry import find_op
from fuelvk.graph.types import OpEntry
from fuelvk.runtime.devices import Device
from fuelvk.verify import sweep as module
from fuelvk.verify.sweep import Sweep, swept_ops
from fuelvk.verify.sweep_source import Level, level_swept

FIRST, LAST = 0x3F7FF000, 0x3F80FFFF


def op_named(name: str) -> OpEntry:
    found = find_op(name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", swept_ops())
def test_every_function_keeps_its_claim_on_some_inputs(name: str, tmp_path: Path) -> None:
    for first in (0, 0x33000000, 0x3F7FF000, 0x7F7FF800, 0x80FFF800, 0xBF7FF000, 0xC2AFF800, 0xFF7FF800):
        for outcome in Sweep(op_named(name), first=first, last=first + 0xFFF, folder=tmp_path).run():
            assert outcome.record.passed, outcome.record.line()
            assert outcome.record.inputs == 4096
    assert not list(tmp_path.glob("*.jsonl")), "only a sweep of all inputs is recorded"


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    whole = Sweep(op_named("tanh"), first=FIRST, last=LAST, folder=tmp_path).run()
    stopped = Sweep(op_named("tanh"), first=FIRST, last=LAST, chunk=4096, folder=tmp_path)

    def stop(done: int, total: int) -> None:
        assert total == LAST - FIRST + 1
        if done >= 3 * 4096:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped.run(stop)
    again = Sweep(op_named("tanh"), first=FIRST, last=LAST, chunk=4096, folder=tmp_path)
    assert again.resume()
    assert again.next == FIRST + 3 * 4096
    assert [o.record for o in again.run()] == [o.record for o in whole]
    assert not Sweep(op_named("tanh"), first=FIRST, last=LAST, folder=tmp_path).resume(), "done and forgotten"


def test_an_interrupted_command_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("FUELVK_LEDGER_DIR", str(tmp_path))
    monkeypatch.setattr(Sweep, "_start", stop)
    command = ["verify", "tanh", "--sweep", "--range", f"{FIRST}:{LAST}"]
    assert main(command) == 130
    assert "of tanh were tried; the same command with --resume goes on" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FUELVK_LEDGER_DIR", str(tmp_path / "file" / "below"))
    assert main(command) == 1
    assert "next: set FUELVK_LEDGER_DIR" in capsys.readouterr().err


def test_the_last_inputs_are_tried(tmp_path: Path) -> None:
    sweep = Sweep(op_named("tanh"), first=0xFFFFF000, chunk=1024, folder=tmp_path)
    assert {o.record.inputs for o in sweep.run()} == {4096}
    assert sweep.next == 1 << 32


@pytest.mark.parametrize("damage", ["{", '{"protocol": 1}', '{"protocol": 1, "next": 5, "parts": [1]}', "[]"])
def test_a_damaged_state_starts_afresh(damage: str, tmp_path: Path) -> None:
    sweep = Sweep(op_named("tanh"), first=FIRST, last=LAST, folder=tmp_path)
    sweep._state.parent.mkdir()
    sweep._state.write_text(damage)
    assert not sweep.resume()
    assert sweep.next == FIRST


@pytest.mark.device
def test_levels_can_be_chosen_and_the_c_kernel_comes_along(gpu: Device, tmp_path: Path) -> None:
    sweep = Sweep(op_named("exp"), gpu, first=FIRST, last=LAST, folder=tmp_path, levels={Level.CHEAP})
    assert [o.record.impl for o in sweep.run()] == ["cpu.c", "vulkan.functions_cheap"]


def test_another_source_starts_afresh_and_another_build_does_not(tmp_path: Path) -> None:
    from fuelvk.kernels.types import KernelRevisionHash

    sweep = Sweep(op_named("tanh"), first=FIRST, last=LAST, folder=tmp_path)
    sweep._save()
    assert sweep.resume()
    sweep.parts[0].impl = replace(sweep.parts[0].impl, revision=KernelRevisionHash(7))
    assert sweep.resume()
    sweep.parts[0].source = "0" * 16
    assert not sweep.resume()


def test_a_full_sweep_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAST", 0xFFFF)
    outcomes = Sweep(op_named("exp"), first=0, last=0xFFFF, folder=tmp_path).run()
    for outcome in outcomes:
        ledger = read(tmp_path / f"{outcome.place.slug}.jsonl")
        assert outcome.record in ledger.records.values()
        assert outcome.record.host == outcome.place.host
        assert level_swept(outcome.record) is not None, "it is of the source as it is"
    assert not outcomes[0].record.counts["bytes_unlike_c"]


@pytest.mark.parametrize("broken", [0, -1])
def test_a_kernel_that_is_wrong_once_fails(
    broken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken in the C kernel alone or in the last implementation alone: the record of that one fails."""
    sweep = Sweep(op_named("exp"), first=FIRST, last=LAST, folder=tmp_path)
    honest = sweep._runners

    def runners() -> list[Any]:
        made = honest()
        kernel = made[broken]

        def wrong(values: Any) -> Any:
            result = kernel(values).copy()
            result.view(np.uint32)[values == 1.0] += 2
            return result

        made[broken] = wrong
        return made

    monkeypatch.setattr(sweep, "_runners", runners)
    outcomes = sweep.run()
    record = outcomes[broken].record
    assert not record.passed
    assert record.counts["not_correctly_rounded"] == 1
    assert 1.5 < record.worst < 2.5
    assert record.where == "0x3f800000 (1)"
    for other in outcomes[-1:]:
        if len(outcomes) > 1:
            assert other.record.counts["bytes_unlike_c"] == 1
            assert not other.record.passed


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FUELVK_LEDGER_DIR", str(tmp_path))
    arguments = ["verify", "sqrt", "--sweep", "--dtype", "f32", "--range", "0x3f800000:0x3f80ffff"]
    assert main([*arguments, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {row["inputs"] for row in data["records"]} == {65536}
    assert {row["counts"]["not_correctly_rounded"] for row in data["records"]} == {0}
    assert main([*arguments, "--device", "cpu"]) == 0
    assert "65,536 inputs a function" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["exp", "--sweep", "--range", "1"], "FIRST:LAST"),
        (["exp", "--sweep", "--range", "9:3"], "FIRST <= LAST"),
        (["exp", "--sweep", "--dtype", "f16"], "only F32"),
    ],
)
def test_wrong_usage(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_only_functions_of_one_input_are_swept(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="exp"):
        Sweep(op_named("add"), folder=tmp_path)
    with pytest.raises(ParameterError, match="no range"):
        Sweep(op_named("exp"), first=5, last=4, folder=tmp_path)
