"""The strict claims of the row ops, cross-entropy and rotations, CPU and Vulkan alike; see ``claims``."""

from __future__ import annotations

from fuelvk.base.dtypes import DType
from fuelvk.kernels.claims import _bounded
from fuelvk.kernels.row_bounds import (
    cross_entropy,
    cross_entropy_backward,
    layer_norm,
    layer_norm_backward,
    rms_norm,
    rms_norm_backward,
    rope,
    softmax,
    softmax_backward,
)
from fuelvk.kernels.types import PrecisionGuarantee

__all__ = [
    "CROSS_ENTROPY_IN_F32",
    "STRICT_CROSS_ENTROPY",
    "STRICT_CROSS_ENTROPY_BACKWARD",
    "STRICT_LAYER_NORM",
    "STRICT_LAYER_NORM_BACKWARD",
    "STRICT_RMS_NORM",
    "STRICT_RMS_NORM_BACKWARD",
    "STRICT_ROPE",
    "STRICT_SOFTMAX",
    "STRICT_SOFTMAX_BACKWARD",
]

_RMS_DOMAIN = (
    "for rows whose squares and their mean neither overflow (|x| up to 1e19/sqrt(n); F64: 1e154/sqrt(n)) nor, unless "
    "eps outweighs them, fall below the normal numbers (|x| from 1e-18; F64: 1e-153)"
)
_LAYER_DOMAIN = (
    "for rows whose sum and squares neither overflow (|x| up to 3e38/n, |x - mean| up to 1e19/sqrt(n); F64: 1e308/n, "
    "1e154/sqrt(n)) nor, unless eps outweighs them, fall below the normal numbers (|x - mean| from 1e-18; F64: 1e-153)"
)
_GRADIENT = ", and products with g that do not overflow"

STRICT_ROPE = _bounded(
    rope, "Two products and one addition an element, each rounded in F32 (F64 for F64), then the output type."
)
"""ROPE on any backend. Bound: ``row_bounds.rope``. Left out: products that overflow."""

STRICT_SOFTMAX = _bounded(
    softmax,
    "Maximum, strict exp of the unrounded difference, compensated sum, one reciprocal, one product an element.",
)
"""SOFTMAX_LAST_DIM on any backend. Bound: ``row_bounds.softmax``. Left out: subnormals on a device that flushes
them.
"""

STRICT_SOFTMAX_BACKWARD = _bounded(
    softmax_backward, "Compensated sum of the products g*y, one difference, one product; F32 (F64 for F64)."
)
"""SOFTMAX_LAST_DIM_BACKWARD on any backend. Bound: ``row_bounds.softmax_backward``. Left out: products that
overflow.
"""

STRICT_CROSS_ENTROPY = _bounded(
    cross_entropy(DType.F64),
    "Maximum, strict exp and log, compensated sums of columns and of rows, all in F64 whatever the logits; one "
    "rounding to F32.",
)
"""FUSED_SOFTMAX_CROSS_ENTROPY on any backend with F64. Bound: ``row_bounds.cross_entropy`` of F64. Nothing left out."""

CROSS_ENTROPY_IN_F32 = PrecisionGuarantee(
    True,
    bound=cross_entropy(DType.F32),
    batch_invariant=True,
    notes="The same in F32, for devices without F64; not the canonical algorithm.",
)
"""FUSED_SOFTMAX_CROSS_ENTROPY on devices without F64. Bound: ``row_bounds.cross_entropy`` of F32."""

STRICT_CROSS_ENTROPY_BACKWARD = _bounded(
    cross_entropy_backward,
    "Softmax as the op computes it, one difference, one factor a row, one product; F32 (F64 for F64).",
)
"""The gradient of FUSED_SOFTMAX_CROSS_ENTROPY on any backend. Bound: ``row_bounds.cross_entropy_backward``."""

STRICT_RMS_NORM = _bounded(
    rms_norm,
    "Compensated sum of squares, strict reciprocal root, products; F32 (F64 for F64).",
    _RMS_DOMAIN,
)
"""RMS_NORM_LAST_DIM on any backend. Bound: ``row_bounds.rms_norm``. Left out: squares that overflow or vanish."""

STRICT_LAYER_NORM = _bounded(
    layer_norm,
    "Two passes with compensated sums, strict reciprocal root; F32 (F64 for F64).",
    _LAYER_DOMAIN,
)
"""LAYER_NORM_LAST_DIM on any backend. Bound: ``row_bounds.layer_norm``. Left out: squares that overflow or
vanish.
"""

STRICT_RMS_NORM_BACKWARD = _bounded(
    rms_norm_backward,
    "The norm recomputed as the forward does, one more compensated sum; F32 (F64 for F64).",
    _RMS_DOMAIN + _GRADIENT,
)
"""RMS_NORM_LAST_DIM_BACKWARD on any backend. Bound: ``row_bounds.rms_norm_backward``. Left out: what the forward
leaves out.
"""

STRICT_LAYER_NORM_BACKWARD = _bounded(
    layer_norm_backward,
    "The norm recomputed as the forward does, two more compensated sums; F32 (F64 for F64).",
    _LAYER_DOMAIN + _GRADIENT,
)
"""LAYER_NORM_LAST_DIM_BACKWARD on any backend. Bound: ``row_bounds.layer_norm_backward``. Left out: what the
forward leaves out.
"""
