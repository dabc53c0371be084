"""Error bounds of the row ops, cross-entropy and rotations; see ``bounds`` for notation.

The row ops sum with compensation: every addition's rounding error is kept and added up along the same tree. The result
errs by u|S| + gamma_D^2 sum|v|, D the depth of the tree (T. Ogita, S. Rump, S. Oishi, Accurate sum and dot product,
SIAM J. Sci. Comput. 26 (2005), proposition 4.5, with D additions a term instead of n - 1).
"""

from __future__ import annotations

import functools

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.kernels.bounds import (
    EXP,
    RSQRT,
    SLACK,
    Array,
    _largest,
    _tiny,
    _unit,
    _wide,
    gamma,
    rounding,
    sum_depth,
    ulps,
)
from fuelvk.kernels.types import Bound, BoundInputs

ROW_ULPS, ROW_LENGTH = 4.0, 4096


def kept_sum(n: int, u: float) -> float:
    """Returns the relative error of a compensated sum of n terms of one sign."""
    return u + gamma(sum_depth(n), u) ** 2


def _four_ulps(b: BoundInputs, error: Array) -> Array:
    """Returns ``error``, at most 4 ULP in F32 for rows of up to 4,096 elements.

    The theorem's 6 to 8 u are 3 to 8 ULP, depending on the mantissa; that no result is off by more than 4 is
    measured.
    """
    n = b.inputs[0].shape[-1] if b.inputs[0] is not None else 0
    return np.minimum(error, ulps(ROW_ULPS, b)) if b.dtype is DType.F32 and n <= ROW_LENGTH else error


def softmax(b: BoundInputs) -> Array:
    """8 u y, and 4 ULP in F32 for rows of up to 4,096.

    exp sees the difference x - max unrounded and errs by 2u (1 ULP), in the element and, weighted by y, in the
    sum; the compensated sum, the reciprocal and the product round once each.
    """
    x = _wide(b.inputs[0])
    u = _unit(b)
    n = x.shape[-1]
    if n == 0:
        return np.zeros(x.shape)
    y = np.abs(_wide(b.reference))
    relative = 2 * EXP * u + kept_sum(n, u) + 2 * u
    return _four_ulps(b, rounding(b, y * relative + (2 + n * y) * 2 * _tiny(b.dtype.accumulator)))


def softmax_backward(b: BoundInputs) -> Array:
    """|y| (2u sum|g y| + 2u |g - S|), S = sum(g y).

    Products round once, the compensated sum once; the difference and the last product round once each (Higham,
    section 2.2).
    """
    y, g = _wide(b.inputs[0]), _wide(b.inputs[1])
    u, n, tiny = _unit(b), y.shape[-1], _tiny(b.dtype.accumulator)
    if n == 0:
        return np.zeros(y.shape)
    with np.errstate(all="ignore"):
        terms = np.abs(g * y).sum(axis=-1, keepdims=True)
        total = (g * y).sum(axis=-1, keepdims=True)
        off = (u + kept_sum(n, u)) * terms + n * tiny
        error = np.abs(y) * (off + 2 * u * np.abs(g - total)) + tiny
        return rounding(b, np.where(terms > _largest(b), np.inf, error))


def rms_norm(b: BoundInputs) -> Array:
    """|y| 6 u, eps and weight included; 4 ULP in F32 for rows of up to 4,096.

    The mean of squares has only positive terms: the squares, the compensated sum, the division and the addition
    of eps err by u each; the reciprocal root halves that and adds 2u; the products round once each.
    """
    x = _wide(b.inputs[0])
    return _four_ulps(b, rounding(b, _normalised(b, x, np.zeros((*x.shape[:-1], 1)), bias=None)))


def layer_norm(b: BoundInputs) -> Array:
    """A bound by the row's mean and spread: about u (2 mean|x|/std + 8) |y|, u mean|x|/std where y is 0.

    The mean errs by 2u mean|x|; that shifts every difference, and enters the variance through |d|*|error of d|
    (Higham, section 1.9, two-pass variance); then as rms norm. Where the error of the variance reaches the
    variance plus eps, nothing is claimed (the bound is infinite).
    """
    x = _wide(b.inputs[0])
    if x.shape[-1] == 0:
        return np.zeros(x.shape)
    with np.errstate(all="ignore"):
        d, shift = _centred(b, x)
        return rounding(b, _normalised(b, d, shift, bias=b.inputs[2] if len(b.inputs) > 2 else None))


def rms_norm_backward(b: BoundInputs) -> Array:
    """r (|g| + |xh| mean|g xh|) times 8 u or so; see ``layer_norm_backward``, with a mean of 0."""
    x = _wide(b.inputs[0])
    return _norm_backward(b, x, np.zeros((*x.shape[:-1], 1)), centred=False)


def layer_norm_backward(b: BoundInputs) -> Array:
    """r times the errors of g - mean(g), of xh and of mean(g xh), and r's own.

    xh carries the forward's error; the two means are compensated sums of rounded products; every other
    operation rounds once (Higham, section 2.2). Infinite where the forward's bound is.
    """
    x = _wide(b.inputs[0])
    if x.shape[-1] == 0:
        return np.zeros(x.shape)
    with np.errstate(all="ignore"):
        d, shift = _centred(b, x)
        return _norm_backward(b, d, shift, centred=True)


def _centred(b: BoundInputs, x: Array) -> tuple[Array, Array]:
    """Returns x - mean and the error of the mean."""
    u = _unit(b)
    mean = x.mean(axis=-1, keepdims=True)
    return x - mean, (kept_sum(x.shape[-1], u) + u) * np.abs(x).mean(axis=-1, keepdims=True)


def _spread(b: BoundInputs, d: Array, shift: Array) -> tuple[Array, Array, Array, Array]:
    """Returns the error of d, mean(d^2) + eps, the relative error of its reciprocal root, and the sum of d^2."""
    u, n = _unit(b), d.shape[-1]
    d_error = shift * (1 + u) + (u * np.abs(d) if np.any(shift) else 0.0)
    variance = np.square(d).mean(axis=-1, keepdims=True)
    spread = np.square(np.abs(d) + d_error).mean(axis=-1, keepdims=True)
    v_error = (spread - variance) + (kept_sum(n, u) + 2 * u) * spread + 2 * _tiny(b.dtype.accumulator)
    v = variance + float(b.params["eps"])
    v_error = v_error + u * (v + v_error)
    least = v - v_error
    ratio = np.where(least > 0, np.sqrt(v / np.where(least > 0, least, 1.0)) - 1, np.inf)
    return d_error, v, ratio + RSQRT * u, spread * n


def _normalised(b: BoundInputs, d: Array, shift: Array, bias: Array | None) -> Array:
    """Returns the error of ``d/sqrt(mean(d^2) + eps)*weight + bias`` when d carries an error of ``shift`` +
    u*|d|.
    """
    u, tiny = _unit(b), _tiny(b.dtype.accumulator)
    if d.shape[-1] == 0:
        return np.zeros(d.shape)
    weight = np.abs(_wide(b.inputs[1])) if len(b.inputs) > 1 and b.inputs[1] is not None else 1.0
    with np.errstate(all="ignore"):
        d_error, v, ratio, total = _spread(b, d, shift)
        r = 1 / np.sqrt(v)
        y = np.abs(d) * r
        off = d_error * r * (1 + ratio) + y * (ratio + 2 * u) + tiny
        error = off * weight + tiny
        if bias is not None:
            error = error + u * (y * weight + error + np.abs(_wide(bias)))
        # A row whose variance and eps are both zero is 0 * inf in every implementation; one that holds an infinity
        # turns its finite elements into zeros.
        error = np.where(v == 0, np.inf, np.where(np.isposinf(v), 0.0, error))
        return np.where(np.isfinite(v) & (total > _largest(b)), np.inf, error)


def _norm_backward(b: BoundInputs, d: Array, shift: Array, *, centred: bool) -> Array:
    """Returns the error of ``r*((g - mean g) - xh*mean(g*xh))``, xh = d*r; without the mean of g unless centred."""
    u, tiny, n = _unit(b), _tiny(b.dtype.accumulator), d.shape[-1]
    if n == 0:
        return np.zeros(d.shape)
    g = _wide(b.inputs[1])
    with np.errstate(all="ignore"):
        d_error, v, ratio, total = _spread(b, d, shift)
        r = 1 / np.sqrt(v)
        xh = np.abs(d) * r
        xh_error = d_error * r * (1 + ratio) + xh * (ratio + u) + tiny
        share = np.abs((g * d * r).mean(axis=-1, keepdims=True))
        terms = (np.abs(g) * (xh + xh_error)).mean(axis=-1, keepdims=True)
        share_error = (
            (np.abs(g) * xh_error).mean(axis=-1, keepdims=True) + (kept_sum(n, u) + 2 * u) * terms + tiny
        )
        mean = np.abs(g.mean(axis=-1, keepdims=True)) if centred else 0.0
        left = np.abs(g) + mean
        left_error = u * left
        if centred:
            left_error = left_error + (kept_sum(n, u) + u) * np.abs(g).mean(axis=-1, keepdims=True) * (1 + u)
        right = xh * share
        right_error = xh_error * (share + share_error) + xh * share_error + u * right + tiny
        inner = left_error + right_error + u * (left + right)
        error = r * (inner * (1 + ratio) + (left + right) * (ratio + u)) + tiny
        error = np.where(v == 0, np.inf, error)
        largest = np.isfinite(v) & ((total > _largest(b)) | (terms * n > _largest(b)))
        return rounding(b, np.where(largest, np.inf, error))


# --- cross-entropy ----------------------------------------------------------------------------------------------


@functools.cache
def cross_entropy(accumulator: DType) -> Bound:
    """Returns the bound of losses computed in ``accumulator`` and stored as F32.

    A row errs by u (2|max - x_t| + 4 + 2|log sum|): the difference and the last sum round once, the compensated
    sum and its exponentials err by 4u relatively, which the logarithm turns into absolute ones, and it errs by 2u
    itself. The total adds a compensated sum and the mean a division (Higham, sections 2.2 and 4.2).
    """
    u = accumulator.unit_roundoff

    def bound(b: BoundInputs) -> Array:
        x, targets = _wide(b.inputs[0]), _wide(b.inputs[1])
        n = max(x.shape[-1], 1)
        with np.errstate(all="ignore"):
            counts = targets != b.params["ignore_index"]
            if x.size == 0:
                return np.zeros(np.shape(b.reference))
            largest = x.max(axis=-1)
            at = np.where(counts, targets, 0).astype(np.int64)[..., None]
            gap = largest - np.take_along_axis(x, at, axis=-1)[..., 0]
            log_sum = np.log(np.exp(x - largest[..., None]).sum(axis=-1))
            row = u * (2 * np.abs(gap) + 3 * np.abs(log_sum) + 4) + kept_sum(n, u)
            row = np.where(counts, row, 0.0)
            if b.params["reduction"] != "none":
                losses = np.where(counts, np.abs(gap + log_sum), 0.0)
                row = row.sum() + (kept_sum(losses.size, u) + u) * losses.sum()
                if b.params["reduction"] == "mean":
                    row = row / counts.sum()
            size = np.abs(_wide(b.reference))
            error = np.asarray(row) * SLACK
            return np.asarray(error + (size + error) * DType.F32.unit_roundoff + _tiny(DType.F32))

    bound.__doc__ = f"losses in {accumulator.key}: {cross_entropy.__doc__}"
    return bound


def cross_entropy_backward(b: BoundInputs) -> Array:
    """|factor| (9u p + u |p - onehot|) + u |y|: softmax's error, one difference, the factor's rounding, one product."""
    x, targets, g = (_wide(v) for v in b.inputs[:3])
    if x.size == 0:
        return np.zeros(x.shape)
    u, n, tiny = _unit(b), x.shape[-1], _tiny(b.dtype.accumulator)
    counts = targets != b.params["ignore_index"]
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        p = e / e.sum(axis=-1, keepdims=True)
        factor = np.abs(g / counts.sum() if b.params["reduction"] == "mean" else g)
        factor = np.broadcast_to(factor, counts.shape)[..., None]
        off = p * (2 * EXP + 3) * u + p * kept_sum(n, u) + (2 + n * p) * 2 * tiny
        hot = np.arange(n) == np.where(counts, targets, -1)[..., None]
        error = factor * (off + u * np.abs(p - hot)) + 3 * u * factor * np.abs(p - hot) + 2 * tiny
        return rounding(b, np.where(counts[..., None], error, 0.0))


# --- rotations --------------------------------------------------------------------------------------------------


def rope(b: BoundInputs) -> Array:
    """2u (|a c| + |b s|).

    Two products and one addition, each rounded once (Higham, section 2.2).
    """
    x = np.abs(_wide(b.inputs[0]))
    length, d = x.shape[-2:]
    cos, sin = (np.abs(_wide(t))[:length] for t in b.inputs[1:3])
    if cos.shape[1] != d:
        cos, sin = (np.concatenate([t, t], axis=1) for t in (cos, sin))
    h = d // 2
    if b.params["interleaved"]:
        partner = x.reshape(*x.shape[:-1], h, 2)[..., ::-1].reshape(x.shape)
    else:
        partner = np.concatenate([x[..., h:], x[..., :h]], axis=-1)
    with np.errstate(all="ignore"):
        size = x * cos + partner * sin
        error = 2 * _unit(b) * size + 2 * _tiny(b.dtype.accumulator)
        return rounding(b, np.where(size > _largest(b), np.inf, error))
