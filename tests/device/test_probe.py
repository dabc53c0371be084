"""The probe of strict arithmetic: what a device that computes wrongly loses, and where the verdict is kept."""

from __future__ import annotations

import copy
import json
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.base import env
from fuelvk.base.errors import UnsupportedError, VulkanCallError
from fuelvk.cli import main
from fuelvk.graph.registry import find_op
from fuelvk.kernels.types import BackendId
from fuelvk.runtime import probe
from fuelvk.runtime.devices import VulkanDevice
from fuelvk.shaderbuild.manifest import Variant
from fuelvk.vulkan import pipelines

NO_CONTRACTION = 42
OP_DECORATE = 71


@pytest.fixture
def fresh(gpu: VulkanDevice, tmp_path: Path) -> Iterator[VulkanDevice]:
    """The device opened once more, with a cache folder of its own."""
    with env.scoped(FUELVK_CACHE_DIR=str(tmp_path), FUELVK_PROBE="auto"):
        device = VulkanDevice(gpu.spec, gpu.info)
        yield device
        device.vk.close()


def spoil(monkeypatch: pytest.MonkeyPatch, part: str, name: str, case: int = 5) -> str:
    """Alters one expected result by a unit; returns the result that the device will be blamed for."""
    document, digest = probe._document()
    document = copy.deepcopy(document)
    row = document["parts"][part][name]
    at, digits = 16 * case, 8 if part == "f32" else 16
    right = row["want"][at : at + digits]
    row["want"] = row["want"][:at] + f"{int(right, 16) ^ 1:0{digits}x}" + row["want"][at + digits :]
    monkeypatch.setattr(probe, "_document", lambda: (document, digest + 1))
    return str(right)


def test_this_device_passes(gpu: VulkanDevice, flushes: bool) -> None:
    found = probe.run(gpu.vk)
    assert found.passed, found.summary()
    assert ("f32" in found.flushes) == flushes


def test_a_kernel_without_its_decorations_is_caught(
    gpu: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault the probe is there for: nothing in the module forbids the driver to contract and reorder."""
    if "llvmpipe" not in gpu.name and "SwiftShader" not in gpu.name:
        pytest.skip(f"needs a driver known to reorder undecorated arithmetic, not {gpu.name}")
    whole = Variant.spirv

    def stripped(variant: Variant) -> bytes:
        module = whole(variant)
        words = struct.unpack(f"<{len(module) // 4}I", module)
        kept, at = list(words[:5]), 5
        while at < len(words):
            length = words[at] >> 16
            if not (words[at] & 0xFFFF == OP_DECORATE and words[at + 2] == NO_CONTRACTION):
                kept += words[at : at + length]
            at += length
        assert len(kept) < len(words)
        return struct.pack(f"<{len(kept)}I", *kept)

    monkeypatch.setattr(Variant, "spirv", stripped)
    monkeypatch.setattr(pipelines, "with_float_controls", lambda spirv, controls: spirv)
    device = VulkanDevice(gpu.spec, gpu.info)
    try:
        found = probe.run(device.vk)
    finally:
        device.vk.close()
    assert {"order", "exp"} <= {failure.function for failure in found.failures}


def test_a_failing_device_loses_its_strict_claims(
    fresh: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = spoil(monkeypatch, "f32", "exp")
    x = np.linspace(-1, 1, 7, dtype=np.float32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        served = fv.explain("exp", shapes=[(7,)], device=fresh)
        result = fv.call("exp", x, device=fresh)
        fv.call("exp", -x, device=fresh)
    assert len([w for w in caught if "strict claims" in str(w.message)]) == 1
    assert np.array_equal(result, fv.call("exp", x, device="cpu"))
    reasons = [row for row in served.routes if row.backend == "vulkan"]
    assert reasons and all(row.verdict == "refused" for row in reasons)
    wanted = f"exp in F32 of ({probe._document()[0]['parts']['f32']['exp']['x'][160:168]}"
    told = " ".join(row.reason for row in reasons)
    assert wanted in told and f"gave {right}, expected {int(right, 16) ^ 1:08x} (1 of 64" in told


def test_without_the_reference_a_strict_request_is_refused(
    fresh: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, "f32", "div")
    alone = fresh.target(BackendId.VULKAN)
    monkeypatch.setattr(fresh, "target", lambda *_: alone)
    with pytest.warns(RuntimeWarning, match="div in F32"):
        assert not fresh.probe().passed
    with pytest.raises(UnsupportedError, match=r"failed the probe of strict arithmetic: div in F32"):
        fv.call("exp", np.ones(3, np.float32), device=fresh)


def test_what_a_failure_spoils(fresh: VulkanDevice) -> None:
    rows: dict[tuple[str, str], Any] = {}
    for op in ("copy", "exp", "sum"):
        entry = find_op(op)
        assert entry is not None
        for _, impl in fresh.target().kernels.impls_for(entry.id):
            rows[op, impl.dtypes[-1].key] = impl

    def spoiled(part: str, function: str) -> set[tuple[str, str]]:
        wrong = probe.Probe((probe.Failure(part, function, ("0",), "1", "2", 1),))
        return {key for key, impl in rows.items() if wrong.doubt(impl)}

    floats = {key for key in rows if key[0] != "copy"}
    doubles = {key for key in floats if key[1] == "f64"}
    assert doubles
    assert spoiled("f64", "sum") == doubles
    assert spoiled("f32", "sum") == {k for k in floats - doubles if rows[k].precision.max_ulp != 0}
    assert spoiled("f32", "integer") == set(rows)


def test_anything_goes_under_an_unbounded_tolerance(
    fresh: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, "f32", "exp")
    found = fv.explain("exp", shapes=[(7,)], device=fresh, tolerance=fv.Tolerance.unbounded())
    assert next(row for row in found.routes if row.verdict == "chosen").backend == "vulkan"


def test_the_verdict_is_kept(fresh: VulkanDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[int] = []
    found = probe.Probe((probe.Failure("f32", "exp", ("3f800000", "0"), "1", "2", 3),), ("f32",))
    monkeypatch.setattr(probe, "run", lambda device: calls.append(1) or found)
    for _ in range(2):
        assert probe.verdict(fresh.vk) == found
    assert len(calls) == 1
    assert probe.stored(fresh.info, fresh.vk.addressing) == found
    (file,) = (tmp_path / "probe").iterdir()
    whole = file.read_bytes()
    for damaged in (
        whole.replace(b"3f800000", b"3f800001"),
        whole[:-9],
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"seal": 1}',
    ):
        file.write_bytes(damaged)
        assert probe.stored(fresh.info, fresh.vk.addressing) is None, damaged
    probe.verdict(fresh.vk)
    assert len(calls) == 2 and file.read_bytes() == whole


def test_the_variable(fresh: VulkanDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[int] = []
    monkeypatch.setattr(probe, "run", lambda device: calls.append(1) or probe.Probe())
    with env.scoped(FUELVK_PROBE="off"):
        assert probe.verdict(fresh.vk).passed
    assert not calls and not (tmp_path / "probe").exists()
    for _ in range(2):
        with env.scoped(FUELVK_PROBE="always"):
            probe.verdict(fresh.vk)
    assert len(calls) == 2
    probe.verdict(fresh.vk)
    assert len(calls) == 2


def test_a_probe_that_cannot_run_is_a_failure_and_is_not_kept(
    fresh: VulkanDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(device: Any) -> probe.Probe:
        raise VulkanCallError("vkCreateComputePipelines failed")

    monkeypatch.setattr(probe, "run", broken)
    with pytest.warns(RuntimeWarning, match="vkCreateComputePipelines failed"):
        assert not fresh.probe().passed
    assert not (tmp_path / "probe").exists()


def test_a_warning_made_an_error_is_raised_once(fresh: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, "f32", "log")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="log in F32"):
            fresh.probe()
        assert not fresh.probe().passed


def test_opening_and_moving_bytes_probe_nothing_before_a_claim_is_needed(
    fresh: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(device: Any) -> probe.Probe:
        raise AssertionError("probed")

    monkeypatch.setattr(probe, "run", never)
    x = fv.asarray(np.ones(3, np.float32), device=fresh)
    assert np.array_equal(np.asarray(x), np.ones(3, np.float32))


def test_the_command_line_names_the_failure(
    fresh: VulkanDevice, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fv.runtime.devices, "_opened", {})
    assert main(["devices"]) == 0
    assert f"{fresh.spec}: probe of strict arithmetic not run yet" in capsys.readouterr().out
    spoil(monkeypatch, "f32", "sin")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert any(f["status"] == "bad" and "sin in F32" in f["found"] for f in found)
    assert main(["devices", "--json"]) == 0
    assert "failed: sin in F32" in json.loads(capsys.readouterr().out)["probe"][fresh.spec]
