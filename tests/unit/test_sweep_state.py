"""Sweeps in the ledgers: current, lagging or missing, as the commands and the gate see them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fuelvk.cli import main
from fuelvk.evidence import Book, Ledger, Place, Record, forget, read, update
from fuelvk.graph.registry import find_op
from fuelvk.optimizer.trust import Trust, believed
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.devices import device
from fuelvk.verify.sweep_source import Level, source
from fuelvk.verify.sweep_state import State, level_of_record, states

SWEEP = Record(
    op="exp", backend="cpu", impl="cpu.c", dtypes=("f32", "f32"), revision="a" * 16, claim="sweep",
    promised="0.5 ULP", worst=0.499999998, where="0xc16912cd (-14.56709)", inputs=2**32, shapes=1, seed=0, protocol=1,
    date="2026-11-30", passed=True, counts={"not_correctly_rounded": 0}, source=source("exp", Level.ROUNDED),
)  # fmt: skip


def here() -> Place:
    return device("cpu").place("cpu")


def ledger(*records: Record) -> Ledger:
    found = Ledger(here())
    for record in records:
        found.add(record)
    return found


def state(op: str, *records: Record) -> State:
    (found,) = states(device("cpu"), [op], [ledger(*records)])
    assert (found.op, found.level, found.backend) == (op, Level.ROUNDED, "cpu")
    return found.state


def test_a_sweep_is_current_whatever_the_revision_until_its_source_changes() -> None:
    assert state("exp", SWEEP) is State.CURRENT
    assert state("exp", replace(SWEEP, revision="b" * 16, impl="cpu.other")) is State.CURRENT
    assert state("exp", replace(SWEEP, source="c" * 16)) is State.LAGGING
    assert state("exp", replace(SWEEP, source="")) is State.LAGGING
    assert state("exp", replace(SWEEP, source=source("exp2", Level.ROUNDED))) is State.LAGGING
    assert state("exp2", SWEEP) is State.NEVER
    for name in ("cpu.a", "cpu.z"):
        old = replace(SWEEP, source="c" * 16, impl=name, date="2026-12-01")
        assert state("exp", SWEEP, old) is State.CURRENT
        assert state("exp", replace(SWEEP, source="d" * 16), old) is State.LAGGING


def test_a_source_that_is_not_installed_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuelvk.verify.sweep_state.source", lambda *_: "")
    assert state("exp", replace(SWEEP, source="c" * 16)) is State.UNKNOWN


def test_the_level_of_a_record_is_that_of_its_source_else_of_its_name() -> None:
    assert level_of_record(replace(SWEEP, source=source("exp", Level.CHEAP))) is Level.CHEAP
    lagging = replace(SWEEP, source="")
    for impl, level in (("vulkan.functions_cheap", Level.CHEAP), ("vulkan.functions_driver", Level.DRIVER)):
        assert level_of_record(replace(lagging, impl=impl)) is level
    assert level_of_record(lagging) is Level.ROUNDED


def test_levels_of_a_device_are_listed_with_those_of_c(tmp_path: Path) -> None:
    op = find_op("exp")
    assert op is not None
    rows = default_kernel_registry().impls_for(op.id)
    assert {s.level for s in states(device("cpu"), ["exp"], [])} == {Level.ROUNDED}
    assert states(device("cpu"), ["add"], []) == []
    assert any(backend == "vulkan" for backend, _ in rows)


@pytest.mark.device
def test_a_device_has_three_levels(gpu: object) -> None:
    found = states(device("vulkan:0"), ["exp"], [])
    assert [(s.backend, s.level) for s in found] == [("cpu", Level.ROUNDED), *(("vulkan", x) for x in Level)]


def test_no_sweep_proves_a_claim_to_the_gate(tmp_path: Path) -> None:
    """Neither a lagging one nor a current one stands for the record of a claim."""
    op = find_op("exp")
    assert op is not None
    impl = next(i for b, i in default_kernel_registry().impls_for(op.id) if b == "cpu" and i.name == "cpu.c")
    for record in (SWEEP, replace(SWEEP, source="c" * 16)):
        update(tmp_path, here(), [replace(record, revision=str(impl.revision))])
        found = believed(op, impl, here(), Trust.PROVEN, Book.open([tmp_path]))
        assert found.precision.max_ulp is None


def test_the_status_and_the_table_show_what_lags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FUELVK_LEDGER_DIR", str(tmp_path))
    update(tmp_path, here(), [replace(SWEEP, source="c" * 16)])
    forget()
    try:
        assert main(["verify", "exp", "exp2", "--sweep", "--status", "--device", "cpu", "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)["sweeps"]
        assert rows[0]["state"] == "lagging"
        assert rows[0]["record"]["worst"] == 0.499999998
        assert main(["verify", "exp", "--smoke", "--claims", "ulp", "--device", "cpu"]) == 0
        assert "lagging" in capsys.readouterr().out
    finally:
        forget()


def test_only_what_is_not_current_is_swept_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FUELVK_LEDGER_DIR", str(tmp_path))
    arguments = ["verify", "exp", "--sweep", "--changed", "--device", "cpu", "--range", "0:0xfff", "--json"]
    for record, rows in ((SWEEP, []), (replace(SWEEP, source="c" * 16), ["cpu.c"])):
        update(tmp_path, here(), [record])
        forget()
        assert main(arguments) == 0
        assert [r["impl"] for r in json.loads(capsys.readouterr().out)["records"]] == rows
    forget()


def test_ledgers_are_merged_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FUELVK_LEDGER_DIR", str(tmp_path / "mine"))
    update(tmp_path / "other", here(), [SWEEP])
    assert main(["verify", "--merge", str(tmp_path / "other"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ledgers"][0]["changed"] == 1
    assert list(read(tmp_path / "mine" / f"{here().slug}.jsonl").records.values()) == [SWEEP]
    assert main(["verify", "--merge", str(tmp_path / "other")]) == 0
    assert "0 records new or changed, 1 in all" in " ".join(capsys.readouterr().out.split())
    assert main(["verify", "--merge", str(tmp_path / "nowhere")]) == 2
    assert "not a folder" in capsys.readouterr().err
