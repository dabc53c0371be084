"""Error bounds that depend on shape and data, each from a theorem named in its docstring.

A bound takes BoundInputs (float64 copies of the inputs, the exact result, the output's dtype) and returns the
allowed absolute error per output element. The unit roundoff u is the accumulator's: F32 for 16-bit types and
F32, F64 for F64. All of them suppose gradual underflow; a device that flushes subnormals is outside them
where subnormals arise.

Notation: gamma_n = n*u/(1 - n*u) bounds the relative error of n roundings in a row (N. Higham, Accuracy and
Stability of Numerical Algorithms, 2nd ed., lemma 3.1). First-order terms are added up and widened by SLACK,
which covers the products of two of them.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import normalize_axes
from fuelvk.kernels.types import Bound, BoundInputs

Array = np.ndarray[Any, Any]

SLACK = 1.01
LANES = 64  # partials of a sum, and k of one block of a product (ops.md section 9)
BLOCK = 16384  # elements of one block of a sum

# Relative errors of the strict library's inner functions (at most 1 ULP, that is 2u).
EXP = RSQRT = TANH = 2.0


def gamma(n: float, u: float) -> float:
    """Returns gamma_n; infinite where n*u reaches 1 and the theorem says nothing."""
    return n * u / (1 - n * u) if n * u < 1 else math.inf


def sum_depth(n: int) -> int:
    """Roundings an element goes through in the canonical sum: its partial of its block, six levels of the tree, and
    the same for the results of blocks.
    """
    depth = 6 + max(-(-min(n, BLOCK) // LANES), 1)
    return depth + (sum_depth(-(-n // BLOCK)) if n > BLOCK else 0)


def product_depth(k: int) -> int:
    """Roundings a product goes through in the canonical dot product: itself, its block, the total of
    blocks.
    """
    return 1 + min(k, LANES) + max(-(-k // LANES), 1)


def _unit(b: BoundInputs) -> float:
    return b.dtype.accumulator.unit_roundoff


def _tiny(dtype: DType) -> float:
    """Returns half the smallest subnormal, the absolute error of one rounding in the subnormal range (F64: all of it,
    since half of it is no float64).
    """
    return {DType.F64: 2.0**-1074, DType.F32: 2.0**-150, DType.F16: 2.0**-25, DType.BF16: 2.0**-134}[dtype]


def _largest(b: BoundInputs) -> float:
    """Returns the largest number the accumulator holds: beyond it nothing is claimed."""
    return float(np.finfo(b.dtype.accumulator.numpy).max)


def rounding(b: BoundInputs, error: Array) -> Array:
    """Returns ``error``, made in the accumulator, plus that of the one rounding to a narrower output type."""
    error = np.asarray(error) * SLACK
    size = np.abs(np.asarray(b.reference, dtype=np.float64))
    if b.dtype.accumulator is b.dtype:
        return error
    return error + (size + error) * b.dtype.unit_roundoff + _tiny(b.dtype)


def _wide(array: Array | None) -> Array:
    assert array is not None
    return np.asarray(array, dtype=np.float64)


# --- products ---------------------------------------------------------------------------------------------------


def _dot_error(b: BoundInputs, depth: int) -> Array:
    left, right = np.abs(_wide(b.inputs[0])), np.abs(_wide(b.inputs[1]))
    k = left.shape[-1]
    with np.errstate(all="ignore"):
        size = left @ right
        size = np.where(size > _largest(b), np.inf, size)
        return np.asarray(gamma(depth, _unit(b)) * size + k * _tiny(b.dtype.accumulator))


def dot_product(b: BoundInputs) -> Array:
    """gamma_K |a|.|b|.

    ``|err| <= gamma_K * sum |a_i*b_i|`` for a dot product of length K accumulated in any order (Higham,
    section 3.1).
    """
    return rounding(b, _dot_error(b, _wide(b.inputs[0]).shape[-1]))


def blocked_product(b: BoundInputs) -> Array:
    """gamma_(K/64+65) |a|.|b|.

    The canonical product: each term passes its own rounding, at most 64 of its block and one per block of the
    total (Higham, section 3.1, with the depth of this order). Holds for matmul and, with a bias,
    fused_linear.
    """
    error = _dot_error(b, product_depth(_wide(b.inputs[0]).shape[-1]))
    if len(b.inputs) > 2 and b.inputs[2] is not None:
        error = error + _unit(b) * (np.abs(_wide(b.reference)) + error)
    return rounding(b, error)


# --- sums -------------------------------------------------------------------------------------------------------


def tree_sum(b: BoundInputs) -> Array:
    """gamma_(n/64+6) sum |x| up to n = 16384, gamma_(268+n/2^20) sum |x| beyond.

    The canonical sum over the reduced axes (Higham, section 4.2: the depth of the tree is what counts). For a
    mean the bound is divided by n and one rounding added.
    """
    return _reduction(b, mean=False)


def tree_mean(b: BoundInputs) -> Array:
    """gamma_(n/64+7) mean |x| up to n = 16384. The canonical sum and one division (Higham, section 4.2)."""
    return _reduction(b, mean=True)


def running_sum(b: BoundInputs) -> Array:
    """gamma_d sum of |x| up to each element, d = 64 a level of blocks.

    A term passes at most 64 additions within its block and one beside the carry, whose own depth is that of n / 64
    elements (Higham, section 4.2).
    """
    x = np.abs(_wide(b.inputs[0]))
    axis = int(b.params["axis"])
    n, depth = x.shape[axis], 0.0
    while n > 64:
        n, depth = -(-n // 64), depth + 65
    with np.errstate(all="ignore"):
        size = np.cumsum(x, axis=axis)
        size = np.where(size > _largest(b), np.inf, size)
        return rounding(b, gamma(depth + n, _unit(b)) * size + _tiny(b.dtype.accumulator))


def accumulation(b: BoundInputs) -> Array:
    """gamma_m (|x| + sum |updates|), m the updates an element takes.

    A sum of m + 1 terms one after another (Higham, section 4.2). Holds for scatter_add and index_add.
    """
    x, indices, updates = (_wide(given) for given in b.inputs)
    axis = int(b.params["axis"]) % x.ndim
    if indices.ndim != x.ndim:
        indices = indices.reshape([-1 if d == axis else 1 for d in range(x.ndim)])
        indices = np.broadcast_to(indices, updates.shape)
    places: list[Array] = list(np.indices(indices.shape))
    places[axis] = indices.astype(np.int64)
    size, taken = np.abs(x), np.zeros(x.shape)
    with np.errstate(all="ignore"):
        np.add.at(size, tuple(places), np.abs(updates[tuple(slice(n) for n in indices.shape)]))
        np.add.at(taken, tuple(places), 1)
        u = _unit(b)
        size = np.where(size > _largest(b), np.inf, size)
        error = np.where(taken == 0, 0.0, taken * u / (1 - taken * u) * size)
        return rounding(b, error + taken * _tiny(b.dtype.accumulator))


def tree_product(b: BoundInputs) -> Array:
    """gamma_(n-1) |prod x|.

    n - 1 roundings in any order (Higham, lemma 3.1). Nothing is claimed where a product of some of the elements leaves
    the accumulator's normal range: where the product of all above 1, or of all below 1, does.
    """
    x = np.abs(_wide(b.inputs[0]))
    axes = normalize_axes(b.params.get("axes"), x.ndim)
    keepdims = bool(b.params.get("keepdims", False))
    limits: Any = np.finfo(b.dtype.accumulator.numpy)
    with np.errstate(all="ignore"):
        size = np.where(x > 0, np.log2(x), 0.0)
        above = np.maximum(size, 0).sum(axis=axes, keepdims=keepdims)
        below = np.minimum(size, 0).sum(axis=axes, keepdims=keepdims)
        claimed = (above < limits.maxexp) & (below > limits.minexp + 1)
        error = gamma(math.prod(x.shape[a] for a in axes), _unit(b)) * np.abs(_wide(b.reference))
        return rounding(b, np.where(claimed, error, np.inf))


def _reduction(b: BoundInputs, *, mean: bool) -> Array:
    x = np.abs(_wide(b.inputs[0]))
    axes = normalize_axes(b.params.get("axes"), x.ndim)
    n = math.prod(x.shape[a] for a in axes)
    size = x.sum(axis=axes, keepdims=bool(b.params.get("keepdims", False)))
    depth = sum_depth(n) + (1 if mean else 0)
    with np.errstate(all="ignore"):
        size = np.where(size > _largest(b), np.inf, size / n if mean and n else size)
        error = gamma(depth, _unit(b)) * size + _tiny(b.dtype.accumulator)
    return rounding(b, error)


# --- attention --------------------------------------------------------------------------------------------------


def attention(b: BoundInputs) -> Array:
    """sum P|v| (errors of the scores, of exp and of the rescaled sums).

    Scores are canonical dot products of length D (Higham, section 3.1), then scale, softcap and ALiBi round
    once or a few times each. An absolute error e of a score is a relative error e of its exponential; the
    running maximum is applied in steps whose exponents add up to no more than max - s. Denominator and output
    are sums of at most 64 + blocks + pieces terms deep, rescaled once per block and piece.
    """
    u = _unit(b)
    q, k, v = (_wide(x) for x in b.inputs[:3])
    batch, hq, sq, d = q.shape
    hkv, sk = k.shape[1], k.shape[2]
    result = np.zeros(q.shape)
    if 0 in q.shape or sk == 0:
        return rounding(b, result)
    slopes, lens = (b.inputs[i] if len(b.inputs) > i else None for i in (3, 4))
    blocks = -(-sk // LANES)
    steps = blocks + -(-blocks // 16) + 1
    for item in range(batch):
        for head in range(hq):
            keys, values = k[item, head // (hq // hkv)], v[item, head // (hq // hkv)]
            mask, distance = _kept(b, item, sq, sk, lens)
            with np.errstate(all="ignore"):
                slope = 0.0 if slopes is None else float(slopes[head])
                s, s_error = _scores(b, q[item, head], keys, slope * distance)
                s = np.where(mask, s, -np.inf)
                top = s.max(axis=-1, keepdims=True)
                e = np.where(mask, np.exp(s - top), 0.0)
                total = e.sum(axis=-1, keepdims=True)
                p = np.where(total == 0, 0.0, e / total)
                own = np.where(
                    mask & (e > 0), np.abs(s - top) * u + s_error + EXP * u + steps * (EXP + 3) * u, 0.0
                )
                shared = (p * own).sum(axis=-1, keepdims=True) + gamma(LANES + steps + 8, u)
                seen = np.abs(np.where(mask[..., None], values, 0.0)) if mask.size * d < 1 << 22 else None
                if seen is None:
                    result[item, head] = (p * (own + shared)) @ np.abs(
                        np.where(np.isfinite(values), values, 0.0)
                    )
                else:
                    result[item, head] = ((p * (own + shared))[..., None] * seen).sum(axis=-2)
                    result[item, head] += 4 * _tiny(b.dtype.accumulator) * (1 + seen.sum(axis=-2))
    return rounding(b, result)


def _kept(b: BoundInputs, item: int, sq: int, sk: int, lens: Array | None) -> tuple[Array, Array]:
    """Returns the mask of kept keys and j - i_abs, both [Sq, Sk] (ops.md section 3)."""
    p = b.params
    length = int(lens[item]) if lens is not None else sk if p.get("k_len") is None else int(p["k_len"])
    offset = length - sq if p.get("causal_offset") is None else int(p["causal_offset"])
    keys = np.arange(sk)[None, :]
    distance = keys - (np.arange(sq)[:, None] + offset)
    mask = np.broadcast_to(keys < length, (sq, sk))
    if p.get("causal"):
        mask = mask & (distance <= 0)
    if p.get("window_left") is not None:
        mask = mask & (distance >= -int(p["window_left"]))
    if p.get("window_right") is not None:
        mask = mask & (distance <= int(p["window_right"]))
    return mask, distance


def _scores(b: BoundInputs, q: Array, keys: Array, alibi: Array) -> tuple[Array, Array]:
    """Returns the scores of one head and the absolute error each may carry."""
    u = _unit(b)
    scale, cap = float(b.params["scale"]), float(b.params.get("softcap") or 0.0)
    s = scale * (q @ keys.T)
    size = abs(scale) * (np.abs(q) @ np.abs(keys).T)
    error = gamma(product_depth(q.shape[-1]) + 2, u) * size + 2 * q.shape[-1] * _tiny(b.dtype.accumulator)
    if cap:
        s = cap * np.tanh(s / cap)
        # tanh has slope at most 1; quotient, tanh, product and the rounding of cap err relatively.
        error = error + (TANH + 4) * u * np.abs(s)
    s = s + alibi
    return s, error + u * (3 * np.abs(alibi) + np.abs(s))


# --- pointwise with parameters -----------------------------------------------------------------------------------


def affine(b: BoundInputs) -> Array:
    """u (|mul*x| + |y|).

    One rounding of the product and one of the sum (Higham, section 2.2), and the parameters as the accumulator
    holds them.
    """
    u = _unit(b)
    with np.errstate(all="ignore"):
        product = np.abs(_wide(b.inputs[0]) * float(b.params["mul"]))
        size = np.abs(_wide(b.reference))
        error = u * (product + size) + 2 * _tiny(b.dtype.accumulator)
        return rounding(b, np.where(product > _largest(b), np.inf, error))


def power(b: BoundInputs) -> Array:
    """gamma_(|exp|+2) |y|.

    x^n by any tree of products carries at most n-1 roundings (Higham, lemma 3.1); products that underflow err
    absolutely, by less than a tiny number for each of at most two a bit of n, doubled. A reciprocal turns the
    relative error of the power into its own and rounds once more. Where the power overflows, its reciprocal may
    come out as zero.
    """
    n = int(b.params["exp"])
    if n in (0, 1):
        return rounding(b, np.zeros(np.shape(b.reference)))
    tiny = _tiny(b.dtype.accumulator)
    with np.errstate(all="ignore"):
        size = np.abs(_wide(b.reference))
        grown = gamma(abs(n) + 1, _unit(b))
        steps = 4 * abs(n).bit_length() * tiny
        if n > 0:
            return rounding(b, grown * size + steps)
        small = 1 / size
        relative = grown + steps / small
        error = np.where(relative < 0.5, size * relative / (1 - relative), np.inf)
        error = np.where(small * (1 + grown) > _largest(b), size, error)
        return rounding(b, np.where(size == 0, 0.0, error) + 2 * tiny)


def power_backward(b: BoundInputs) -> Array:
    """gamma_(|exp - 1|+4) |y|: ``power`` of exp - 1, the factor exp rounded to the accumulator, two products."""
    n = int(b.params["exp"])
    g = np.abs(_wide(b.inputs[1]))
    if n in (0, 1):
        return rounding(b, np.zeros(g.shape))
    u, tiny = _unit(b), _tiny(b.dtype.accumulator)
    x = np.abs(_wide(b.inputs[0]))
    accumulator = b.dtype.accumulator
    with np.errstate(all="ignore"):
        inner = BoundInputs((b.inputs[0],), {"exp": n - 1}, np.power(x, float(n - 1)), accumulator)
        size, off = np.power(x, float(n - 1)), power(inner)
        slope = abs(n) * size
        slope_error = abs(n) * off * (1 + u) + 2 * u * slope + tiny
        y = slope * g
        error = slope_error * g + u * (y + slope_error * g) + tiny
        # A power or slope beyond the accumulator is an infinity, whatever g makes of it.
        error = np.where((size > _largest(b)) | (slope + slope_error > _largest(b)), np.inf, error)
        return rounding(b, np.where((g == 0) & np.isfinite(slope), tiny, error))


# --- pointwise --------------------------------------------------------------------------------------------------


def ulps(count: float, b: BoundInputs) -> Array:
    """Returns ``count`` units in the last place of the output type at each element of the exact result."""
    size = np.abs(np.asarray(b.reference, dtype=np.float64))
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(np.where(np.isfinite(size), size, 0.0))
    return np.asarray(
        count * np.maximum(np.ldexp(2 * b.dtype.unit_roundoff, exponent - 1), 2 * _tiny(b.dtype))
    )


@functools.cache
def within_ulps(count: float) -> Bound:
    """Returns the bound of ``count`` ULPs, for claims that are then combined with others."""

    def bound(b: BoundInputs) -> Array:
        return ulps(count, b)

    bound.__doc__ = f"{count:g} ULP."
    return bound
