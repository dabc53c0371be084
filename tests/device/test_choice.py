"""Finding devices, choosing one by name, and what is said when there is none."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuelvk.base.errors import ParameterError, UnknownNameError, UnsupportedError
from fuelvk.vulkan import DeviceInfo, enumerate_devices, match_device, open_device
from fuelvk.vulkan.device import default_addressing


def _python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_device_states_what_it_is(info: DeviceInfo) -> None:
    assert (
        info.name and info.driver_name and info.type in ("cpu", "integrated", "discrete", "virtual", "other")
    )
    assert info.api_version >= (1, 2, 0)
    assert "timeline" in info.features
    assert info.memory > 0
    assert len(info.fingerprint) == 16 and info.fingerprint == info.fingerprint
    assert dataclasses.replace(info, driver_info="another build").fingerprint != info.fingerprint
    assert dataclasses.replace(info, subgroup_size=64).fingerprint != info.fingerprint


def _named(info: DeviceInfo) -> tuple[DeviceInfo, ...]:
    kinds = (("cpu", "llvmpipe"), ("integrated", "Intel(R) Iris"), ("discrete", "Radeon RX 7900"))
    return tuple(
        dataclasses.replace(
            info, index=i, type=kind, name=name, driver_name="driver", driver_info=f"build {i}"
        )
        for i, (kind, name) in enumerate(kinds)
    )


@pytest.mark.parametrize(
    ("spec", "index"),
    [
        (None, 2), ("vulkan", 2), ("vulkan:0", 0), ("1", 1), (0, 0), ("cpu", 0), ("integrated", 1), ("DISCRETE", 2),
        ("radeon", 2), ("*iris*", 1), ("llvm*", 0), ("build 1", 1), ("vulkan:radeon", 2),
    ],
)  # fmt: skip
def test_match_device(info: DeviceInfo, spec: str | int | None, index: int) -> None:
    assert match_device(_named(info), spec).index == index


@pytest.mark.parametrize("spec", ["vulkan:9", "geforce", "virtual"])
def test_an_unknown_device_lists_the_known(info: DeviceInfo, spec: str) -> None:
    with pytest.raises(UnknownNameError, match=r"vulkan:2 \(Radeon RX 7900\)"):
        match_device(_named(info), spec)


def test_no_device_says_so() -> None:
    with pytest.raises(UnknownNameError, match="no Vulkan device is present"):
        match_device((), None)


def test_default_addressing(info: DeviceInfo) -> None:
    lavapipe = dataclasses.replace(info, driver_id=13, features=info.features | {"bda", "i64"})
    assert default_addressing(dataclasses.replace(lavapipe, driver_info="Mesa 22.3.6 (LLVM 15)")) == "ssbo"
    assert default_addressing(dataclasses.replace(lavapipe, driver_info="Mesa 25.0.7-2~bpo12+1")) == "bda"
    assert default_addressing(dataclasses.replace(lavapipe, driver_id=3)) == "bda"
    assert default_addressing(dataclasses.replace(lavapipe, features=info.features - {"i64"})) == "ssbo"


def test_addressing_that_is_not_there(info: DeviceInfo) -> None:
    with pytest.raises(UnsupportedError, match="no buffer device addresses"):
        open_device(dataclasses.replace(info, features=info.features - {"bda"}), addressing="bda")
    with pytest.raises(ParameterError, match="no such addressing mode"):
        open_device(info, addressing="descriptors")


def test_disabled_features_are_absent(info: DeviceInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUELVK_DISABLE", "f16, i64,bda")
    monkeypatch.setenv("FUELVK_ADDRESSING", "auto")
    found = enumerate_devices().devices[info.index]
    assert not found.features & {"f16", "i64", "bda"}
    with open_device(found) as device:
        assert device.addressing == "ssbo"
        assert device.alloc(256).address == 0


def test_capabilities_by_feature(info: DeviceInfo) -> None:
    bare = dataclasses.replace(info, features=frozenset({"timeline", "i64"}))
    assert bare.lacking(["Shader", "Int64", "Float16", "SomethingNew"]) == ["Float16", "SomethingNew"]


def test_the_best_of_a_type_offers_more_or_is_newer(info: DeviceInfo) -> None:
    plain = dataclasses.replace(info, index=0, type="cpu", features=frozenset({"timeline"}))
    older = dataclasses.replace(info, index=1, type="cpu", api_version=(1, 2, 9))
    newer = dataclasses.replace(info, index=2, type="cpu", api_version=(1, 3, 0))
    assert match_device((plain, older, newer)) is newer
    assert match_device((plain, older), "cpu") is older


LIST = "import fuelvk.vulkan as v; l = v.enumerate_devices(); print(len(l.devices), l.problems)"


def test_without_a_driver() -> None:
    out = _python(LIST, VK_DRIVER_FILES="/nonexistent.json", VK_ICD_FILENAMES="/nonexistent.json")
    assert out.startswith("0 ") and "driver" in out


def test_a_driver_that_does_not_load_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken_icd.json"
    broken.write_text(
        '{"file_format_version":"1.0.0","ICD":{"library_path":"/nonexistent/x.so","api_version":"1.3.0"}}'
    )
    out = _python(LIST, VK_DRIVER_FILES=str(broken), VK_ICD_FILENAMES=str(broken))
    assert out.startswith("0 ") and "VK_ERROR_INCOMPATIBLE_DRIVER" in out


def test_without_a_loader() -> None:
    out = _python(
        "import sys, importlib.abc\n"
        "class Missing(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'vulkan._vulkan' or name == 'vulkan': raise OSError('libvulkan.so.1: not found')\n"
        "sys.meta_path.insert(0, Missing())\n" + LIST
    )
    assert out.startswith("0 ") and "no Vulkan loader library" in out and "libvulkan1" in out


def test_import_loads_nothing() -> None:
    out = _python("import sys, fuelvk.vulkan; print('vulkan' in sys.modules, 'numpy' in sys.modules)")
    assert out.split()[0] == "False"


def test_lavapipe_threads_reach_the_driver() -> None:
    code = "import os, fuelvk.vulkan as v; v.enumerate_devices(); print(os.environ.get('LP_NUM_THREADS'))"
    kept = {key: value for key, value in os.environ.items() if key != "LP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**kept, "FUELVK_LAVAPIPE_THREADS": "0"}, capture_output=True, text=True,
        check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.strip() == "0"
    assert _python(code, FUELVK_LAVAPIPE_THREADS="0", LP_NUM_THREADS="1").strip() == "1"
