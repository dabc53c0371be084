"""Rotary position embedding: the element pairs of each row turned by the angles of its position."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide


def reference(x: Array, cos: Array, sin: Array, *, interleaved: bool = False) -> Array:
    w = wide(x)
    length, d = w.shape[-2:]
    c, s = (_whole(wide(table), d)[:length] for table in (cos, sin))
    h = d // 2
    if interleaved:
        first, second = np.arange(h) * 2, np.arange(h) * 2 + 1
    else:
        first, second = np.arange(h), np.arange(h) + h
    y = np.empty_like(w)
    with np.errstate(all="ignore"):
        y[..., first] = w[..., first] * c[:, first] - w[..., second] * s[:, first]
        y[..., second] = w[..., second] * c[:, second] + w[..., first] * s[:, second]
    return y


def _whole(table: Array, d: int) -> Array:
    """A table of D/2 columns stands for one whose halves are equal."""
    return table if table.shape[1] == d else np.concatenate([table, table], axis=1)
