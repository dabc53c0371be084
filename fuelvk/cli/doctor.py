"""``fuelvk doctor``: what is there, what is missing, and what to do about it."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version

from fuelvk import __version__
from fuelvk.base.errors import FuelvkError
from fuelvk.cli import _checks
from fuelvk.cli._checks import Finding, Status
from fuelvk.cli._output import Result, table, working

_MARKS = {Status.OK: "ok", Status.NOTE: "note", Status.BAD: "BAD"}

Check = Callable[[], Iterator[Finding]]

_CHECKS: tuple[tuple[str, Check], ...] = (
    ("loader", _checks.loader),
    ("driver", _checks.drivers),
    ("device", _checks.devices),
    ("shaders", _checks.shaders),
    ("compiler", _checks.compilers),
    ("C kernels", _checks.c_kernels),
    ("evidence", _checks.evidence),
    ("cache", _checks.cache),
    ("model", _checks.model),
    ("smoke dispatch", _checks.smoke),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-smoke", action="store_true", help="run nothing on the devices")


def run(options: argparse.Namespace) -> Result:
    findings = [Finding("fuelvk", Status.OK, _versions())]
    with working("looking around"):
        for name, check in _CHECKS:
            if check is not _checks.smoke or not options.no_smoke:
                findings += _guarded(name, check)
    bad = [f for f in findings if f.status is Status.BAD]
    data = {"ok": not bad, "findings": [{**asdict(f), "status": f.status.value} for f in findings]}

    def show() -> None:
        table(("", "what", "found"), [(_MARKS[f.status], f.what, f.found) for f in findings])
        advice = dict.fromkeys(f.advice for f in findings if f.advice)
        for sentence in advice:
            print(f"- {sentence}")
        if advice:
            print()
        print("nothing is broken" if not bad else f"broken: {', '.join(dict.fromkeys(f.what for f in bad))}")

    return Result(data, show, 1 if bad else 0)


def _guarded(name: str, check: Check) -> list[Finding]:
    """Returns what a check found; one that fails is a finding itself, and the others still run."""
    found: list[Finding] = []
    try:
        found.extend(check())
    except (FuelvkError, OSError) as error:
        found.append(Finding(name, Status.BAD, str(error)))
    return found


def _versions() -> str:
    words = [
        f"{__version__}",
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
    ]
    for package in ("numpy", "ml_dtypes", "vulkan"):
        try:
            words.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            words.append(f"{package} missing")
    return ", ".join(words)
