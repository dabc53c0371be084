"""Finds the inputs of an F32 function that are hardest to round: ``python -m tests.support.hard_inputs exp2 600``.

Tries every input, keeps those whose exact result lies nearest to the middle between two floats, as mpmath measures it,
and writes them as ``tests/unit/strict_hard_<function>.u32``, little-endian, in order.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from cpu_reference.truth import exact, near_boundaries

FOLDER = Path(__file__).parents[1] / "unit"
WITHIN = 2.0**-44  # of the result: a thousand inputs or so of a function whose results fill all binades


def distance(name: str, bits: int) -> float:
    """Returns how far the exact result is from the nearest middle between two floats, in their spacing (mpmath)."""
    return 0.5 - exact.error_in_ulps(*exact.correctly_rounded(name, bits))


def nearest(name: str, count: int, candidates: Iterable[int]) -> list[int]:
    """Returns the ``count`` candidates nearest to a boundary, in order of their bits."""
    return sorted(sorted(candidates, key=lambda bits: (distance(name, bits), bits))[:count])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("function")
    parser.add_argument("count", type=int)
    options = parser.parse_args()
    found = near_boundaries(options.function, 0, 0xFFFFFFFF, WITHIN)
    kept = nearest(options.function, options.count, found)
    np.array(kept, "<u4").tofile(FOLDER / f"strict_hard_{options.function}.u32")
    print(f"{options.function}: {len(kept)} of {len(found)}")


if __name__ == "__main__":
    main()
