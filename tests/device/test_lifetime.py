"""Closed, lost and inherited devices; validation messages as exceptions."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

from fuelvk.base.errors import DeviceLostError, ParameterError, UnsupportedError, ValidationError
from fuelvk.vulkan import DeviceInfo, open_device
from fuelvk.vulkan.debug import LAYER
from fuelvk.vulkan.hazards import HazardTracker
from fuelvk.vulkan.loader import api
from tests.device.programs import fill, fill_pipeline, words


def test_a_closed_device_refuses(info: DeviceInfo) -> None:
    device = open_device(info)
    buffer = device.alloc(16)
    recording = device.recorder().finish()
    device.close()
    device.close()
    with pytest.raises(ParameterError, match="is closed"):
        device.alloc(1)
    with pytest.raises(ParameterError, match="is closed"):
        device.read(buffer)
    with pytest.raises(ParameterError, match="is closed"):
        device.submit(recording)
    del buffer, recording
    gc.collect()


def test_a_lost_device_names_the_last_work_and_another_opens(info: DeviceInfo) -> None:
    device = open_device(info)
    buffer = device.alloc(1024)
    recorder = device.recorder("plan")
    fill(recorder, fill_pipeline(device), buffer, 1, label="the last kernel")
    recording = recorder.finish()
    device.wait(device.submit(recording))
    device.queue._submit = lambda *_: -4
    with pytest.raises(DeviceLostError, match="VK_ERROR_DEVICE_LOST.*plan: the last kernel"):
        device.submit(recording)
    with pytest.raises(DeviceLostError, match="was lost earlier"):
        device.alloc(16)
    device.close()
    with open_device(info) as second:
        again = second.alloc(1024)
        second.write(again, bytes(1024))
        assert words(second, again) == {0}


FORK = """
import os, sys
import fuelvk.vulkan as v
from fuelvk.base.errors import FuelvkError
info = v.match_device(v.enumerate_devices().devices)
device = v.open_device(info)
buffer = device.alloc(64)
recording = device.recorder().finish()
device.submit(recording)
device.idle()
child = os.fork()
if child == 0:
    try:
        device.alloc(64)
    except FuelvkError as error:
        print("child:", error, flush=True)
    del buffer, recording
    if sys.argv[1] == "reopen":
        with v.open_device(v.match_device(v.enumerate_devices().devices)) as mine:
            kept = mine.alloc(64)
            mine.write(kept, b"fresh")
            print("child:", bytes(mine.read(kept, 5)), flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
print("status", status)
device.write(buffer, b"parent")
print(bytes(device.read(buffer, 6)))
device.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork(info: DeviceInfo) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, "reopen"], capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "was opened in the parent of this process" in done.stdout
    assert "child: b'fresh'" in done.stdout
    assert "status 0" in done.stdout and "b'parent'" in done.stdout


def _layer_is_there() -> bool:
    a = api()
    layers = a.listed("vkEnumerateInstanceLayerProperties", "VkLayerProperties")
    return LAYER in {a.text(layer.layerName) for layer in layers}


def test_misuse_becomes_an_exception(info: DeviceInfo) -> None:
    if not _layer_is_there():
        pytest.skip("needs the validation layer")
    device = open_device(info, validation=True)
    a = device.api
    recorder = device.recorder()
    # A fill of a size that is not a multiple of four.
    buffer = device.alloc(64)
    a.lib.vkCmdFillBuffer(recorder._commands, buffer.handle, buffer.offset, 3, 0)
    with pytest.raises(ValidationError, match="vkCmdFillBuffer"):
        device.submit(recorder.finish())
    assert any("vkCmdFillBuffer" in message.text for message in device.debug.messages)
    device.debug.messages.clear()
    device.close()


def test_synchronisation_validation_sees_what_the_tracker_prevents(
    info: DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not _layer_is_there():
        pytest.skip("needs the validation layer")
    with open_device(info, addressing="ssbo", validation=True) as device:
        pipeline = fill_pipeline(device)
        a, b = device.alloc(1024), device.alloc(1024)

        def record() -> None:
            recorder = device.recorder()
            fill(recorder, pipeline, a, 1)
            recorder.copy(a, b, 1024)
            fill(recorder, pipeline, a, 2)
            fill(recorder, pipeline, a, 3)
            device.wait(device.submit(recorder.finish()))

        record()
        monkeypatch.setattr(HazardTracker, "access", lambda *_: False)
        with pytest.raises(ValidationError, match="SYNC-HAZARD"):
            record()
        device.debug.messages.clear()


def test_a_missing_layer_is_named(info: DeviceInfo) -> None:
    code = (
        "import fuelvk.vulkan as v\n"
        "info = v.match_device(v.enumerate_devices().devices)\n"
        "try: v.open_device(info, validation=True)\n"
        "except v.instance.UnsupportedError as error: print(error)\n"
    ).replace("v.instance.UnsupportedError", "Exception")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120,
        env={**os.environ, "VK_LAYER_PATH": "/nonexistent", "FUELVK_VALIDATION": "0"},
    )  # fmt: skip
    assert UnsupportedError.__name__ and "vulkan-validationlayers" in done.stdout
