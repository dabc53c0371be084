"""Sub-allocation, reuse, views, the budget, trimming."""

from __future__ import annotations

import gc
from itertools import pairwise

import pytest

from fuelvk.base.errors import OutOfDeviceMemoryError, ParameterError
from fuelvk.vulkan import Buffer, Device, DeviceInfo, open_device
from fuelvk.vulkan.memory import DEDICATED, PADDING, size_class
from tests.device.programs import fill, fill_pipeline, words

MIB = 1 << 20


def test_size_classes_waste_little() -> None:
    for nbytes in (0, 1, 255, 256, 257, 5000, 65537, MIB + 1, 7 * MIB + 3, DEDICATED + 1, 100 * MIB + 1):
        size = size_class(nbytes)
        assert size >= nbytes and size % 256 == 0
        assert size - nbytes <= max(256, nbytes / 8)
        assert size_class(size) == size


def test_buffers_are_aligned_and_apart(device: Device) -> None:
    buffers = [device.alloc(n) for n in (0, 1, 4, 256, 1000, 5000, 70_000)]
    ranges = sorted((b.slot.block.index, b.offset, b.offset + b.slot.size) for b in buffers)
    for first, second in pairwise(ranges):
        assert first[0] != second[0] or first[2] <= second[1]
    for buffer in buffers:
        assert buffer.offset % 256 == 0
        if "bda" in device.info.features:
            assert buffer.address % 256 == 0 and buffer.address > 0
        if device.unified_memory:
            assert buffer.mapped is not None and len(buffer.mapped) == buffer.nbytes


def test_a_steady_state_sees_the_same_places(device: Device) -> None:
    def once() -> list[tuple[int, int]]:
        held = [device.alloc(n) for n in (1000, 1000, 4096, 1000, 20 * MIB)]
        places = [(b.slot.block.index, b.offset) for b in held]
        for buffer in (held[3], held[0], held[4]):
            buffer.free()
        return places

    first = once()
    gc.collect()
    assert [once() for _ in range(5)] == [first] * 5


def test_freed_memory_waits_for_the_device_before_the_host_writes(device: Device) -> None:
    pipeline = fill_pipeline(device)
    for round_ in range(20):
        first = device.alloc(64 * 1024)
        recorder = device.recorder()
        fill(recorder, pipeline, first, 7)
        value = device.submit(recorder.finish())
        place = first.slot
        first.free()
        second = device.alloc(64 * 1024)
        assert second.slot is place and second.last_use == value
        device.write(second, bytes([round_]) * second.nbytes)
        assert set(device.read(second)) == {round_}


def test_views_share_memory_and_keep_it_alive(device: Device) -> None:
    whole = device.alloc(4096)
    device.write(whole, bytes(range(256)) * 16)
    part = whole.view(1024, 512)
    inner = part.view(256, 16)
    del whole
    gc.collect()
    assert bytes(device.read(inner)) == bytes(range(16))
    assert inner.last_use == part.last_use
    with pytest.raises(ParameterError, match="a view must lie inside"):
        part.view(512, 1)
    with pytest.raises(ParameterError, match="aligned"):
        part.view(4, 8)


def test_a_mapping_keeps_its_buffer(device: Device) -> None:
    buffer = device.alloc(4096)
    mapped, place = buffer.mapped, buffer.slot
    if mapped is None:
        pytest.skip("needs memory shared with the host")
    del buffer
    gc.collect()
    assert device.alloc(4096).slot is not place
    mapped[:4] = b"safe"
    assert bytes(mapped[:4]) == b"safe"
    del mapped
    gc.collect()
    device.memory_statistics  # noqa: B018  takes back what was dropped
    assert place.free


def test_freed_buffers_are_refused(device: Device) -> None:
    buffer = device.alloc(64)
    buffer.free()
    buffer.free()
    with pytest.raises(ParameterError, match="freed"):
        device.read(buffer)
    with pytest.raises(ParameterError, match="buffer 0 of a dispatch was freed"):
        fill(device.recorder(), fill_pipeline(device), buffer, 1)
    with pytest.raises(ParameterError, match="buffer 0 of a dispatch is not a buffer"):
        device.recorder().dispatch(fill_pipeline(device), (1, 1, 1), ("text",), 1, bytes(12))  # type: ignore[arg-type]


def test_a_buffer_in_a_cycle_of_garbage_goes_back_once(device: Device) -> None:
    """The buffer's finalizer runs before its owner's, which frees it too: no two buffers get its place."""

    class Owner:
        def __init__(self, buffer: Buffer) -> None:
            self.buffer, self.itself = buffer, self

        def __del__(self) -> None:
            self.buffer.free()

    Owner(device.alloc(50_000))
    gc.collect()
    first, second = device.alloc(50_000), device.alloc(50_000)
    assert first.slot is not second.slot


def test_budget(info: DeviceInfo) -> None:
    with open_device(info, memory_budget=8 * MIB) as device:
        kept = device.alloc(3 * MIB)
        with pytest.raises(OutOfDeviceMemoryError, match="budget of 8388608 bytes") as caught:
            device.alloc(6 * MIB)
        assert isinstance(caught.value, MemoryError)
        assert "asked: 6291456 bytes" in str(caught.value) and "in use" in str(caught.value)
        device.write(kept, b"still works")
        assert bytes(device.read(kept, 11)) == b"still works"
        kept.free()
        assert device.alloc(6 * MIB).nbytes == 6 * MIB
        assert device.memory_statistics.reserved <= 8 * MIB


def test_free_neighbours_are_merged_before_giving_up(info: DeviceInfo) -> None:
    with open_device(info, memory_budget=2 * MIB) as device:
        small = [device.alloc(32 * 1024) for _ in range(50)]
        recorder = device.recorder()
        fill(recorder, fill_pipeline(device), small[40], 1)
        stale = recorder.finish(keep=False)
        device.submit(stale)
        pinned = {buffer.slot.block: buffer for buffer in small}
        for buffer in pinned.values():
            device.write(buffer, b"\x05" * buffer.nbytes)
        del buffer
        small.clear()
        large = device.alloc(512 * 1024)
        device.write(large, b"\x06" * large.nbytes)
        assert large.slot.block in pinned
        assert all(set(device.read(buffer)) == {5} for buffer in pinned.values())
        assert set(device.read(large)) == {6}
        with pytest.raises(ParameterError, match="trimmed"):
            device.submit(stale)
        with pytest.raises(OutOfDeviceMemoryError):
            device.alloc(2 * MIB)


def test_larger_than_the_device_allocates(device: Device) -> None:
    limit = min(device.info.limits.max_buffer_size, device.info.limits.max_allocation)
    with pytest.raises(OutOfDeviceMemoryError):
        device.alloc(limit - PADDING + 1)


def test_statistics_and_trim(info: DeviceInfo) -> None:
    with open_device(info) as device:
        before = device.memory_statistics
        buffers = [device.alloc(1000) for _ in range(100)]
        big = device.alloc(20 * MIB)
        during = device.memory_statistics
        assert during.buffers == before.buffers + 101
        assert during.in_use >= before.in_use + 100 * 1000 + 20 * MIB
        calls: list[int] = []
        device.memory.add_trim_hook(lambda: calls.append(1))
        del buffers, big
        assert device.trim() >= 20 * MIB
        after = device.memory_statistics
        assert calls == [1]
        assert (
            after.in_use == before.in_use and after.peak >= during.in_use and after.reserved < during.reserved
        )


def test_a_recording_of_trimmed_memory_is_refused(info: DeviceInfo) -> None:
    with open_device(info) as device:
        buffer = device.alloc(20 * MIB)
        recorder = device.recorder()
        fill(recorder, fill_pipeline(device), buffer, 3)
        recording = recorder.finish(keep=False)
        device.submit(recording)
        assert words(device, buffer) == {3}
        buffer.free()
        device.submit(recording)
        device.trim()
        with pytest.raises(ParameterError, match="trimmed"):
            device.submit(recording)
