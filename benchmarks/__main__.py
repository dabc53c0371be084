"""Times fuelvk and its peers in turn and prints the figures with their bars; a bar that is not met fails nothing."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import report
from benchmarks.figures import FIGURES, NAMES
from benchmarks.record import ROOT, environment
from benchmarks.setup_peers import PEERS, SCRIPTS

ROUNDS = 3
TIME_LIMIT = 600


@dataclass(frozen=True, slots=True)
class Subject:
    """Something timed: the command of its probe, the figures it may take (all when empty), its environment."""

    name: str
    command: tuple[str, ...]
    figures: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


def subjects(*, peers: bool) -> list[Subject]:
    """Returns fuelvk in its settings, then the peers that are installed."""
    own = (sys.executable, "-m", "benchmarks.probe_fuelvk")
    found = [
        Subject("fuelvk", own),
        Subject(
            "fuelvk-threads0",
            own,
            tuple(f.name for f in FIGURES if f.subject == "fuelvk-threads0"),
            (("FUELVK_LAVAPIPE_THREADS", "0"),),
        ),
    ]
    for peer in PEERS if peers else ():
        if peer.installed():
            script = str(SCRIPTS / peer.script)
            found.append(Subject(peer.name, (str(peer.python), script), environment=peer.environment))
        else:
            print(
                f"{peer.name}: not installed; python -m benchmarks.setup_peers {peer.name}", file=sys.stderr
            )
    return found


def run(subject: Subject, names: Sequence[str], *, quick: bool) -> dict[str, object]:
    """Runs one probe; returns its figures, and how it ended where it did not end well."""
    wanted = (
        [n for n in names if not subject.figures or n in subject.figures] if names else [*subject.figures]
    )
    if names and not wanted:
        return {}
    command = [*subject.command, *(["--quick"] if quick else []), *wanted]
    variables = {
        k: v for k, v in os.environ.items() if k != "PYTHONPATH" or subject.name.startswith("fuelvk")
    }
    variables.setdefault(
        "FUELVK_TRUST", "claims"
    )  # an edited kernel is to be timed, not what serves in its place
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**variables, **dict(subject.environment)},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=TIME_LIMIT,
        )
        output, ended = done.stdout, "" if done.returncode == 0 else _last_line(done.stderr, done.returncode)
    except subprocess.TimeoutExpired as late:
        output, ended = (late.stdout or b"").decode(errors="replace"), f"stopped after {TIME_LIMIT} s"
    figures: dict[str, object] = {"ended": ended} if ended else {}
    for line in output.splitlines():
        if line.startswith("{"):
            figures.update(json.loads(line))
    return figures


def _last_line(text: str, status: int) -> str:
    lines = text.strip().splitlines()
    return f"exit status {status}" + (f": {lines[-1][:200]}" if lines else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 when fuelvk's probe ran to its end."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these figures: " + ", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="one round with fewer repetitions")
    parser.add_argument(
        "--rounds", type=int, metavar="N", help=f"rounds (default: {ROUNDS}, one with --quick)"
    )
    parser.add_argument("--json", metavar="FILE", help="also write every sample and the summary to FILE")
    parser.add_argument(
        "--peers", action=argparse.BooleanOptionalAction, default=True, help="time the installed peers too"
    )
    parser.add_argument("--readme", action="store_true", help="put the figures into README.md")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"unknown figure {', '.join(unknown)}; there are {', '.join(NAMES)}")
    chosen = subjects(peers=options.peers)
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    samples: dict[str, dict[str, list[object]]] = {s.name: {} for s in chosen}
    for number in range(1, rounds + 1):
        for subject in chosen:
            print(f"round {number} of {rounds}: {subject.name}", file=sys.stderr, flush=True)
            for name, value in run(subject, options.names, quick=options.quick).items():
                samples[subject.name].setdefault(name, []).append(value)
    where = environment()
    made = report.rows(samples, options.names)
    heading = _heading(where, samples)
    print(heading, end="\n\n")
    report.show(made, [s.name for s in chosen])
    broken = _endings(samples)
    if options.json:
        document = {
            "environment": where,
            "samples": samples,
            "figures": [report.as_dict(row) for row in made],
        }
        Path(options.json).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if options.readme:
        _into_readme(report.markdown(made, [s.name for s in chosen], heading))
    return int("fuelvk" in broken)


def _into_readme(text: str) -> None:
    """Replaces what stands between the two markers of README.md."""
    path = ROOT / "README.md"
    before, begin, rest = path.read_text(encoding="utf-8").partition("<!-- figures: begin -->\n")
    _, end, after = rest.partition("<!-- figures: end -->")
    path.write_text(f"{before}{begin}{text}\n{end}{after}", encoding="utf-8")


def _heading(where: Mapping[str, object], samples: Mapping[str, Mapping[str, Sequence[object]]]) -> str:
    """Returns one line on device, machine, commit and the peers' versions."""
    device = next(iter(samples["fuelvk"].get("device", ())), "no device")
    dirty = " with changes" if where["dirty"] else ""
    versions = [
        f"{subject} {figures['version'][0]}"
        for subject, figures in samples.items()
        if not subject.startswith("fuelvk") and figures.get("version")
    ]
    peers = f"; {', '.join(versions)}" if versions else ""
    commit = f"commit {str(where['commit'])[:12]}{dirty}, {str(where['date'])[:10]}"
    return f"{device}; {where['processor']}, {where['cores']} cores; {commit}{peers}"


def _endings(samples: Mapping[str, Mapping[str, Sequence[object]]]) -> set[str]:
    """Prints what went wrong: probes that died, figures that are words. Returns the subjects that died."""
    died = set()
    for subject, figures in samples.items():
        for name, values in figures.items():
            words = [v for v in values if isinstance(v, str)]
            if words and name == "ended":
                died.add(subject)
            if words and (name == "ended" or name in NAMES):
                print(f"{subject}: {'' if name == 'ended' else name + ': '}{words[0]}")
            if name == "mm_bits" and not all(values):
                print(f"{subject}: three products had different bits")
    return died


if __name__ == "__main__":
    sys.exit(main())
