"""Error bounds of log_softmax, pooling, batch norm, resizing and the hard functions; see ``bounds`` for notation.

Sums of weighted magnitudes come from the op's own oracle, applied to the magnitudes.
"""

from __future__ import annotations

import math

import numpy as np

from cpu_reference.numpy import oracle
from fuelvk.kernels.bounds import (
    EXP,
    RSQRT,
    Array,
    _largest,
    _tiny,
    _unit,
    _wide,
    gamma,
    product_depth,
    rounding,
    tree_mean,
)
from fuelvk.kernels.row_bounds import kept_sum
from fuelvk.kernels.types import BoundInputs

LOG = 2.0  # relative, in u, of the strict library's inner logarithm (1 ULP)


def log_softmax(b: BoundInputs) -> Array:
    """u (|x - max| + 2 log S + |y| + 4), S the row's sum of exponentials.

    The differences round once each, before the logarithm is taken off and after. S is at least 1 and errs by 2u of exp
    and the compensated sum's u, which is an absolute error of its logarithm; that errs by 1 ULP of its own.
    """
    x = _wide(b.inputs[0])
    u, n = _unit(b), x.shape[-1]
    if n == 0:
        return np.zeros(x.shape)
    with np.errstate(all="ignore"):
        d = x - x.max(axis=-1, keepdims=True)
        log_sum = np.log(np.exp(d).sum(axis=-1, keepdims=True))
        relative = EXP * u + kept_sum(n, u) + 2 * n * _tiny(b.dtype.accumulator)
        error = u * (np.abs(d) + np.abs(_wide(b.reference))) + LOG * u * log_sum + relative
        return rounding(b, np.where(np.isfinite(d), error, 0.0))


def _of_magnitudes(b: BoundInputs, op: str, which: int) -> Array:
    """Returns the op's exact result for the magnitudes of input ``which``."""
    inputs = [None if x is None else _wide(x) for x in b.inputs]
    inputs[which] = np.abs(_wide(b.inputs[which]))
    with np.errstate(all="ignore"):
        return np.asarray(oracle(op)(*inputs, **b.params), np.float64)


def _sum_of_taps(b: BoundInputs, op: str, which: int, more: int) -> Array:
    taps = math.prod(b.params["kernel"])
    size = _of_magnitudes(b, op, which)
    with np.errstate(all="ignore"):
        error = gamma(product_depth(taps) + more, _unit(b)) * size + taps * _tiny(b.dtype.accumulator)
        return rounding(b, np.where(size * taps > _largest(b), np.inf, error))


def avg_pool(b: BoundInputs) -> Array:
    """gamma_(k/64+66) of the average of |x|, k taps.

    At most 64 additions within a block, one for each block, and the division (Higham, section 4.2).
    """
    return _sum_of_taps(b, "avg_pool2d", 0, 1)


def max_pool_backward(b: BoundInputs) -> Array:
    """gamma_(k/64+65) sum |g| over the windows an element wins, k taps (Higham, section 4.2)."""
    return _sum_of_taps(b, "max_pool2d_backward", 1, 0)


def avg_pool_backward(b: BoundInputs) -> Array:
    """gamma_(k/64+66) sum |g|/count over the windows that hold an element, k taps (Higham, section 4.2)."""
    return _sum_of_taps(b, "avg_pool2d_backward", 0, 1)


def global_mean(b: BoundInputs) -> Array:
    """gamma_(n/64+7) mean |x| up to n = 16384, ``bounds.tree_mean`` of the last two axes."""
    return tree_mean(BoundInputs(b.inputs, {"axes": (-2, -1), "keepdims": True}, b.reference, b.dtype))


def batch_norm(b: BoundInputs) -> Array:
    """u (6 |xh*scale| + |y|), xh = (x - mean)/sqrt(var + eps).

    The difference, var + eps (halved by the root), 2u of the reciprocal root and two products make 5.5 u; the last
    addition rounds once (Higham, section 2.2).
    """
    x = _wide(b.inputs[0])
    u, tiny = _unit(b), _tiny(b.dtype.accumulator)
    along = (-1, *(1,) * (x.ndim - 2))
    scale, _, mean, var = (_wide(v).reshape(along) for v in b.inputs[1:])
    with np.errstate(all="ignore"):
        d, r = np.abs(x - mean), 1 / np.sqrt(var + float(b.params["eps"]))
        part = d * r
        size = part * np.abs(scale)
        relative = (4 + RSQRT) * u
        error = relative * size + u * np.abs(_wide(b.reference)) + tiny * (2 + np.abs(scale) * (1 + r))
        most = _largest(b)
        beyond = ((d > most) | (part > most) | (size > most)) & np.isfinite(x) & np.isfinite(mean)
        return rounding(b, np.where(beyond, np.inf, error))


def hard_sigmoid(b: BoundInputs) -> Array:
    """u (|alpha*x| + |alpha*x + beta|), at most 1.

    A product and a sum, each rounded (Higham, section 2.2); holding the line between 0 and 1 takes no error apart.
    """
    u, alpha, beta = _unit(b), float(b.params["alpha"]), float(b.params["beta"])
    with np.errstate(all="ignore"):
        product = alpha * _wide(b.inputs[0])
        error = u * (np.abs(product) + np.abs(product + beta)) + 2 * _tiny(b.dtype.accumulator)
        error = error + u * (np.abs(product) + abs(beta))  # the parameters as the accumulator holds them
        return rounding(b, np.minimum(error, 1.0))


def hard_swish(b: BoundInputs) -> Array:
    """gamma_3 |y|: a sum, a quotient and a product, each rounded (Higham, lemma 3.1)."""
    return rounding(b, gamma(3, _unit(b)) * np.abs(_wide(b.reference)) + _tiny(b.dtype.accumulator))


def resize(b: BoundInputs) -> Array:
    """gamma_7 of the interpolated |x|; nearest is exact.

    On each axis a weight, a product and a sum round once each (Higham, lemma 3.1).
    """
    size = _of_magnitudes(b, "resize2d", 0)
    if b.params["mode"] == "nearest":
        return rounding(b, np.zeros(size.shape))
    with np.errstate(all="ignore"):
        error = gamma(7, _unit(b)) * size + 8 * _tiny(b.dtype.accumulator)
        return rounding(b, np.where(size * (1 + 8 * _unit(b)) > _largest(b), np.inf, error))


def _readers(n: int, m: int) -> int:
    """Returns how many of ``m`` results at most read one of ``n`` sources."""
    return min(m, 2 * -(-m // max(n - 1, 1)) + 2)


def resize_backward(b: BoundInputs) -> Array:
    """gamma_d of the same sum of |g|, d = 4 and two canonical products over the results that read an element.

    Weights and products round once each on both axes, and each sum has its depth (Higham, section 3.1).
    """
    g = _wide(b.inputs[0])
    pairs = zip(b.params["size"], g.shape[-2:], strict=True)
    depth = 4 + sum(product_depth(_readers(n, m)) for n, m in pairs)
    size = _of_magnitudes(b, "resize2d_backward", 0)
    with np.errstate(all="ignore"):
        error = gamma(depth, _unit(b)) * size + depth * depth * _tiny(b.dtype.accumulator)
        return rounding(b, np.where(size * (1 + 8 * _unit(b)) > _largest(b), np.inf, error))
