"""Compares the shipped ledgers with the kernels as they are, driver by driver, and tries what they do not cover.

Fails when a claim fails, or when a ledger lacks the present revision of a kernel for a driver version that it knows. A
driver version without a ledger is verified afresh at smoke level and reported. Sweeps may lag: they are listed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from configs import drivers

ROOT = Path(__file__).resolve().parent.parent
#: What is asked of a driver in a process of its own: whether a ledger knows it, and which sweeps lag.
_ASK = """
import json
import fuelvk as fv
from fuelvk.evidence import Book, shipped_dir
from fuelvk.verify.sweep_state import lags, sweeps_of
device = fv.device({spec!r})
place = device.place(device.backend.value)
ledgers = [each for each in Book.open([shipped_dir()]).ledgers() if each.place == place]
lag = sorted({{r.op for each in ledgers for r in sweeps_of(each) if lags(r)}})
print(json.dumps({{"place": str(place), "known": any(each.records for each in ledgers), "lagging": lag}}))
"""


@dataclass(slots=True)
class Found:
    """What was found on one driver."""

    name: str
    place: str
    known: bool
    lagging: list[str]
    records: list[dict[str, object]] = field(default_factory=list)

    @property
    def failed(self) -> list[dict[str, object]]:
        return [r for r in self.records if not r["passed"]]

    @property
    def bad(self) -> bool:
        """A ledger that does not cover the kernels, or a claim that failed, on a driver that it knows."""
        return self.known and bool(self.records)


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/drift", description=__doc__)
    parser.add_argument("--driver", metavar="PATTERN", help="only drivers with this in their name")
    options = parser.parse_args()
    rows: list[tuple[str, Path | None]] = [("cpu", None)]
    rows += [(name, icd) for name, icd in drivers().items() if icd is not None]
    rows = [r for r in rows if not options.driver or options.driver in r[0]]
    return report([look(name, icd) for name, icd in rows])


def look(name: str, icd: Path | None) -> Found:
    """Asks one driver and tries what its ledger does not cover."""
    spec = "cpu" if icd is None else "vulkan:0"
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "FUELVK_LEDGER_DIR": folder,
            "FUELVK_TRUST": "claims",
        }
        if icd is not None:
            environment |= {"VK_DRIVER_FILES": str(icd), "VK_ICD_FILENAMES": str(icd)}
        question = [sys.executable, "-c", _ASK.format(spec=spec)]
        asked = subprocess.run(
            question, env=environment, cwd=ROOT, capture_output=True, text=True, check=True
        )
        answer = json.loads(asked.stdout)
        command = [
            sys.executable,
            "-m",
            "fuelvk",
            "verify",
            "--changed",
            "--smoke",
            "--device",
            spec,
            "--json",
        ]
        tried = subprocess.run(
            command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
        )
    data = json.loads(tried.stdout)
    if "error" in data:
        raise SystemExit(f"{name}: {data['error']['message']}")
    return Found(name, answer["place"], answer["known"], answer["lagging"], data["records"])


def report(found: list[Found]) -> int:
    """Prints a line for each driver; returns the exit status."""
    for each in found:
        kernels = sorted({f"{r['op']} {r['impl']} {r['dtypes']}" for r in each.records})
        failed = [
            f"{r['op']} {r['impl']} {r['dtypes']}: {r['claim']} ({r.get('where', '')})" for r in each.failed
        ]
        if not each.known:
            state = f"no ledger; {len(each.records)} claims tried afresh, {len(failed)} failed"
        elif kernels:
            state = f"LACKS {len(kernels)} kernels as they are; {len(failed)} of their claims failed"
        else:
            state = "covered"
        print(f"{each.name:14} {each.place}: {state}")
        for line in (failed or kernels)[:20]:
            print(f"    {line}")
        if each.lagging:
            print(f"    sweeps that lag: {', '.join(dict.fromkeys(each.lagging))}")
    if any(each.bad for each in found):
        print(
            "bring the ledgers up to date: FUELVK_LEDGER_DIR=fuelvk/evidence/ledgers fuelvk verify --changed, on each"
        )
    return int(any(each.bad for each in found))


if __name__ == "__main__":
    sys.exit(main())
