"""Runs the test configurations one after the other and adds them up in the last line."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from configs import Config, drivers, full, sampled

CI = Path(__file__).resolve().parent
ROOT = CI.parent
TIME_LIMIT = 3 * 3600


@dataclass(frozen=True, slots=True)
class Result:
    config: Config
    passed: int
    failed: int
    skipped: int
    seconds: float
    note: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/test", description=__doc__)
    parser.add_argument("--full", action="store_true", help="every driver, width and mode, on all cases")
    parser.add_argument("--list", action="store_true", help="print the configurations and stop")
    parser.add_argument("--config", metavar="PATTERN", help="only configurations with this in their name")
    options, arguments = parser.parse_known_args()
    found = drivers()
    rows = [
        c for c in (full() if options.full else sampled()) if not options.config or options.config in c.name
    ]
    rows = [c for c in rows if c.driver in found]
    if options.list:
        for config in rows:
            told = " ".join(f"{k}={v}" for k, v in config.environment.items())
            print(
                f"{config.name:24} {config.driver:14} {config.share:4.0%} {' '.join(config.tests):26} {told}"
            )
        return 0
    if not options.full and "-m" not in arguments:
        arguments = ["-m", "not slow", *arguments]
    results = [run(config, found[config.driver], arguments) for config in rows]
    return report(results)


def run(config: Config, icd: Path | None, arguments: list[str]) -> Result:
    """Runs one configuration with its output shown, and returns its counts."""
    if icd is None:
        print(f"== {config.name}: no {config.driver} driver here", flush=True)
        return Result(config, 0, 0, 0, 0.0, f"driver {config.driver} is absent")
    named = [a for a in arguments if not a.startswith("-") and (ROOT / a.partition("::")[0]).exists()]
    tests = [] if named else [t for t in config.tests if (ROOT / t).is_dir()]
    print(
        f"== {config.name}: {icd}, {' '.join(f'{k}={v}' for k, v in config.environment.items())}", flush=True
    )
    with tempfile.TemporaryDirectory() as folder:
        xml = Path(folder) / "junit.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--no-header",
            "-p",
            "pytest_share",
            f"--junitxml={xml}",
        ]
        environment = {
            **os.environ,
            **config.environment,
            "VK_DRIVER_FILES": str(icd),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(CI)]),
            "FUELVK_TEST_SHARE": str(config.share),
            "FUELVK_TEST_CONFIG": config.name,
        }
        started = time.perf_counter()
        try:
            status = subprocess.run(
                [*command, *tests, *arguments], cwd=ROOT, env=environment, check=False, timeout=TIME_LIMIT
            ).returncode
        except subprocess.TimeoutExpired:
            status = -1
        return counted(config, status, xml, time.perf_counter() - started)


def counted(config: Config, status: int, xml: Path, seconds: float) -> Result:
    """Returns the counts of a finished process; one that died without counts is one failure."""
    try:
        suites = list(ElementTree.parse(xml).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        return Result(config, 0, 1, 0, seconds, f"ended without results, exit status {status}")
    total, failures, errors, skipped = (
        sum(int(s.get(key, "0")) for s in suites) for key in ("tests", "failures", "errors", "skipped")
    )
    failed = failures + errors
    passed = max(total - failed - skipped, 0)
    # 5: nothing was collected, which a choice of tests by name may well do in one configuration.
    if status not in (0, 5) and failed == 0:
        return Result(config, passed, 1, skipped, seconds, f"exit status {status}")
    return Result(config, passed, failed, skipped, seconds)


def report(results: list[Result]) -> int:
    print()
    for r in results:
        counts = f"{r.passed:6} passed {r.failed:4} failed {r.skipped:6} skipped"
        print(f"{r.config.name:24} {counts} {r.seconds:7.1f} s  {r.note}".rstrip())
    passed, failed, skipped = (
        sum(getattr(r, key) for r in results) for key in ("passed", "failed", "skipped")
    )
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
