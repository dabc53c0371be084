"""The rows of the parity matrix: those of fuelvk.verify, thinned out where FUELVK_NUM_CASES asks for it."""

from __future__ import annotations

import hashlib
import os

from fuelvk.verify.cases import (
    Case,
    canonical_impl,
    computed_ops,
    every_case,
    impl_id,
    implementations,
    oracle,
    samples,
)

__all__ = [
    "Case",
    "canonical_impl",
    "cases",
    "computed_ops",
    "impl_id",
    "implementations",
    "oracle",
    "samples",
]


def cases() -> list[Case]:
    """Returns the matrix, thinned out evenly to about FUELVK_NUM_CASES rows when that is set."""
    rows = list(every_case())
    wanted = int(os.environ.get("FUELVK_NUM_CASES", "0"))
    if not wanted or wanted >= len(rows):
        return rows
    return [
        row for row in rows if int(hashlib.sha256(row.id.encode()).hexdigest()[:8], 16) % len(rows) < wanted
    ]
