"""Installs the peers, each in its own virtual environment: ``python -m benchmarks.setup_peers [NAME...]``."""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fuelvk.base.env import cache_dir

SCRIPTS = Path(__file__).resolve().parent / "peers"


@dataclass(frozen=True, slots=True)
class Peer:
    """A library timed beside fuelvk: what pip installs for it, and what its process needs set."""

    name: str
    script: str
    requirements: tuple[str, ...]
    without_dependencies: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def folder(self) -> Path:
        """The virtual environment."""
        return cache_dir() / "peers" / self.name

    @property
    def python(self) -> Path:
        windows = sys.platform == "win32"
        return self.folder / ("Scripts/python.exe" if windows else "bin/python")

    @property
    def ready(self) -> Path:
        """Written when all is installed; holds the requirements, so that a change of them installs again."""
        return self.folder / "requirements.txt"

    def wanted(self) -> str:
        return "\n".join([*self.requirements, *self.without_dependencies]) + "\n"

    def installed(self) -> bool:
        return self.ready.is_file() and self.ready.read_text() == self.wanted() and self.python.exists()


PEERS: tuple[Peer, ...] = (
    Peer("numpy", "probe_numpy.py", ("numpy",)),
    Peer("computeml", "probe_computeml.py", ("computeml", "numpy")),
    # torchvulkan's wheel fits one PyTorch version and would otherwise pull another
    Peer("torchvulkan", "probe_torchvulkan.py", ("torch==2.13.0", "numpy"), ("torchvulkan",)),
    # ggml skips CPU devices unless one is named, and computes "F32" products in F16 unless told not to
    Peer(
        "ggml-vulkan",
        "probe_ggml.py",
        ("cyllama-vulkan", "numpy"),
        environment=(("GGML_VK_VISIBLE_DEVICES", "0"), ("GGML_VK_DISABLE_F16", "1")),
    ),
)


def setup(peer: Peer) -> str | None:
    """Installs a peer unless it is there; returns what went wrong, or None."""
    if peer.installed():
        return None
    if not peer.python.exists():
        venv.create(peer.folder, with_pip=True)
    pip = [str(peer.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = [[*pip, *peer.requirements]]
    if peer.without_dependencies:
        steps.append([*pip, "--no-deps", *peer.without_dependencies])
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    peer.ready.write_text(peer.wanted())
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0 when every peer asked for is installed, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.setup_peers", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=", ".join(p.name for p in PEERS) + " (default: all)"
    )
    names = parser.parse_args(argv).names
    unknown = sorted(set(names) - {p.name for p in PEERS})
    if unknown:
        parser.error(f"unknown peer {', '.join(unknown)}; there are {', '.join(p.name for p in PEERS)}")
    failed = False
    for peer in PEERS:
        if names and peer.name not in names:
            continue
        problem = setup(peer)
        failed = failed or problem is not None
        print(
            f"{peer.name}: " + (f"not installed: {problem}" if problem else f"ready in {peer.folder}"),
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
