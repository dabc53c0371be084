"""The gate: a claim counts only as far as FUELVK_TRUST and the ledgers bear it out, claim by claim."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.base.errors import ToleranceError
from fuelvk.cli import main
from fuelvk.evidence import Book, Place, Record, forget, update
from fuelvk.graph.registry import find_op
from fuelvk.kernels.claims import STRICT_EXACT
from fuelvk.kernels.types import BackendImpl, KernelRevisionHash, PrecisionGuarantee
from fuelvk.optimizer import trust
from fuelvk.optimizer.tolerance import Tolerance
from fuelvk.optimizer.trust import (
    Belief,
    StaleEvidenceWarning,
    Trust,
    UnverifiedDeviceWarning,
    believed,
    claims_of,
)
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.devices import VulkanDevice
from tests.support.cases import implementations

HERE = Place("vulkan", "a device", "a driver 1")
THERE = Place("vulkan", "another device", "a driver 2")
EXP = find_op("exp")
assert EXP is not None


@pytest.fixture(autouse=True)
def ledgers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No ledger but the test's own."""
    from fuelvk.evidence import books

    monkeypatch.setenv("FUELVK_LEDGER_DIR", str(tmp_path))
    monkeypatch.setattr(books, "shipped_dir", lambda: tmp_path / "none")
    monkeypatch.setattr(trust, "_named", set())
    forget()
    yield tmp_path
    forget()


def impl_of(backend: str, index: int = 0) -> BackendImpl:
    rows = [i for op, b, i in implementations() if op is EXP and b == backend and i.dtypes[0].key == "f32"]
    return sorted(rows, key=lambda i: not i.precision.canonical)[index]


def record(kernel: BackendImpl, claim: str, backend: str = "vulkan", **changes: object) -> Record:
    plain = Record(
        op="exp", backend=backend, impl=kernel.name, dtypes=tuple(d.key for d in kernel.dtypes),
        revision=str(kernel.revision), claim=claim, promised="", worst=0.0, where="", inputs=1, shapes=1, seed=0,
        protocol=1, date="2026-11-30", passed=True,
    )  # fmt: skip
    return replace(plain, **changes)  # type: ignore[arg-type]


def belief(impl: BackendImpl, level: Trust, folder: Path) -> Belief:
    assert EXP is not None
    return believed(EXP, impl, HERE, level, Book.open([folder]))


def test_claims_are_read_off_a_guarantee() -> None:
    assert claims_of(STRICT_EXACT) == ("ulp", "bit_stable", "batch_invariant", "canonical")
    assert claims_of(PrecisionGuarantee(True, max_relative=1e-3)) == ("relative", "bit_stable")
    assert claims_of(PrecisionGuarantee.none("x")) == ()
    assert claims_of(PrecisionGuarantee(False, max_relative=0.0, max_ulp=0.5)) == ("ulp", "relative")


@pytest.mark.parametrize("level", Trust)
def test_without_a_record_only_claims_counts(level: Trust, ledgers: Path) -> None:
    impl = impl_of("vulkan")
    found = belief(impl, level, ledgers)
    if level is Trust.CLAIMS:
        assert found == Belief(impl.precision)
        return
    assert len(found.set_aside) == len(claims_of(impl.precision))
    assert claims_of(found.precision) == ()
    assert all("not tried" in text for text in found.set_aside)


@pytest.mark.parametrize(
    ("records", "ledger", "proven"),
    [
        ([(HERE, True, {})], True, True),
        ([(THERE, True, {})], False, True),
        ([(HERE, False, {}), (THERE, True, {})], False, False),
        ([(THERE, False, {})], False, False),
        ([(HERE, True, {"revision": "f" * 16})], False, False),
        ([(HERE, True, {"impl": "other"})], False, False),
        ([(HERE, True, {"dtypes": ("f16", "f16")})], False, False),
        ([(HERE, True, {"op": "tanh"})], False, False),
    ],
    ids=["here", "elsewhere", "failed_here", "failed_there", "old", "other_impl", "other_dtype", "other_op"],
)
def test_a_record_counts_where_it_was_made_and_proven_counts_everywhere(
    records: list[tuple[Place, bool, dict[str, object]]], ledger: bool, proven: bool, ledgers: Path
) -> None:
    impl = impl_of("vulkan")
    for place, passed, changes in records:
        update(ledgers, place, [record(impl, "canonical", passed=passed, **changes)])
    assert belief(impl, Trust.LEDGER, ledgers).precision.canonical is ledger
    assert belief(impl, Trust.PROVEN, ledgers).precision.canonical is proven
    assert belief(impl, Trust.CLAIMS, ledgers).precision.canonical


def test_just_the_claim_without_a_record_is_set_aside(ledgers: Path) -> None:
    impl = impl_of("vulkan")
    update(ledgers, HERE, [record(impl, c) for c in claims_of(impl.precision) if c != "ulp"])
    found = belief(impl, Trust.LEDGER, ledgers)
    assert found.precision == replace(impl.precision, max_ulp=None)
    assert len(found.set_aside) == 1
    assert found.set_aside[0].startswith("ulp, since")


def test_zero_bounds_go_with_exactness(ledgers: Path) -> None:
    impl = replace(impl_of("vulkan"), precision=STRICT_EXACT)
    update(ledgers, HERE, [record(impl, "canonical")])
    found = belief(impl, Trust.LEDGER, ledgers).precision
    assert (found.max_ulp, found.max_relative, found.max_absolute, found.canonical) == (
        None,
        None,
        None,
        True,
    )


def test_an_untracked_kernel_is_never_proven(ledgers: Path) -> None:
    impl = replace(impl_of("vulkan"), revision=KernelRevisionHash.UNTRACKED)
    update(ledgers, HERE, [record(impl, c) for c in claims_of(impl.precision)])
    found = belief(impl, Trust.PROVEN, ledgers)
    assert claims_of(found.precision) == ()
    assert "untracked" in found.set_aside[0] or "no tracked revision" in found.set_aside[0]


def known(folder: Path, backend: str, place: Place) -> None:
    """Writes passing records for every implementation of exp on a backend."""
    rows = [
        record(i, c, backend, host=place.host)
        for op, b, i in implementations()
        if op is EXP and b == backend
        for c in claims_of(i.precision)
    ]
    update(folder, place, rows)
    forget()


def test_a_strict_call_goes_to_what_is_proven(ledgers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUELVK_TRUST", "ledger")
    x = np.array([1.0], np.float32)
    with pytest.raises(ToleranceError, match="fuelvk verify exp --changed --device cpu.*FUELVK_TRUST=claims"):
        fv.call("exp", x, device="cpu")
    routes = fv.explain("exp", shapes=[(1,)], device="cpu").routes
    refused = next(r for r in routes if r.impl == "cpu.c" and r.dtypes == ("f32", "f32"))
    assert refused.verdict == "refused"
    assert "canonical, since this revision was not tried" in refused.reason
    assert "fuelvk verify exp --changed --device cpu" in str(fv.explain("exp", shapes=[(1,)], device="cpu"))
    known(ledgers, "cpu", fv.device("cpu").place("cpu"))
    assert fv.call("exp", x, device="cpu")[0] == np.float32(np.e)
    monkeypatch.setenv("FUELVK_TRUST", "claims")
    assert fv.call("exp", x, device="cpu")[0] == np.float32(np.e)


def test_a_tolerance_counts_only_bounds_that_are_believed(
    ledgers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUELVK_TRUST", "proven")
    impl = impl_of("cpu")
    update(ledgers, THERE, [record(impl, "ulp", "cpu")])
    forget()
    tolerance = Tolerance.relative(1e-3)
    routes = fv.explain("exp", shapes=[(1,)], device="cpu", tolerance=tolerance).routes
    chosen = next(r for r in routes if r.verdict == "chosen")
    assert chosen.impl == impl.name
    assert [s.split(",")[0] for s in chosen.set_aside] == ["bit_stable", "batch_invariant"]
    others = [r for r in routes if r.dtypes == ("f32", "f32") and r.backend == "cpu" and r is not chosen]
    assert others and all("set aside: " in r.reason for r in others)


@pytest.mark.device
def test_a_device_falls_back_to_the_reference_and_comes_back_when_verified(
    gpu: VulkanDevice, ledgers: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FUELVK_TRUST", "proven")
    known(ledgers, "cpu", gpu.place("cpu"))
    with pytest.warns(UnverifiedDeviceWarning, match="fuelvk verify"):
        found = fv.explain("exp", shapes=[(1,)], device=gpu)
    assert next(r for r in found.routes if r.verdict == "chosen").backend == "cpu"
    assert "not tried on any device" in str(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fv.explain("exp", shapes=[(1,)], device=gpu)  # named once
    assert main(["explain", "exp", "--shape", "1", "--device", gpu.spec]) == 0
    assert "set aside" in capsys.readouterr().out
    assert main(["verify", "exp", "--smoke", "--device", gpu.spec, "--dtype", "f32", "--json"]) == 0
    found = fv.explain("exp", shapes=[(1,)], device=gpu)
    assert next(r for r in found.routes if r.verdict == "chosen").backend == "vulkan"
    assert not next(r for r in found.routes if r.verdict == "chosen").set_aside


def test_on_a_processor_only_records_of_its_instruction_set_count(ledgers: Path) -> None:
    impl = impl_of("cpu")
    here = Place("cpu", "CPU reference", "x86_64 linux", "x86_64-v3")
    update(ledgers, here, [record(impl, c, "cpu", host="x86_64-v4") for c in claims_of(impl.precision)])

    def counts(level: Trust) -> bool:
        assert EXP is not None
        found = believed(EXP, impl, here, level, Book.open([ledgers]))
        return found.precision.max_ulp is not None

    assert not counts(Trust.LEDGER)
    assert counts(Trust.PROVEN)
    update(ledgers, here, [record(impl, c, "cpu", host="x86_64-v3") for c in claims_of(impl.precision)])
    assert counts(Trust.LEDGER)


def test_the_kernel_that_defines_the_bits_serves_strict_requests_unproven(
    ledgers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUELVK_TRUST", "proven")
    x = np.array([1.0], np.float32)
    assert fv.call("exp", x, device="cpu")[0] == np.float32(np.e)
    routes = fv.explain("exp", shapes=[(1,)], device="cpu").routes
    served = next(r for r in routes if r.verdict == "chosen")
    assert served.impl == "cpu.c"
    assert [s.split(",")[0] for s in served.set_aside] == ["ulp", "bit_stable", "batch_invariant"]


@pytest.mark.device
def test_a_stale_kernel_is_passed_over_with_a_warning_that_says_what_mends_it(
    gpu: VulkanDevice, ledgers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUELVK_TRUST", "proven")
    monkeypatch.setattr(trust, "_named", {gpu.place("vulkan")})
    x = np.linspace(-1, 1, 7, dtype=np.float32)
    with pytest.warns(StaleEvidenceWarning, match="exp: cpu.c on cpu serves.*fuelvk verify --changed"):
        found = fv.call("exp", x, device=gpu)
    assert found.tobytes() == fv.call("exp", x, device="cpu").tobytes()
    fv.call("tanh", x, device=gpu)  # said once: a second warning would be an error
    with pytest.raises(ToleranceError, match="set aside: .*fuelvk verify exp --changed"):
        fv.call("exp", x, device=gpu, backend="vulkan", tolerance=Tolerance.relative(1e-3))
    monkeypatch.setenv("FUELVK_TRUST", "claims")
    fv.call("exp", x, device=gpu, backend="vulkan", tolerance=Tolerance.relative(1e-3))


def test_the_doctor_names_kernels_that_no_ledger_knows(ledgers: Path) -> None:
    from fuelvk.cli._checks import Status, evidence

    *_, note = evidence()
    assert note.status is Status.NOTE and "never verified" in note.found
    assert note.advice is not None and "fuelvk verify --changed" in note.advice
    everything = [
        replace(record(i, c, b), op=op.name)
        for op, b, i in implementations()
        for c in claims_of(i.precision)[:1]
    ]
    update(ledgers, THERE, everything)
    forget()
    (fine,) = evidence()
    assert fine.status is Status.OK and "FUELVK_TRUST is" in fine.found


_README = """
import warnings
from fuelvk.evidence import books
from pathlib import Path
if {stale}:
    books.shipped_dir = lambda: Path({nowhere!r})
warnings.simplefilter("default")
"""


@pytest.mark.parametrize("stale", [False, True], ids=["as_shipped", "without_evidence"])
def test_the_ten_lines_of_the_readme_run_by_default(stale: bool, tmp_path: Path) -> None:
    from fuelvk.shaderbuild.paths import source_root

    root = source_root()
    assert root is not None
    lines = (root / "README.md").read_text().split("```python\n")[1].split("```")[0]
    environment = {k: v for k, v in os.environ.items() if k != "FUELVK_TRUST"}
    environment |= {"FUELVK_LEDGER_DIR": str(tmp_path / "none")}
    code = _README.format(stale=stale, nowhere=str(tmp_path / "none")) + lines
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "(8, 256) 8.0" in done.stdout
    if stale and "vulkan:0" in done.stdout:
        assert "StaleEvidenceWarning" in done.stderr
        assert "fuelvk verify softmax_last_dim --changed" in done.stdout


@pytest.mark.build
def test_editing_one_shader_line_makes_just_its_kernels_stale(ledgers: Path, tmp_path: Path) -> None:
    """The shader is edited in a copy of the sources and built; a new process lists the revisions it then sees."""
    import shutil

    from fuelvk.shaderbuild import build
    from fuelvk.shaderbuild.paths import output_dir, source_root

    root = source_root()
    assert root is not None
    rows = [replace(record(i, "canonical", backend), op=op.name) for op, backend, i in implementations()]
    update(ledgers, HERE, rows)
    shutil.copytree(root / "shaders", tmp_path / "tree" / "shaders")
    shutil.copytree(output_dir(), tmp_path / "built")
    shader = tmp_path / "tree" / "shaders" / "slang" / "movement" / "triangle.slang"
    text = shader.read_text()
    shader.write_text(text + "// one line more\n")
    report = build(root=tmp_path / "tree", output=tmp_path / "built")
    assert 0 < report.compiled < 20
    code = (
        "import json\nfrom fuelvk.registry import default_kernel_registry\n"
        "print(json.dumps([[o.name.lower(), b, i.name, [d.key for d in i.dtypes], str(i.revision)] "
        "for o, b, i in default_kernel_registry()]))"
    )
    environment = {**os.environ, "FUELVK_SPIRV_DIR": str(tmp_path / "built")}
    listed = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    book = Book.open([ledgers])
    covered = {
        (r.op, r.backend, r.impl, r.dtypes)
        for _, r in (x for s in rows for x in book.of_revision(s.revision))
    }
    assert len(covered) == len(rows)
    stale = {
        (op, backend, impl)
        for op, backend, impl, dtypes, revision in json.loads(listed.stdout)
        if not any(
            (r.op, r.impl, r.dtypes) == (op, impl, tuple(dtypes)) for _, r in book.of_revision(revision)
        )
    }
    assert stale == {("triu", "vulkan", "vulkan.triangle"), ("tril", "vulkan", "vulkan.triangle")}
    assert len(list(default_kernel_registry())) == len(json.loads(listed.stdout))
