"""x/2 * (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), which is x/(1 + e^-w), w = sqrt(8/pi) (x + 0.044715 x^3).

-0 at -inf. An error of w is multiplied by w in the result, so w is carried in two parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cpu_reference.numpy._common import Array, precise

# sqrt(8/pi) and 0.044715 to 40 digits, as fractions of integers.
_ROOT = 15957691216057307117597842397375274738226, 10**40
_CUBE = 44715, 10**6


def _parts(fraction: tuple[int, int], kind: Any) -> tuple[Any, Any]:
    """Returns a positive fraction as two floats of a kind."""
    over, under = fraction
    bits = np.finfo(kind).nmant
    scaled = (over << (2 * bits)) // under
    head = scaled >> bits << bits
    return kind(head >> bits) / kind(2.0**bits), kind(scaled - head) / kind(2.0**bits) / kind(2.0**bits)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Returns a*b as the rounded product and its error (Dekker)."""
    splitter = a.dtype.type(2.0 ** ((np.finfo(a.dtype).nmant + 2) // 2)) + 1
    t, u = a * splitter, b * splitter
    ah, bh = t - (t - a), u - (u - b)
    al, bl = a - ah, b - bh
    p = a * b
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _exact(x: Array) -> Array:
    kind = x.dtype.type
    v = np.clip(x, -100, 100)  # beyond, the result is 0 or x in every type
    root, root_low = _parts(_ROOT, kind)
    cube, cube_low = _parts(_CUBE, kind)
    square, square_low = _two_product(v, v)
    head, low = _two_product(square, np.full_like(v, cube))
    low = low + square_low * cube + square * cube_low
    inner = 1 + head  # 1 + 0.044715 x^2
    low = np.where(head > 1, (head - inner) + 1, (1 - inner) + head) + low
    w, w_low = _two_product(v, inner)
    w_low = w_low + v * low
    full, full_low = _two_product(w, np.full_like(v, root))
    full_low = full_low + w_low * root + w * root_low
    decay = np.exp(-full) * (1 - full_low)
    return np.where(np.isneginf(x), -0.0, x / (1 + decay))


def reference(x: Array) -> Array:
    return precise(_exact, x)
