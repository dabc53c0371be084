"""Whether a Vulkan device computes what strict kernels stand on: a few hundred hard inputs, compared by bytes.

The inputs and the results expected of them ship with the package (``probe_cases.json``, made by
``shaders/slang/probe/gen_cases.py``). The verdict is kept per device, driver build and probe revision, so that a device
is asked once and not in every process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import struct
import tempfile
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuelvk.base import env
from fuelvk.base.dtypes import DType
from fuelvk.base.errors import FuelvkError, ShaderBuildError
from fuelvk.base.hashing import digest64
from fuelvk.kernels._vulkan import ShaderRef, pipeline_of, spirv
from fuelvk.kernels.types import BackendImpl
from fuelvk.vulkan.device import default_addressing

if TYPE_CHECKING:
    from fuelvk.vulkan import Device, DeviceInfo

CASES = 64
"""Cases of one function: one workgroup."""

_FILE = Path(__file__).with_name("probe_cases.json")
_FLUSHABLE = "tiny"
_WIDTHS = ("f32", "f64")


@dataclass(frozen=True, slots=True)
class Failure:
    """The first case of a function that gave other bits, and how many did; operands and results in hexadecimal."""

    part: str
    function: str
    inputs: tuple[str, ...]
    got: str
    expected: str
    count: int

    def __str__(self) -> str:
        given = ", ".join(self.inputs)
        return (
            f"{self.function} in {self.part.upper()} of ({given}) gave {self.got}, expected {self.expected}"
            f" ({self.count} of {CASES} cases wrong)"
        )


@dataclass(frozen=True, slots=True)
class Probe:
    """What the probe of a device found. ``flushes`` names the float types whose subnormals become zero."""

    failures: tuple[Failure, ...] = ()
    flushes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.failures

    def doubt(self, impl: BackendImpl) -> str | None:
        """Returns why a Vulkan implementation's claim is not believed on this device, or None.

        Wrong integers spoil every claim, wrong F32 every one that is not of exact bytes (the 16-bit types compute in
        F32), wrong F64 those with an F64 operand or result.
        """
        for failure in self.failures:
            exact = impl.precision.max_ulp == 0
            doubles = DType.F64 in impl.dtypes
            if failure.function in ("integer", "convert") or (
                not exact and doubles == (failure.part == "f64")
            ):
                return f"the device failed the probe of strict arithmetic: {failure}"
        return None

    def summary(self) -> str:
        """Returns the verdict in one line."""
        if self.failures:
            return f"failed: {'; '.join(map(str, self.failures))}"
        flushed = (
            f"; subnormals of {', '.join(f.upper() for f in self.flushes)} are flushed"
            if self.flushes
            else ""
        )
        return f"passed{flushed}"


@functools.cache
def _document() -> tuple[dict[str, Any], int]:
    """The cases and a digest of the file they came from."""
    raw = _FILE.read_bytes()
    return json.loads(raw), digest64(raw)


def _shader(part: str) -> ShaderRef:
    return spirv("probe/probe", "probe", dtype=part)


def _path(info: DeviceInfo, addressing: str) -> Path:
    """Where the verdict on a device is kept; another driver build, kernel or case gives another name."""
    digests = [_shader(part).digest for part in _WIDTHS]
    revision = digest64("probe", _document()[1], addressing, *digests)
    return env.cache_dir() / "probe" / f"{info.fingerprint}-{revision:016x}.json"


def _seal(verdict: str) -> str:
    return hashlib.sha256(verdict.encode()).hexdigest()[:32]


def stored(info: DeviceInfo, addressing: str | None = None) -> Probe | None:
    """Returns the verdict kept from an earlier probe; None when there is none, or when its file is damaged.

    ``addressing`` is the one a device would be opened with, unless given.
    """
    if addressing is None:
        wish = env.get("FUELVK_ADDRESSING")
        addressing = default_addressing(info) if wish == "auto" else wish
    try:
        document = json.loads(_path(info, addressing).read_bytes())
        if document["seal"] != _seal(document["verdict"]):
            return None
        verdict = json.loads(document["verdict"])
        rows = [Failure(**{**row, "inputs": tuple(row["inputs"])}) for row in verdict["failures"]]
        return Probe(tuple(rows), tuple(verdict["flushes"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(path: Path, probe: Probe) -> None:
    """Writes a verdict in one step; a folder that cannot be written costs a probe in the next process."""
    verdict = json.dumps(asdict(probe))
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"verdict": verdict, "seal": _seal(verdict)}, file)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)


def verdict(device: Device) -> Probe:
    """Returns what is known of a device: kept from before, or probed now, as FUELVK_PROBE says."""
    mode = env.get("FUELVK_PROBE")
    if mode == "off":
        return Probe()
    found = stored(device.info, device.addressing) if mode == "auto" else None
    if found is None:
        try:
            found = run(device)
        except ShaderBuildError:
            raise
        except FuelvkError as error:
            found = Probe((Failure("f32", "integer", (), f"no result: {error.message}", "a result", CASES),))
        else:
            _keep(_path(device.info, device.addressing), found)
    return found


def announce(info: DeviceInfo, found: Probe) -> None:
    """Warns that a device failed, and what that means."""
    warnings.warn(
        f"{info.name}: its strict claims are not believed: the probe {found.summary()}. Strict requests use the CPU "
        "reference instead, or are refused. FUELVK_PROBE=always asks the device again, off believes it.",
        RuntimeWarning,
        stacklevel=3,
    )


def run(device: Device) -> Probe:
    """Computes every case on the device and compares."""
    document, _ = _document()
    failures: list[Failure] = []
    flushes: list[str] = []
    for part, rows in document["parts"].items():
        shader = _shader(part)
        if isinstance(shader.select(device.caps), str):
            continue  # the device has no such type, so nothing is claimed for it
        results = _computed(
            device, shader, bytes.fromhex(document["table"]), [row["x"] for row in rows.values()]
        )
        for (name, row), got in zip(rows.items(), results, strict=True):
            failure, flushed = _compared(part, name, row["x"], row["want"], got)
            if failure is not None:
                failures.append(failure)
            if flushed:
                flushes.append(part)
    return Probe(tuple(failures), tuple(flushes))


def _little(words: bytes) -> bytes:
    """Words as the device has them, from the file's order."""
    count = len(words) // 4
    return struct.pack(f"<{count}I", *struct.unpack(f">{count}I", words))


def _computed(device: Device, shader: ShaderRef, table: bytes, inputs: list[str]) -> list[str]:
    """Returns each function's results as the file writes them."""
    given = _little(bytes.fromhex("".join(inputs)))
    words, x, y = device.alloc(len(table)), device.alloc(len(given)), device.alloc(len(given) // 2)
    device.write(words, _little(table))
    device.write(x, given)
    pipeline = pipeline_of(device, shader, "probe", 3, {})
    recorder = device.recorder("probe")
    recorder.dispatch(pipeline, (len(inputs), 1, 1), (words, x, y), 4, struct.pack("<I", 0), "probe")
    device.wait(device.submit(recorder.finish()))
    raw = _little(bytes(device.read(y, len(given) // 2)))
    size = CASES * 8
    return [raw[i * size : (i + 1) * size].hex() for i in range(len(inputs))]


def _compared(part: str, name: str, x: str, want: str, got: str) -> tuple[Failure | None, bool]:
    """Returns the failure of one function, and whether it flushed subnormals, which is no failure."""
    digits = 8 if part == "f32" else 16
    first: Failure | None = None
    wrong, flushed = 0, False
    for i in range(CASES):
        result, right = (text[16 * i : 16 * i + digits] for text in (got, want))
        if result == right:
            continue
        if name == _FLUSHABLE and int(result, 16) % (1 << (4 * digits - 1)) == 0:
            flushed = True
            continue
        wrong += 1
        if first is None:
            operands = (x[32 * i : 32 * i + digits], x[32 * i + 16 : 32 * i + 16 + digits])
            first = Failure(part, name, operands, result, right, 0)
    if first is not None:
        first = Failure(part, name, first.inputs, first.got, first.expected, wrong)
    return first, flushed
