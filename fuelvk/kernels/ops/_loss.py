"""What the wrappers of cross-entropy and of its gradient share: the shaders around the rows, and their parameters."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import elements
from fuelvk.kernels._vulkan import spirv
from fuelvk.kernels.ops import _ranges
from fuelvk.kernels.ops._division import Plan, axes, divisible
from fuelvk.kernels.ops._loops import too_many_iterations
from fuelvk.kernels.ops._rows import in_passes
from fuelvk.kernels.types import Admits, Shapes

_PAIRED = 1
_FINISH = struct.Struct("<8I8s")

LOSS = {
    (entry, dtype): spirv("rows/loss", entry, dtype=dtype)
    for entry in ("loss_total", "loss_each", "loss_scale")
    for dtype in (DType.F32, DType.F64)
}


# Of one target among a kernel's indices: its two words.
TARGET_WORDS = 2
_THREADS = 64


def rows_apart(shapes: Shapes, params: Mapping[str, Any]) -> Plan:
    """Returns how logits [.., n] are cut with what there is a value of for every row."""
    return tuple(axes(s, -1) if s == shapes[0] else axes(s) for s in shapes)


def loss_admits(dtypes: tuple[DType, DType], passes: int) -> Admits:
    """Returns the ``admits`` of a loss of (logits, targets), or of its gradient, which walks a row so often.

    One workgroup adds up the losses of all rows, and finds the factors of the gradient.
    """
    reach = divisible(rows_apart, dtypes, weights=(1, TARGET_WORDS), also=in_passes(passes))

    def admits(shapes: Shapes, params: Mapping[str, Any], capabilities: Any) -> str | None:
        reason = reach(shapes[:2], params, capabilities)
        rows = elements(shapes[1] or ())
        if reason is not None or (params["reduction"] == "none" and len(shapes) == 3):
            return reason
        limit = _ranges.limit(capabilities, DType.I64.size, TARGET_WORDS) - _ranges.ALIGNMENT
        if rows > limit:
            return f"{rows} rows; one workgroup indexes {limit} of them"
        return too_many_iterations(capabilities, 2 * (rows // _THREADS + 16))

    return admits


def ignored_words(ignore_index: int) -> bytes:
    """Returns the ignored value as an I64 target holds it: low word, then high."""
    return struct.pack("<q", ignore_index)


def row_flags(n: int, *offsets: int) -> int:
    """Returns whether every row of every operand starts on an even element."""
    return _PAIRED * all(v % 2 == 0 for v in (n, *offsets))


def finish_words(
    rows: int, groups_x: int, mean: int, columns: int, t0: int, a0: int, y0: int, error: int, ignored: bytes
) -> bytes:
    """Returns the parameters of the entries of ``rows/loss``."""
    return _FINISH.pack(rows, groups_x, mean, columns, t0, a0, y0, error, ignored)
