"""``fv.verify`` and ``fuelvk verify``: selection, records, ledgers, resuming, comparing, reporting, exit status."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fuelvk as fv
from fuelvk.base.dtypes import DType
from fuelvk.base.errors import ParameterError, UnknownNameError
from fuelvk.cli import main
from fuelvk.evidence import forget, read
from fuelvk.kernels.types import BackendImpl, FusedKernelRegistry, KernelRevisionHash
from fuelvk.optimizer.trust import DamagedLedgerWarning, claims_of
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.devices import VulkanDevice
from fuelvk.verify import runner
from fuelvk.verify.runner import Run
from fuelvk.verify.suite import default_suite
from tests.support.cases import implementations


@pytest.fixture(autouse=True)
def ledgers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUELVK_LEDGER_DIR", str(tmp_path))
    forget()
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any]]:
    def call(*arguments: str) -> tuple[int, Any]:
        status = main(["verify", *arguments, "--json"])
        return status, json.loads(capsys.readouterr().out)

    return call


def test_every_claim_of_an_op_gets_a_record() -> None:
    records = fv.verify("exp", device="cpu", level="smoke")
    wanted = {
        (impl.name, tuple(d.key for d in impl.dtypes), claim)
        for op, backend, impl in implementations()
        if op.name == "exp" and backend == "cpu"
        for claim in claims_of(impl.precision)
    }
    assert {(r.impl, r.dtypes, r.claim) for r in records} == wanted
    assert all(r.passed and r.inputs for r in records)
    rounded = next(r for r in records if r.claim == "ulp" and r.impl == "cpu.c" and r.dtypes[0] == "f32")
    assert 0.4 < rounded.worst <= 0.5
    assert " of " in rounded.where and " for " in rounded.where


@pytest.mark.device
def test_a_device_is_held_to_the_same(gpu: VulkanDevice) -> None:
    records = fv.verify(["tanh", "softmax_last_dim"], device=gpu, dtype="f32", level="smoke")
    assert {r.backend for r in records} == {"vulkan"}
    assert {r.claim for r in records} == {"ulp", "bound", "canonical", "bit_stable", "batch_invariant"}
    assert all(r.passed for r in records), [r.line() for r in records if not r.passed]


def test_16_bit_functions_are_tried_on_all_their_values() -> None:
    (record,) = fv.verify("tanh", device="cpu", dtype="f16", claims=["canonical"])
    assert record.inputs > 65536


def test_a_new_process_is_asked_too() -> None:
    calls = []
    original = runner.in_a_new_process

    def spying(device: Any, questions: Any) -> Any:
        calls.append(questions)
        return original(device, questions)

    runner.in_a_new_process, restore = spying, original
    try:
        (record,) = fv.verify("exp", device="cpu", dtype="bf16", claims=["bit_stable"])[:1]
    finally:
        runner.in_a_new_process = restore
    assert record.passed and "new process" not in record.notes
    assert calls and calls[0]


def test_a_record_says_when_no_new_process_was_asked() -> None:
    records = fv.verify("exp", device="cpu", dtype="bf16", claims=["bit_stable"], level="smoke")
    assert records and all("not repeated in a new process" in r.notes for r in records)


def test_other_bits_in_a_new_process_fail_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        runner,
        "in_a_new_process",
        lambda device, questions: {questions[0].key: "x: other bits in a new process"},
    )
    records = fv.verify("exp", device="cpu", dtype="f32", claims=["bit_stable"])
    assert [r.passed for r in records] == [False] + [True] * (len(records) - 1)
    assert "new process" in records[0].where


def test_wrong_choices_are_named() -> None:
    for options, error, words in (
        ({"op": "exq"}, UnknownNameError, "exp"),
        ({"op": "exp", "claims": ["ulps"]}, UnknownNameError, "ulp"),
        ({"op": "exp", "level": "deep"}, ParameterError, "smoke"),
    ):
        with pytest.raises(error, match=words):
            fv.verify(**{"device": "cpu", **options})


def test_the_command_keeps_records_and_then_finds_nothing_changed(
    run: Callable[..., tuple[int, Any]], ledgers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("exp", "--device", "cpu", "--dtype", "f32", "--smoke")
    status, data = run(*arguments)
    assert status == 0
    assert data["records"]
    (path,) = ledgers.glob("*.jsonl")
    assert len(read(path).records) == len(data["records"])
    status, data = run(*arguments, "--changed")
    assert (status, data["records"]) == (0, [])
    assert main(["verify", *arguments]) == 0
    assert "0 failed" in capsys.readouterr().out


def test_a_weaker_run_does_not_replace_a_stronger_one(ledgers: Path) -> None:
    options: dict[str, Any] = {"device": "cpu", "dtype": "bf16", "claims": ["ulp"], "keep": True}
    full = {r.key: r for r in fv.verify("exp", level="full", **options)}
    fv.verify("exp", level="smoke", **options)
    (path,) = ledgers.glob("*.jsonl")
    assert read(path).records == full


def altered(impl: BackendImpl, **changes: Any) -> Run:
    """Returns a run over a registry in which one implementation is changed."""
    registry = FusedKernelRegistry()
    for op_id, backend, other in default_kernel_registry():
        if op_id.name == "exp":
            registry.register(op_id, backend, replace(other, **changes) if other is impl else other)
    return Run(fv.device("cpu"), replace(default_suite(), kernels=registry), changed=True)


def test_a_changed_kernel_alone_is_stale() -> None:
    fv.verify("exp", device="cpu", level="smoke", keep=True)
    impl = next(
        i for op, b, i in implementations() if op.name == "exp" and b == "cpu" and i.dtypes[0] is DType.F16
    )
    assert altered(impl).rows() == []
    stale = altered(impl, revision=KernelRevisionHash(77)).rows()
    assert [(op.name, i.dtypes) for op, _, i in stale] == [("exp", impl.dtypes)]


def test_a_failed_claim_is_an_exit_status(
    run: Callable[..., tuple[int, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fuelvk.verify import protocols

    monkeypatch.setattr(protocols, "differing", lambda a, b, flushes=False: (1, "made up"))
    status, data = run("exp", "--device", "cpu", "--dtype", "f32", "--smoke", "--claims", "canonical")
    assert status == 1
    assert not any(r["passed"] for r in data["records"])
    assert "made up" in data["records"][0]["where"]


_EXP = ("exp", "--device", "cpu", "--dtype", "f32", "--smoke")


@pytest.mark.parametrize("damage", ["noise", "cut", "version", "line"])
def test_a_damaged_ledger_is_named(
    damage: str,
    run: Callable[..., tuple[int, Any]],
    ledgers: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run(*_EXP)
    (path,) = ledgers.glob("*.jsonl")
    content = path.read_bytes()
    path.write_bytes(
        {
            "noise": bytes(range(128, 256)),
            "cut": content[:-100],
            "version": content.replace(b'"version": 1', b'"version": 99', 1),
            "line": content + b"{}\n",
        }[damage]
    )
    forget()
    main(["doctor", "--no-smoke", "--json"])
    found = [f["found"] for f in json.loads(capsys.readouterr().out)["findings"]]
    assert any(path.name in text for text in found)
    if damage != "line":
        forget()
        monkeypatch.setenv("FUELVK_TRUST", "proven")
        with pytest.warns(DamagedLedgerWarning, match=f"{path.name}.*next: .*fuelvk doctor"):
            fv.explain("exp", device="cpu")
    forget()
    status, data = run(*_EXP)
    assert status == 0
    assert any(path.name in problem for problem in data["problems"])
    forget()
    assert run(*_EXP)[1]["problems"] == []


def test_what_cannot_be_written_is_said_before_the_work(
    run: Callable[..., tuple[int, Any]], ledgers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("work was begun")

    monkeypatch.setattr(Run, "_verified", never)
    status, data = run(*_EXP, "--html", str(ledgers / "none" / "x.html"))
    assert status == 2
    (ledgers / "file").write_text("")
    monkeypatch.setenv("FUELVK_LEDGER_DIR", str(ledgers / "file" / "below"))
    other_status, other = run(*_EXP)
    assert other_status == 1
    for found in (data, other):
        assert all(word in found["error"]["message"] for word in ("asked: ", "seen: ", "allowed: ", "next: "))


def test_findings_are_shown_when_they_cannot_be_kept(
    ledgers: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fuelvk.verify import report

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runner, "update", full)
    monkeypatch.setattr(report, "page", full)
    assert main(["verify", *_EXP, "--html", str(ledgers / "x.html")]) == 1
    printed = capsys.readouterr().out
    assert printed.index("cpu.c") < printed.index("not all was kept")
    assert "the report was not written" in printed
    assert "kept in" not in printed


def test_an_interrupted_run_goes_on(
    run: Callable[..., tuple[int, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original, count = Run._verified, 0

    def stopping(self: Run, *arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(Run, "_verified", stopping)
    arguments = ("verify", "exp", "--device", "cpu", "--smoke")
    assert main(arguments) == 130
    printed = capsys.readouterr().out
    assert "of 2 implementations" in printed
    assert "--resume goes on" in printed
    monkeypatch.setattr(Run, "_verified", original)
    status, data = run(*arguments[1:], "--resume")
    implementations_left = {(r["impl"], r["dtypes"]) for r in data["records"]}
    total = sum(op.name == "exp" and b == "cpu" for op, b, _ in implementations())
    assert status == 0
    assert len(implementations_left) == total - 2
    assert run(*arguments[1:], "--resume") == (0, {"level": "smoke", "records": [], "left": []})
    assert main([*arguments, "--resume"]) == 0
    assert "nothing is left to resume" in capsys.readouterr().out
    assert len({(r["impl"], r["dtypes"]) for r in run(*arguments[1:])[1]["records"]}) == total


def test_a_spent_budget_says_what_is_left(run: Callable[..., tuple[int, Any]]) -> None:
    status, data = run("exp", "--device", "cpu", "--smoke", "--budget", "0")
    assert status == 0
    assert not data["records"]
    assert len(data["left"]) == sum(op.name == "exp" and b == "cpu" for op, b, _ in implementations())


def test_the_report_stands_alone(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert main(["verify", "erf", "--device", "cpu", "--smoke", "--html", str(page), "--json"]) == 0
    text = page.read_text()
    assert text.count("<svg") == sum(op.name == "erf" and b == "cpu" for op, b, _ in implementations())
    assert "src=" not in text and "href=" not in text
    assert "cpu.c" in text and "batch_invariant" in text


@pytest.mark.device
def test_two_devices_are_compared(
    run: Callable[..., tuple[int, Any]], gpu: VulkanDevice, flushes: bool
) -> None:
    status, data = run("exp", "add", "--compare", "cpu", gpu.spec)
    assert data["calls"] > 20
    if not flushes:
        assert (status, data["rows"]) == (0, [])


def test_a_difference_is_shown(run: Callable[..., tuple[int, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    from fuelvk.verify import differences

    count = iter(range(1000))
    monkeypatch.setattr(differences, "differing", lambda a, b: (1, "here") if next(count) == 0 else (0, ""))
    status, data = run("exp", "--compare", "cpu", "cpu")
    assert status == 1
    assert [r["text"] for r in data["rows"]] == ["here"]


def test_the_report_is_one_file_whose_plots_hold_the_errors(tmp_path: Path, ledgers: Path) -> None:
    from xml.etree import ElementTree

    page = tmp_path / "report.html"
    assert main(["verify", "tanh", "--device", "cpu", "--smoke", "--html", str(page), "--json"]) == 0
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=|https?://|url\(|@import|<script", text)
    svgs = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", text)
    assert len(svgs) == len(captions) > 1
    for svg, caption in zip(svgs, captions, strict=True):
        (line,) = ElementTree.fromstring(svg).iter("polyline")
        points = [tuple(map(float, p.split(","))) for p in line.attrib["points"].split()]
        xs, ys = zip(*points, strict=True)
        assert len(points) == 240 and list(xs) == sorted(xs) and len(set(ys)) > 3, caption
        assert float(re.search(r"at most ([0-9.]+) ULP", caption)[1]) <= 1  # type: ignore[index]


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F32, DType.F64])
def test_inputs_stand_in_a_plot_where_its_axis_says(dtype: DType) -> None:
    from fuelvk.verify.report import inputs, place

    x = inputs(dtype, 1000)
    for number in (0, 250, 499, 500, 750, 999):
        assert place(float(x[number]), dtype) == pytest.approx((number + 0.5) / 1000, abs=1e-3)
    assert place(0.0, dtype) == 0.5
