"""The weights of ONNX's Resize along one axis, as a matrix, from exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from cpu_reference.numpy._common import Array


def _place(o: int, n: int, m: int, coordinates: str) -> Fraction:
    if coordinates == "align_corners":
        return Fraction(o * (n - 1), m - 1) if m > 1 else Fraction(0)
    if coordinates == "asymmetric":
        return Fraction(o * n, m)
    return (o + Fraction(1, 2)) * Fraction(n, m) - Fraction(1, 2)


def matrix(n: int, m: int, mode: str, coordinates: str, kind: Any) -> Array:
    """Returns the weights [m, n] with which m results read n sources."""
    found = np.zeros((m, n), kind)
    for o in range(m):
        at = min(max(_place(o, n, m, coordinates), Fraction(0)), Fraction(n - 1))
        low = math.floor(at)
        if mode == "nearest":
            found[o, low + (at - low > Fraction(1, 2))] = 1
            continue
        share = at - low
        found[o, low] = kind((1 - share).numerator) / kind((1 - share).denominator)
        if share:
            found[o, low + 1] = kind(share.numerator) / kind(share.denominator)
    return found


def weighted(weights: Array, x: Array) -> Array:
    """Returns sum over j of weights[i, j] * x[.., j]: sources of weight 0 take no part, whatever they hold."""
    y = np.zeros((*x.shape[:-1], weights.shape[0]), x.dtype)
    for i, row in enumerate(weights):
        used = np.flatnonzero(row)
        y[..., i] = (x[..., used] * row[used]).sum(axis=-1)
    return y


def both(rows: Array, columns: Array, x: Array) -> Array:
    """Returns ``x`` [.., H, W] weighted along columns, then rows."""
    across = weighted(columns, x)
    return np.swapaxes(weighted(rows, np.swapaxes(across, -1, -2)), -1, -2)
