"""Runs the test configurations, two at a time where there are two cores, and adds them up in the last line.

A configuration alone shows its output as it comes; of several at once each shows it when it has ended.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from configs import Config, drivers, full, sampled

CI = Path(__file__).resolve().parent
ROOT = CI.parent
TIME_LIMIT = 3 * 3600
JOBS = min(2, os.cpu_count() or 1)  # a configuration keeps little more than one core busy
SILENCE = 60.0  # seconds after which something is said

_printing = threading.Lock()


@dataclass(frozen=True, slots=True)
class Result:
    config: Config
    passed: int
    failed: int
    skipped: int
    seconds: float
    note: str = ""
    peak: float = 0.0  # megabytes of the process, 0 where nobody knows


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/test", description=__doc__)
    parser.add_argument("--full", action="store_true", help="every driver, width and mode, on all cases")
    parser.add_argument("--list", action="store_true", help="print the configurations and stop")
    parser.add_argument("--config", metavar="PATTERN", help="only configurations with this in their name")
    parser.add_argument("--jobs", type=int, default=JOBS, metavar="N", help=f"so many at a time ({JOBS})")
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
    jobs = max(1, min(options.jobs, len(rows)))
    started = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(run, c, found[c.driver], arguments, shown=jobs == 1) for c in rows]
        results = [future.result() for future in running]
    return report(results, time.perf_counter() - started)


def run(config: Config, icd: Path | None, arguments: Sequence[str], *, shown: bool) -> Result:
    """Runs one configuration and returns its counts; its output is shown at once, or when it has ended."""
    if icd is None:
        print(f"== {config.name}: no {config.driver} driver here", flush=True)
        return Result(config, 0, 0, 0, 0.0, f"driver {config.driver} is absent")
    named = [a for a in arguments if not a.startswith("-") and (ROOT / a.partition("::")[0]).exists()]
    tests = [] if named else [t for t in config.tests if (ROOT / t).is_dir()]
    title = f"== {config.name}: {icd}, {' '.join(f'{k}={v}' for k, v in config.environment.items())}"
    print(title if shown else f"{title}: started", flush=True)
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
        command += [*tests, *arguments]
        output = None if shown else Path(folder) / "output"
        status, peak = watched(command, environment, output, config.name)
        seconds = time.perf_counter() - started
        if output is not None:
            with _printing:
                print(f"{title}: {seconds:.0f} s", flush=True)
                print(output.read_text(errors="replace"), flush=True)
        return replace(counted(config, status, xml, seconds), peak=peak)


def watched(
    command: Sequence[str], environment: dict[str, str], output: Path | None, name: str
) -> tuple[int, float]:
    """Runs a process to its end or the time limit; returns its exit status and the most memory it held, in MB."""
    with open(output or os.devnull, "wb") as sink:
        to = None if output is None else sink
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=to, stderr=to)
    started = said = time.perf_counter()
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        now = time.perf_counter()
        if pid:
            # Linux counts kilobytes, macOS bytes.
            unit = 1e6 if sys.platform == "darwin" else 1e3
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_maxrss / unit
        if now - started > TIME_LIMIT:
            process.kill()
        if output is not None and now - said > SILENCE:
            said = now
            print(f"   {name}: {now - started:.0f} s {_progress(output)}", flush=True)
        time.sleep(0.2)


def _progress(output: Path) -> str:
    """Returns how far pytest says it is, as its last `[ 42%]`."""
    with output.open("rb") as file:
        file.seek(max(0, output.stat().st_size - 400))
        tail = file.read().decode(errors="replace")
    _, bracket, rest = tail.rpartition("[")
    return f"[{rest.partition(']')[0]}]" if bracket and "%]" in rest else ""


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


def report(results: Sequence[Result], seconds: float) -> int:
    print()
    for r in results:
        counts = f"{r.passed:6} passed {r.failed:4} failed {r.skipped:6} skipped"
        print(f"{r.config.name:24} {counts} {r.seconds:7.1f} s {r.peak:6.0f} MB  {r.note}".rstrip())
    passed, failed, skipped = (
        sum(getattr(r, key) for r in results) for key in ("passed", "failed", "skipped")
    )
    print(f"all of it in {seconds:.0f} s")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
