"""Make n of each kind of object, drop them, and the counts return."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from fuelvk.vulkan import Buffer, Device, Recorder, Recording, enumerate_devices, match_device, open_device
from fuelvk.vulkan.profiler import Profiler
from tests.device.programs import fill, fill_pipeline, words

COUNT = 200


@pytest.fixture
def device() -> Iterator[Device]:
    found = enumerate_devices()
    if not found.devices:
        pytest.skip(f"needs a Vulkan device: {'; '.join(found.problems)}")
    with open_device(match_device(found.devices)) as opened:
        yield opened


def _alive(kind: type) -> int:
    gc.collect()
    return sum(isinstance(thing, kind) for thing in gc.get_objects())


def _buffers(device: Device) -> object:
    return [device.alloc(1000 + n) for n in range(COUNT)]


def _views(device: Device) -> object:
    whole = device.alloc(256 * COUNT)
    return [whole.view(256 * n, 256) for n in range(COUNT)]


def _recorders(device: Device) -> object:
    return [device.recorder() for _ in range(COUNT)]


def _submitted(device: Device) -> object:
    pipeline, buffer = fill_pipeline(device), device.alloc(4096)
    made = []
    for value in range(COUNT):
        recorder = device.recorder()
        fill(recorder, pipeline, buffer, value)
        made.append(recorder.finish())
        device.submit(made[-1])
    return made, buffer


def _unsubmitted(device: Device) -> object:
    return [device.recorder().finish() for _ in range(COUNT)]


def _profiled(device: Device) -> object:
    return [device.recorder(profile=True).finish() for _ in range(COUNT)]


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (_buffers, Buffer),
        (_views, Buffer),
        (_recorders, Recorder),
        (_submitted, Recording),
        (_unsubmitted, Recording),
        (_profiled, Profiler),
    ],
)
def test_counts_return(device: Device, make: Callable[[Device], object], kind: type) -> None:
    fill_pipeline(device)
    before = _alive(kind)
    held = make(device)
    assert held is not None
    del held
    device.idle()
    in_use = device.memory_statistics.in_use
    pools = len(device.pools)
    for _ in range(3):
        held = make(device)
        del held
        device.idle()
    assert device.memory_statistics.in_use == in_use
    assert len(device.pools) <= pools + 1
    device.recorder().finish()
    assert _alive(kind) - before <= (COUNT if kind is Profiler else 0)


def test_a_long_run_reserves_nothing_more(device: Device) -> None:
    pipeline = fill_pipeline(device)

    def once(value: int) -> None:
        buffer = device.alloc(1 << 16)
        recorder = device.recorder()
        fill(recorder, pipeline, buffer, value)
        device.submit(recorder.finish())
        assert words(device, buffer) == {value}

    once(0)
    before = (device.memory_statistics.reserved, len(device.pools), len(device.pipelines))
    for value in range(COUNT):
        once(value)
    after = (device.memory_statistics.reserved, len(device.pools), len(device.pipelines))
    assert after == before


def test_devices_come_and_go() -> None:
    found = enumerate_devices()
    if not found.devices:
        pytest.skip("needs a Vulkan device")
    info = match_device(found.devices)
    before = _alive(Device)
    for _ in range(10):
        with open_device(info) as opened:
            buffer = opened.alloc(1 << 20)
            opened.write(buffer, b"x")
            del buffer
    del opened
    assert _alive(Device) == before
    dropped = open_device(info)
    dropped.write(dropped.alloc(16), b"x")
    del dropped
    assert _alive(Device) == before
