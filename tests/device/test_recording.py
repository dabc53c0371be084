"""Recording, ordering, submitting again, timing."""

from __future__ import annotations

import struct

import pytest

from fuelvk.base.errors import ParameterError
from fuelvk.vulkan import Device
from fuelvk.vulkan.commands import COMMANDS_PER_BUFFER
from tests.device.programs import fill, fill_pipeline, words


def test_a_dispatch_writes_and_only_its_range(device: Device) -> None:
    whole = device.alloc(3 * 4096)
    device.write(whole, b"\xee" * whole.nbytes)
    recorder = device.recorder("guarded")
    fill(recorder, fill_pipeline(device), whole.view(4096, 4096), 0x01020304)
    device.wait(device.submit(recorder.finish()))
    raw = bytes(device.read(whole))
    assert raw == b"\xee" * 4096 + b"\x04\x03\x02\x01" * 1024 + b"\xee" * 4096


def test_commands_that_depend_run_in_order(device: Device) -> None:
    pipeline = fill_pipeline(device)
    n = 1 << 18
    source, results = device.alloc(n), [device.alloc(n) for _ in range(20)]
    recorder = device.recorder()
    for value, result in enumerate(results):
        fill(recorder, pipeline, source, value)
        recorder.copy(source, result, n)
    recording = recorder.finish()
    for _ in range(3):
        device.submit(recording)
    assert [words(device, result) for result in results] == [{value} for value in range(20)]


def test_submissions_follow_each_other(device: Device) -> None:
    pipeline = fill_pipeline(device)
    a, b = device.alloc(1 << 20), device.alloc(1 << 20)
    recordings = []
    for value in range(30):
        recorder = device.recorder()
        fill(recorder, pipeline, a, value)
        recorder.copy(a, b, a.nbytes)
        recordings.append(recorder.finish())
    values = [device.submit(recording) for recording in recordings]
    assert values == list(range(values[0], values[0] + 30))
    assert words(device, b) == {29}
    again = device.submit(recordings[3])
    assert again > values[-1] and a.last_use == b.last_use == recordings[3].last_use == again
    assert words(device, b) == {3}


def test_more_commands_than_one_command_buffer_holds(device: Device) -> None:
    pipeline = fill_pipeline(device)
    buffer, copy = device.alloc(4096), device.alloc(4096)
    recorder = device.recorder()
    count = 2 * COMMANDS_PER_BUFFER + 5
    for value in range(count):
        fill(recorder, pipeline, buffer, value)
    recorder.copy(buffer, copy, 4096)
    recording = recorder.finish()
    assert recording.count == 3
    device.submit(recording)
    device.submit(recording)
    assert words(device, copy) == {count - 1}


def test_fill_and_copy_check_their_ranges(device: Device) -> None:
    buffer = device.alloc(100)
    recorder = device.recorder()
    recorder.fill(buffer, 0xABABABAB, 4, 8)
    with pytest.raises(ParameterError, match="32-bit words"):
        recorder.fill(buffer, 0, 2, 4)
    with pytest.raises(ParameterError, match="a range outside its buffer"):
        recorder.fill(buffer, 0, 96, 8)
    with pytest.raises(ParameterError, match="overlapping"):
        recorder.copy(buffer, buffer, 8, 0, 4)
    recorder.copy(buffer, buffer, 8, 4, 12)
    device.write(buffer, bytes(100))
    device.submit(recorder.finish())
    assert bytes(device.read(buffer, 24)) == bytes(4) + b"\xab" * 16 + bytes(4)


def test_bad_dispatches(device: Device) -> None:
    pipeline, buffer = fill_pipeline(device), device.alloc(64)
    recorder = device.recorder()
    too_many = device.caps.max_groups[1] + 1
    with pytest.raises(ParameterError, match=f"asked: \\(1, {too_many}, 1\\)"):
        recorder.dispatch(pipeline, (1, too_many, 1), (buffer,), 1, bytes(12))
    with pytest.raises(ParameterError, match="too many push constants"):
        recorder.dispatch(pipeline, (1, 1, 1), (buffer,), 1, bytes(1024))
    fill(recorder, pipeline, buffer, 5)
    device.submit(recorder.finish())
    assert words(device, buffer) == {5}
    with pytest.raises(ParameterError, match="the recorder is finished"):
        recorder.finish()


def test_an_empty_recording(device: Device) -> None:
    value = device.submit(device.recorder().finish())
    device.wait(value)
    assert device.queue.poll() >= value


def test_without_push_descriptors(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    if device.addressing == "bda":
        pytest.skip("descriptors are used in storage-buffer mode only")
    import dataclasses

    from fuelvk.vulkan import open_device

    plain = dataclasses.replace(device.info, features=device.info.features - {"push_descriptor"})
    with open_device(plain, addressing="ssbo") as other:
        pipeline = fill_pipeline(other)
        for _ in range(3):
            buffers = [other.alloc(1024) for _ in range(700)]
            recorder = other.recorder()
            for value, buffer in enumerate(buffers):
                fill(recorder, pipeline, buffer, value)
                fill(recorder, pipeline, buffer, value + 1)
            other.submit(recorder.finish())
            assert [words(other, b) for b in buffers] == [{value + 1} for value in range(700)]


def test_timings(device: Device) -> None:
    pipeline, buffer = fill_pipeline(device), device.alloc(1 << 20)
    recorder = device.recorder("timed", profile=True)
    count = 1500
    for index in range(count):
        fill(recorder, pipeline, buffer, index, label=f"fill {index}")
    recording = recorder.finish()
    with pytest.raises(ParameterError, match="not submitted"):
        recording.timings()
    for _ in range(2):
        device.submit(recording)
        timings = recording.timings()
        assert [label for label, _ in timings] == [f"fill {index}" for index in range(count)]
        assert all(0 <= ns < 60e9 for _, ns in timings) and sum(ns for _, ns in timings) > 0
    with pytest.raises(ParameterError, match="not profiled"):
        device.recorder().finish().timings()


def test_push_block_layout(device: Device) -> None:
    """Params lie behind eight bytes per buffer in both modes."""
    pipeline, buffer = fill_pipeline(device), device.alloc(2048)
    recorder = device.recorder()
    recorder.dispatch(pipeline, (1, 1, 1), [buffer], 1, struct.pack("<III", 3, 1, 9))
    device.write(buffer, bytes(2048))
    device.submit(recorder.finish())
    assert bytes(device.read(buffer, 16)) == struct.pack("<IIII", 9, 9, 9, 0)
