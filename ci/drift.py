"""Do the ledgers that ship with fuelvk cover its kernels as they are? Compares them, then asks the drivers here.

Every shipped ledger is compared with the registry, which takes no device: revisions do not depend on the machine. Then
each driver here whose version a ledger knows is tried, at smoke level, with the kernels that its ledger does not have;
one of a version that no ledger knows is tried afresh, within a budget of time, and reported.

Fails when a claim failed, or when a ledger lacks the present revision of a kernel. Sweeps may lag: they are listed. On
a processor of another instruction set than the records' a driver is as well known: ci/test holds its kernels to their
claims here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from configs import drivers

ROOT = Path(__file__).resolve().parent.parent
LEDGERS = ROOT / "fuelvk" / "evidence" / "ledgers"
BUDGET = 40.0  # seconds for each driver
SHOWN = 8
MEND = (
    "bring the ledgers up to date, on each driver: FUELVK_LEDGER_DIR=fuelvk/evidence/ledgers fuelvk verify --changed "
    "(and --device cpu)"
)


@dataclass(slots=True)
class Finding:
    """One line of the report with what belongs below it; ``bad`` fails the run."""

    text: str
    details: list[str] = field(default_factory=list)
    bad: bool = False


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/drift", description=__doc__)
    parser.add_argument("--driver", metavar="PATTERN", help="only drivers with this in their name")
    parser.add_argument("--ask", metavar="SPEC", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        print(json.dumps(ask(options.ask)))
        return 0
    rows: list[tuple[str, Path | None]] = [("cpu", None)]
    rows += [(name, icd) for name, icd in drivers().items() if icd is not None]
    chosen = [row for row in rows if not options.driver or options.driver in row[0]]
    with ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda row: look(*row), chosen)
        found = [*shipped(), *answers]
    return report(found)


def shipped() -> list[Finding]:
    """Compares every shipped ledger with the registry."""
    from fuelvk.evidence import Book
    from fuelvk.verify.coverage import coverage, untried
    from fuelvk.verify.suite import default_suite

    book, suite = Book.open([LEDGERS]), default_suite()
    ledgers = book.ledgers()
    found = [Finding(f"ledger: {problem}", bad=True) for problem in book.problems]
    for each in ledgers:
        seen = coverage(each, suite)
        state = [f"{seen.covered} kernels covered"]
        state += [f"LACKS {len(seen.stale)} as they are"] if seen.stale else []
        state += [f"{len(seen.failed)} claims FAILED"] if seen.failed else []
        state += [f"{len(seen.gone)} of its kernels are no more"] if seen.gone else []
        details = [f"FAILED {r.op} {r.impl} {','.join(r.dtypes)}: {r.claim} ({r.where})" for r in seen.failed]
        details += [f"{name}: no record of {', '.join(claims)}" for name, claims in seen.stale.items()]
        if seen.lagging:
            details.append(f"sweeps that lag: {', '.join(seen.lagging)}")
        found.append(Finding(f"ledger of {seen.place}: {', '.join(state)}", details, not seen.current))
    if new := untried(ledgers, suite):
        found.append(Finding(f"{len(new)} kernels were tried NOWHERE", new, bad=True))
    return found


def look(name: str, icd: Path | None) -> Finding:
    """Asks one driver in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "FUELVK_LEDGER_DIR": folder,
            "FUELVK_TRUST": "claims",
        }
        if icd is not None:
            environment |= {"VK_DRIVER_FILES": str(icd), "VK_ICD_FILENAMES": str(icd)}
        command = [sys.executable, str(Path(__file__)), "--ask", "cpu" if icd is None else "vulkan:0"]
        asked = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
        )
    if asked.returncode != 0:
        return Finding(f"{name}: could not be asked", asked.stderr.strip().splitlines()[-5:], bad=True)
    return judged(name, json.loads(asked.stdout.splitlines()[-1]))


def ask(spec: str) -> dict[str, Any]:
    """Tries what the shipped ledger of a device does not cover (all of it where there is none), at smoke level."""
    import fuelvk as fv
    from fuelvk.evidence import Book
    from fuelvk.verify.calls import Level
    from fuelvk.verify.coverage import hosts_of
    from fuelvk.verify.runner import Run

    device = fv.device(spec)
    place = device.place(device.backend.value)
    ledger = next((each for each in Book.open([LEDGERS]).ledgers() if each.place == place), None)
    run = Run(device=device, level=Level.SMOKE, changed=True, any_host=True, budget=BUDGET)
    records = [o.record for o in run.go()]
    return {
        "place": str(place),
        "host": place.host,
        "known": ledger is not None,
        "elsewhere": ledger is not None and bool(place.host) and place.host not in hosts_of(ledger),
        "left": len(run.left),
        "tried": len(records),
        "kernels": sorted({f"{r.op} {r.impl} {','.join(r.dtypes)}" for r in records}),
        "failed": [
            f"FAILED {r.op} {r.impl} {','.join(r.dtypes)}: {r.claim} ({r.where})"
            for r in records
            if not r.passed
        ],
    }


def judged(name: str, answer: dict[str, Any]) -> Finding:
    """Returns what an answer means: a known driver's kernels are all covered; an unknown one is only reported."""
    kernels, failed = answer["kernels"], answer["failed"]
    if not answer["known"]:
        left = f", {answer['left']} kernels left when {BUDGET:g} s were over" if answer["left"] else ""
        state = (
            f"no ledger knows this version; {answer['tried']} claims tried afresh, {len(failed)} failed{left}"
        )
        return Finding(f"{name}: {answer['place']}: {state}", failed)
    if kernels:
        state = f"its ledger LACKS {len(kernels)} kernels as they are; {len(failed)} of their claims failed"
        return Finding(f"{name}: {answer['place']}: {state}", failed or kernels, bad=True)
    other = f"; recorded on another instruction set than {answer['host']}" if answer["elsewhere"] else ""
    return Finding(f"{name}: {answer['place']}: all that it runs is covered{other}")


def report(found: list[Finding], say: Callable[[str], None] = print) -> int:
    """Prints the findings; returns the exit status."""
    for each in found:
        say(each.text)
        for line in each.details[:SHOWN]:
            say(f"    {line}")
        if len(each.details) > SHOWN:
            say(f"    and {len(each.details) - SHOWN} more")
    bad = any(each.bad for each in found)
    say(MEND if bad else "the ledgers cover the kernels as they are")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
