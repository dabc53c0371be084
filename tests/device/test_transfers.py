"""Bytes in and out: in place, and through staging."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from fuelvk.base.errors import ParameterError
from fuelvk.vulkan import Buffer, Device, DeviceInfo, open_device
from fuelvk.vulkan.memory import HOST_COHERENT
from fuelvk.vulkan.transfers import STAGE_BYTES, STAGES
from tests.device.programs import fill, fill_pipeline, words


@pytest.fixture(scope="module", params=["in place", "staged"])
def either(request: pytest.FixtureRequest, info: DeviceInfo) -> Iterator[Device]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUELVK_FORCE_STAGING", "1" if request.param == "staged" else "0")
        with open_device(info) as opened:
            yield opened


def test_round_trip(either: Device) -> None:
    data = np.arange(1000, dtype=np.float64)
    buffer = either.alloc(data.nbytes)
    either.write(buffer, data)
    assert bytes(either.read(buffer)) == data.tobytes()
    into = np.zeros(500)
    assert either.read(buffer, 4000, 800, into) is into
    np.testing.assert_array_equal(into, data[100:600])
    either.write(buffer, b"\x01\x02\x03", 5)
    assert bytes(either.read(buffer, 3, 5)) == b"\x01\x02\x03"
    assert (buffer.mapped is None) == (not either.unified_memory)


def test_kinds_of_sources(either: Device) -> None:
    buffer = either.alloc(64)
    for source in (b"abcd", bytearray(b"abcd"), memoryview(b"abcd"), np.frombuffer(b"abcd", np.uint8)):
        either.write(buffer, bytes(64))
        either.write(buffer, source)
        assert bytes(either.read(buffer, 6)) == b"abcd\0\0"
    brain = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    either.write(buffer, brain.view(np.uint16))
    assert bytes(either.read(buffer, 4)) == brain.tobytes()
    either.write(buffer, b"")
    assert either.read(buffer, 0) == bytearray()


def test_more_than_the_ring_holds(either: Device) -> None:
    data = np.random.default_rng(1).integers(0, 256, STAGE_BYTES * (STAGES + 1) + 12345, np.uint8)
    buffer = either.alloc(data.nbytes)
    either.write(buffer, data)
    np.testing.assert_array_equal(np.frombuffer(either.read(buffer), np.uint8), data)


def test_a_write_follows_earlier_work(either: Device) -> None:
    pipeline = fill_pipeline(either)
    buffer, copy = either.alloc(1 << 20), either.alloc(1 << 20)
    for value in range(5):
        recorder = either.recorder()
        fill(recorder, pipeline, buffer, value)
        recorder.copy(buffer, copy, buffer.nbytes)
        either.submit(recorder.finish())
        either.write(buffer, b"\xff" * buffer.nbytes)
        assert words(either, copy) == {value}
        assert words(either, buffer) == {0xFFFFFFFF}


@pytest.mark.parametrize(("offset", "nbytes"), [(0, 101), (-1, 1), (100, 1), (50, 51)])
def test_ranges_are_checked(either: Device, offset: int, nbytes: int) -> None:
    buffer = either.alloc(100)
    with pytest.raises(ParameterError, match=f"asked: {nbytes} bytes at {offset}; allowed: 100 bytes"):
        either.write(buffer, bytes(nbytes), offset)
    with pytest.raises(ParameterError, match="a range outside its buffer"):
        either.read(buffer, nbytes, offset)


def test_memory_that_is_not_coherent_is_flushed_and_invalidated(
    info: DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUELVK_FORCE_STAGING", "0")
    with open_device(info) as device:
        if not device.unified_memory:
            pytest.skip("needs memory shared with the host")
        device.memory.flags &= ~HOST_COHERENT
        for block in device.memory.blocks.values():
            block.coherent = False
        calls: list[bool] = []
        synchronize = device.memory.synchronize

        def counted(buffer: Buffer, offset: int, nbytes: int, *, to_device: bool) -> None:
            calls.append(to_device)
            synchronize(buffer, offset, nbytes, to_device=to_device)

        monkeypatch.setattr(device.memory, "synchronize", counted)
        for nbytes in (1, 100, 5000, 9 << 20):
            buffer = device.alloc(nbytes)
            assert buffer.mapped is None
            device.write(buffer, b"\x07" * nbytes)
            device.write(buffer, b"\x08", nbytes - 1)
            assert bytes(device.read(buffer)) == b"\x07" * (nbytes - 1) + b"\x08"
        assert calls == [True, True, False] * 4


def test_error_words_start_at_zero(either: Device) -> None:
    assert bytes(either.read(either.error_buffer)) == bytes(256)
