"""Write the constant headers of the strict library: `python generate.py`, with `--check` only compare them."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

NAMES = (
    "exp",
    "tanh",
    "erf",
    "exp_d",
    "tanh_d",
    "erf_d",
    "tables",
    "log",
    "sincos",
    "exp_more",
    "extra_d",
    "cheap",
    "tanh_cr",
    "gelu_cr",
    "erf_cr",
)


def main() -> int:
    """Write or check every header; 1 when a check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing, fail when a header is not what is generated"
    )
    check = bool(parser.parse_args().check)
    folder = Path(__file__).resolve().parent
    sys.path.insert(0, str(folder))
    stale = []
    for name in NAMES:
        target = folder.parent / f"{name}_constants.h"
        text = importlib.import_module(f"gen_{name}").build().text()
        if check:
            if not target.exists() or target.read_text() != text:
                stale.append(target.name)
        else:
            target.write_text(text)
    if stale:
        print("not what the generators give: " + ", ".join(stale), file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
