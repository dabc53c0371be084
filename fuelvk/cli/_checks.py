"""The checks behind ``fuelvk doctor``. Each yields findings and may raise FuelvkError or OSError."""

from __future__ import annotations

import enum
import json
import os
import shutil
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fuelvk as fv
from fuelvk.base import env
from fuelvk.base.errors import DriverNotFoundError, FormatError, FuelvkError
from fuelvk.cli._output import size
from fuelvk.runtime.devices import VulkanDevice

#: Where the Vulkan loader looks for driver manifests on Linux, when no variable names them.
_MANIFEST_FOLDERS = ("/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d")
_MANIFEST_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
_CACHE_FOLDERS = ("compilers", "drivers", "models", "mesa", "pipelines", "peers")
_SMOKE = 1024


class Status(enum.Enum):
    """How a finding is to be taken: fine, worth knowing, or in the way."""

    OK = "ok"
    NOTE = "note"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report; ``advice`` says what to do."""

    what: str
    status: Status
    found: str
    advice: str | None = None


def loader() -> Iterator[Finding]:
    """The Vulkan loader and the validation layers."""
    from fuelvk.vulkan.loader import api

    try:
        a = api()
    except DriverNotFoundError as error:
        yield Finding("loader", Status.NOTE, error.message, error.hint or "install the Vulkan loader")
        return
    cell = a.ffi.new("uint32_t*")
    a.lib.vkEnumerateInstanceVersion(cell)
    number = cell[0]
    yield Finding("loader", Status.OK, f"Vulkan {number >> 22}.{number >> 12 & 0x3FF}.{number & 0xFFF}")
    layers = {
        a.text(row.layerName) for row in a.listed("vkEnumerateInstanceLayerProperties", "VkLayerProperties")
    }
    if "VK_LAYER_KHRONOS_validation" in layers:
        yield Finding("validation", Status.OK, "layers present; FUELVK_VALIDATION=1 switches them on")
    else:
        yield Finding(
            "validation", Status.NOTE, "no layers (needed for tests only; Debian: vulkan-validationlayers)"
        )


def drivers() -> Iterator[Finding]:
    """The driver manifests the loader would read."""
    named = next((v for v in _MANIFEST_VARIABLES if os.environ.get(v)), None)
    if named is not None:
        files = [Path(part) for part in os.environ[named].split(os.pathsep) if part]
        source = f"{named} names "
    else:
        files = [f for folder in _MANIFEST_FOLDERS for f in sorted(Path(folder).glob("*.json"))]
        source = ""
    if not files:
        advice = "install a driver (Debian: apt install mesa-vulkan-drivers)"
        yield Finding("driver", Status.NOTE, "no manifest found", advice)
    for file in files:
        yield _manifest(file, source)


def _manifest(file: Path, source: str) -> Finding:
    """Returns whether a driver manifest can be read and its library is there."""
    try:
        library = str(json.loads(file.read_text(encoding="utf-8"))["ICD"]["library_path"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Finding(
            "driver", Status.BAD, f"{source}{file}: unreadable ({error})", "remove it or name another"
        )
    path = file.parent / library
    if "/" in library and not path.exists():
        return Finding(
            "driver", Status.BAD, f"{source}{file}: {library} is missing", "install the driver anew"
        )
    return Finding("driver", Status.OK, f"{source}{file} ({library})")


def devices() -> Iterator[Finding]:
    """The devices that can be used, and why others cannot."""
    found = fv.devices()
    vulkan = [row for row in found if row.spec != "cpu"]
    for row in found:
        yield Finding("device", Status.OK, f"{row.spec}: {row.name}, {row.type}, {row.driver}")
        if row.spec != "cpu" and _is_old_lavapipe(row.name, row.driver):
            advice = "fetch the CPU driver of Mesa 25 with ci/setup, or use Debian 13: this one is 5 to 8 times slower"
            yield Finding("device", Status.NOTE, f"{row.spec}: an old CPU driver", advice)
    for problem in found.problems:
        yield Finding("refused", Status.NOTE, problem)
    if not vulkan:
        yield Finding("device", Status.NOTE, "no Vulkan device; everything runs on the CPU reference")
    elif all(row.type == "cpu" for row in vulkan):
        yield Finding("device", Status.NOTE, "no GPU; the Vulkan device is a CPU driver")


def _is_old_lavapipe(name: str, driver: str) -> bool:
    words = driver.split("Mesa ", 1)
    major = words[1].split(".", 1)[0] if len(words) == 2 else ""
    return name.startswith("llvmpipe") and major.isdigit() and int(major) < 25


def shaders() -> Iterator[Finding]:
    """The built SPIR-V."""
    from fuelvk.shaderbuild import load_manifest
    from fuelvk.shaderbuild.paths import output_dir

    manifest = load_manifest()
    yield Finding("shaders", Status.OK, f"{len(list(manifest))} variants in {output_dir()}")
    stale = manifest.stale_sources()
    if stale:
        advice = "python build_shaders.py"
        yield Finding("shaders", Status.NOTE, f"sources changed since: {', '.join(stale[:5])}", advice)


def compilers() -> Iterator[Finding]:
    """The shader compilers; nothing is fetched to find out."""
    from fuelvk.shaderbuild import toolchain
    from fuelvk.shaderbuild.paths import source_root

    for pin in toolchain.PINS.values():
        folder = env.cache_dir() / "compilers" / "+".join(r.replace("==", "-") for r in pin.requirements)
        if env.get(pin.variable) is None and not folder.is_dir():
            words = "fetched when shaders are built" if source_root() else "not needed by an installed wheel"
            yield Finding("compiler", Status.NOTE, f"{pin.name}: not here, {words}")
            continue
        tool = toolchain.find(pin.name)
        yield Finding("compiler", Status.OK, f"{tool.name} {tool.version} from {tool.origin}")


def c_kernels() -> Iterator[Finding]:
    """The C extension of the CPU reference."""
    from cpu_reference import c

    if c.available():
        yield Finding("C kernels", Status.OK, f"{len(c.names())} functions")
    else:
        advice = "build the C kernels: strict results on device 'cpu' need them"
        yield Finding("C kernels", Status.BAD, c.why_missing(), advice)


def evidence() -> Iterator[Finding]:
    """The ledgers, and the kernels whose present revision none of them knows."""
    from fuelvk.evidence import book
    from fuelvk.optimizer.trust import claims_of
    from fuelvk.registry import default_kernel_registry

    ledgers = book()
    ledgers.ledgers()  # reads every line, so that damaged ones are named
    trust = f"FUELVK_TRUST is {env.get('FUELVK_TRUST')}"
    yield Finding("evidence", Status.OK, f"ledgers of {len(ledgers.places())} devices; {trust}")
    for problem in ledgers.problems:
        yield Finding("evidence", Status.NOTE, problem)
    stale: dict[str, None] = {}
    for op_id, _, impl in default_kernel_registry():
        if claims_of(impl.precision) and not ledgers.of_revision(str(impl.revision)):
            stale[f"{op_id.name.lower()} {impl.name}"] = None
    if stale:
        named = ", ".join(list(stale)[:3]) + (", ..." if len(stale) > 3 else "")
        advice = "fuelvk verify --changed, and the same with --device cpu: edited kernels are passed over until then"
        yield Finding(
            "evidence", Status.NOTE, f"{len(stale)} kernels were never verified as they are: {named}", advice
        )


def cache() -> Iterator[Finding]:
    """The cache folder and what lies in it."""
    root = env.cache_dir()
    nearest = next(folder for folder in (root, *root.parents) if folder.exists())
    if not os.access(nearest, os.W_OK):
        advice = "set FUELVK_CACHE_DIR to a folder that can be written"
        yield Finding("cache", Status.BAD, f"{root} cannot be written", advice)
        return
    held = [f"{name} {size(_bytes(root / name))}" for name in _CACHE_FOLDERS if (root / name).is_dir()]
    free = size(shutil.disk_usage(nearest).free)
    yield Finding("cache", Status.OK, f"{root}: {', '.join(held) or 'empty'}; {free} free on the disk")


def _bytes(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def model() -> Iterator[Finding]:
    """The files of the sentence model."""
    from fuelvk.models._files import model_folder

    try:
        yield Finding("model", Status.OK, str(model_folder()))
    except FormatError as error:
        yield Finding(
            "model",
            Status.NOTE,
            f"{error.message} (needed by fuelvk embed only)",
            f"for fuelvk embed: {error.hint}",
        )


def smoke() -> Iterator[Finding]:
    """An addition on every device, compared by bytes with NumPy."""
    for row in fv.devices():
        try:
            yield _smoke(row.spec)
        except FuelvkError as error:
            yield Finding("smoke dispatch", Status.BAD, f"{row.spec}: {error}")


def _smoke(spec: str) -> Finding:
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal(_SMOKE, dtype=np.float32) for _ in range(2))
    start = time.perf_counter()
    device = fv.device(spec)
    opened = time.perf_counter() - start
    if isinstance(device, VulkanDevice) and not device.probe().passed:
        advice = "update the driver or take another device: strict requests use the CPU reference instead of this one"
        return Finding("smoke dispatch", Status.BAD, f"{spec}: probe {device.probe().summary()}", advice)
    first, result = _timed(a, b, device)
    if result.tobytes() != (a + b).tobytes():
        return Finding("smoke dispatch", Status.BAD, f"{spec}: a sum of {_SMOKE} numbers is wrong")
    later = statistics.median(_timed(a, b, device)[0] for _ in range(50))
    return Finding(
        "smoke dispatch",
        Status.OK,
        f"{spec}: right; device {opened * 1e3:.0f} ms, first {first * 1e3:.1f} ms, then {later * 1e6:.0f} us",
    )


def _timed(a: Any, b: Any, device: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = fv.call("add", a, b, device=device)
    return time.perf_counter() - start, result
