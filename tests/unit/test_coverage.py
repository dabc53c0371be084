"""What a ledger lacks is found without a device, for exactly the kernels that changed; and what ci/drift makes of it."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from fuelvk.base.dtypes import DType
from fuelvk.evidence import Place, Record
from fuelvk.evidence.ledger import Ledger
from fuelvk.graph.registry import find_op
from fuelvk.kernels.types import FusedKernelRegistry
from fuelvk.optimizer.trust import claims_of
from fuelvk.registry import default_kernel_registry
from fuelvk.shaderbuild.paths import source_root
from fuelvk.verify.coverage import coverage, untried
from fuelvk.verify.runner import PROTOCOL
from fuelvk.verify.suite import Suite

HERE = Place("cpu", "CPU reference", "x86_64 linux", "x86_64-v4")
F32 = DType.F32


@pytest.fixture(scope="module")
def suite() -> Suite:
    kernels = FusedKernelRegistry()
    for name in ("exp", "add", "copy"):
        op = find_op(name)
        assert op is not None
        for backend, impl in default_kernel_registry().impls_for(op.id):
            if backend == "cpu":
                kernels.register(op.id, backend, impl)
    return Suite(kernels)


def recorded(suite: Suite, **changes: object) -> list[Record]:
    plain = [
        Record(
            op=op.name, backend=backend, impl=impl.name, dtypes=tuple(d.key for d in impl.dtypes),
            revision=str(impl.revision), claim=claim, promised="", worst=0.0, where="", inputs=1, shapes=1, seed=0,
            protocol=PROTOCOL, date="2026-11-30", passed=True, host=HERE.host,
        )
        for op, backend, impl in suite.implementations()
        for claim in claims_of(impl.precision)
    ]  # fmt: skip
    return [replace(r, **changes) if r.op == "exp" and r.impl == "cpu.c" else r for r in plain]  # type: ignore[arg-type]


def ledger(records: list[Record]) -> Ledger:
    found = Ledger(HERE)
    for record in records:
        found.add(record)
    return found


def test_a_ledger_of_these_kernels_is_current(suite: Suite) -> None:
    whole = ledger(recorded(suite))
    found = coverage(whole, suite)
    assert found.current and found.covered == len(list(suite.implementations())) and not found.gone
    assert untried([whole], suite) == [] and found.hosts == (HERE.host,)


@pytest.mark.parametrize(
    ("changes", "stale", "failed"),
    [
        ({"revision": "f" * 16}, True, False),
        ({"passed": False}, False, True),
        ({"passed": False, "revision": "f" * 16}, True, False),
        ({"host": "x86_64-v3"}, False, False),
        ({"protocol": PROTOCOL - 1}, True, False),
    ],
    ids=["old", "failed", "old_and_failed", "another_processor", "another_protocol"],
)
def test_what_changed_and_nothing_else_is_named(
    changes: dict[str, object], stale: bool, failed: bool, suite: Suite
) -> None:
    found = coverage(ledger(recorded(suite, **changes)), suite)
    dtypes = [f"exp cpu.c {d},{d}" for d in ("bf16", "f16", "f32", "f64")]
    assert list(found.stale) == (dtypes if stale else [])
    assert bool(found.failed) is failed
    assert found.current is not (stale or failed)


def test_a_claim_without_a_record_is_named_with_its_kernel(suite: Suite) -> None:
    records = [r for r in recorded(suite) if (r.op, r.impl, r.claim) != ("exp", "cpu.c", "canonical")]
    assert set(coverage(ledger(records), suite).stale.values()) == {("canonical",)}


def test_a_new_kernel_and_one_that_is_no_more_are_told(suite: Suite) -> None:
    records = [r for r in recorded(suite) if r.op != "add"]
    records.append(replace(records[0], impl="cpu.old"))
    found = coverage(ledger(records), suite)
    assert found.current and len(found.gone) == 1
    assert untried([ledger(records)], suite) and all(
        n.startswith("add ") for n in untried([ledger(records)], suite)
    )


@pytest.fixture(scope="module")
def drift() -> ModuleType:
    root = source_root()
    assert root is not None
    folder = Path(root) / "ci"
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("drift", folder / "drift.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["drift"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def test_drift_fails_for_known_drivers_only(drift: ModuleType) -> None:
    answer = {
        "place": "a device, a driver 2", "host": "x86_64-v3", "known": True, "elsewhere": False, "left": 0,
        "tried": 0, "kernels": [], "failed": [],
    }  # fmt: skip
    assert not drift.judged("lavapipe", answer).bad
    other = drift.judged("lavapipe", {**answer, "elsewhere": True})
    assert not other.bad and "another instruction set than x86_64-v3" in other.text
    tried = {"tried": 3, "kernels": ["exp vulkan.x f32,f32"]}
    lacking = drift.judged("lavapipe", {**answer, **tried})
    assert lacking.bad and lacking.details == ["exp vulkan.x f32,f32"]
    new = drift.judged("lavapipe", {**answer, **tried, "known": False, "failed": ["FAILED exp"]})
    assert not new.bad and "1 failed" in new.text and new.details == ["FAILED exp"]
    said: list[str] = []
    assert drift.report([lacking, new], said.append) == 1 and any("--changed" in line for line in said)
    assert drift.report([new], said.append) == 0
