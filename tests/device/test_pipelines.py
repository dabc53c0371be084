"""Pipelines: made once, from several threads, cached on disk, refused with a reason."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fuelvk.base.errors import FuelvkError, ParameterError, UnsupportedError
from fuelvk.shaderbuild import load_manifest
from fuelvk.vulkan import Device, DeviceInfo, open_device
from fuelvk.vulkan.pipelines import _read_cache, _write_cache
from tests.device.programs import fill, fill_pipeline, words


def test_made_once_by_many_threads(device: Device) -> None:
    calls: list[int] = []
    variant = load_manifest().variant("util/fill", mode=device.addressing)

    def spirv() -> bytes:
        calls.append(1)
        return variant.spirv()

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: device.pipeline("shared", spirv, "main", 1, 20), range(64)))
    assert len({id(pipeline) for pipeline in made}) == 1
    assert len(calls) == 1
    assert device.pipeline("shared", spirv, "main", 1, 20, spec=(1,)) is not made[0]


def test_a_failure_is_not_kept(device: Device) -> None:
    def broken() -> bytes:
        raise FuelvkError("no such file")

    for _ in range(2):
        with pytest.raises(FuelvkError, match="no such file"):
            device.pipeline("broken", broken, "main", 1, 20)
    variant = load_manifest().variant("util/fill", mode=device.addressing)
    assert device.pipeline("broken", variant.spirv, "main", 1, 20).entry == "main"


def test_limits(device: Device) -> None:
    spirv = load_manifest().variant("util/fill", mode=device.addressing).spirv
    with pytest.raises(ParameterError, match="too many push constants"):
        device.pipeline("push", spirv, "main", 1, 4096)
    with pytest.raises(UnsupportedError, match="subgroup width"):
        device.pipeline("width", spirv, "main", 1, 20, subgroup=3)
    assert device.pipeline("width", spirv, "main", 1, 20, subgroup=device.info.subgroup_size)


def test_more_buffers_than_the_device_binds(info: DeviceInfo) -> None:
    few = dataclasses.replace(info, limits=dataclasses.replace(info.limits, max_storage_buffers=4))
    with (
        open_device(few, addressing="ssbo") as device,
        pytest.raises(UnsupportedError, match="more storage buffers"),
    ):
        device.pipeline("many", bytes, "main", 5, 20)


def test_threads_record_and_submit(device: Device) -> None:
    pipeline = fill_pipeline(device)

    def work(value: int) -> bool:
        buffer = device.alloc(1 << 16)
        for turn in range(20):
            recorder = device.recorder()
            fill(recorder, pipeline, buffer, value * 100 + turn)
            device.submit(recorder.finish())
            if words(device, buffer) != {value * 100 + turn}:
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


def test_cache_file(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "device.bin"
    assert _read_cache(path) == b""
    _write_cache(path, b"blob" * 100)
    assert _read_cache(path) == b"blob" * 100
    raw = bytearray(path.read_bytes())
    for damage in (raw[:-1], raw + b"x", raw[:10], bytes([*raw[:200], raw[200] ^ 1, *raw[201:]])):
        path.write_bytes(bytes(damage))
        assert _read_cache(path) == b""
    assert [p.name for p in path.parent.iterdir()] == ["device.bin"]


def test_a_damaged_cache_does_no_harm(
    info: DeviceInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUELVK_CACHE_DIR", str(tmp_path))
    path = tmp_path / "pipelines" / f"{info.fingerprint}.bin"
    for content in (b"", b"garbage" * 100):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        with open_device(info) as device:
            buffer = device.alloc(1024)
            recorder = device.recorder()
            fill(recorder, fill_pipeline(device), buffer, 1)
            device.submit(recorder.finish())
            assert words(device, buffer) == {1}
