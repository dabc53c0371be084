"""What the wrappers of cross-entropy and of its gradient share: the shaders around the rows, and their parameters."""

from __future__ import annotations

import struct

from fuelvk.base.dtypes import DType
from fuelvk.kernels._vulkan import spirv

_PAIRED = 1
_FINISH = struct.Struct("<8I8s")

LOSS = {
    (entry, dtype): spirv("rows/loss", entry, dtype=dtype)
    for entry in ("loss_total", "loss_each", "loss_scale")
    for dtype in (DType.F32, DType.F64)
}


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
