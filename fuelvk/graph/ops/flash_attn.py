"""FLASH_ATTN: scaled dot-product attention with grouped heads, masks, softcap and ALiBi (ops.md section
3).
"""

from __future__ import annotations

import math

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import normalize_axes
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Node, Value
from fuelvk.graph.ops._attention import MAX_HEAD_DIM, NAME, AttnParams, resolve
from fuelvk.graph.ops._attention_backward import PARAMS
from fuelvk.graph.ops._attention_graph import attention, attention_gradients
from fuelvk.graph.ops._attention_samples import error_inputs, sample_inputs
from fuelvk.graph.patterns import Capture, Match, P, Pattern, Scalar, Term
from fuelvk.graph.registry import FusedOps
from fuelvk.graph.types import Arg, DTypes, Family, FusedOpEntry, Params, Shapes, Values

__all__ = ["OP", "AttnParams", "resolve"]


_same = rules.uniform(NAME, ("q", "k", "v"), FLOATS)


def _shape(shapes: Shapes, params: Params) -> tuple[tuple[int, ...], ...]:
    resolve(shapes, params, has_k_lens=shapes[4] is not None)
    return (rules.given(shapes[0]),)


def _dtype(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
    result = _same(dtypes[:3], params)
    rules.need_dtype(NAME, "alibi_slopes", dtypes[3], (DType.F32,))
    rules.need_dtype(NAME, "k_lens", dtypes[4], (DType.U32,))
    return result


# --- what it replaces -------------------------------------------------------------------------------------------


def _swaps_last_two(node: Node) -> bool:
    source, axes = node.inputs[0], node.params["axes"]
    if source is None or source.ndim != 4 or axes is None:
        return False
    normalize_axes(axes, 4)
    return tuple(a % 4 for a in axes) == (0, 1, 3, 2)


def _alternatives() -> tuple[P, ...]:
    """Softmaxes are fused before attention (ids in order), so the pattern meets them as one node."""
    q, k, v = Capture("q"), Capture("k"), Capture("v")
    turned = P("transpose", k, when=_swaps_last_two)
    scale, divisor = Scalar("scale"), Scalar("divisor")
    scores: tuple[Term, ...] = (
        P("mul", P("matmul", q, turned), scale),
        P("div", P("matmul", q, turned), divisor),
        P("matmul", P("mul", q, scale), turned),
        P("matmul", P("div", q, divisor), turned),
        P("matmul", q, turned),
    )
    return tuple(P("matmul", P("softmax_last_dim", s), v) for s in scores)


def _build(match: Match) -> tuple[tuple[Value | None, ...], dict[str, object]] | None:
    q, k, v = (match.values[n] for n in "qkv")
    if q.ndim != 4 or k.ndim != 4 or k.shape != v.shape or q.dtype is not k.dtype:
        return None
    same = q.shape[0] == k.shape[0] and q.shape[3] == k.shape[3] and k.shape[1] in (1, q.shape[1])
    # With no key the primitives divide nothing by nothing where attention gives zeros.
    if not same or q.shape[3] > MAX_HEAD_DIM or 0 in q.shape or 0 in k.shape:
        return None
    divisor = match.scalars.get("divisor", 1.0)
    scale = match.scalars.get("scale", 1.0)
    if divisor == 0 or math.isnan(scale) or math.isnan(divisor):
        return None
    return (q, k, v, None, None), {"scale": scale / divisor}


# --- what it stands for -----------------------------------------------------------------------------------------


def _resolved(inputs: Values, params: Params) -> AttnParams:
    shapes = tuple(None if v is None else v.shape for v in inputs)
    return resolve(shapes, params, has_k_lens=inputs[4] is not None)


def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
    """Returns the formula in the accumulator type, rounded once at the end."""
    return (attention(g, inputs, _resolved(inputs, params)),)


def backward(
    g: Builder, inputs: Values, outputs: tuple[Value, ...], grads: Values, params: Params
) -> tuple[Value | None, ...]:
    """The three fused gradients; that of the slopes as primitives."""
    (dy,) = grads
    assert dy is not None
    q, k, v, slopes, lens = inputs
    given = (q, k, v, dy, slopes, lens)
    d_slopes = None
    if slopes is not None:
        d_slopes = attention_gradients(g, inputs, dy, _resolved(inputs, params))[3]
    return (
        g.flash_attn_backward_q(*given, **params),
        g.flash_attn_backward_k(*given, **params),
        g.flash_attn_backward_v(*given, **params),
        d_slopes,
        None,
    )


OP = FusedOpEntry(
    id=FusedOps.FLASH_ATTN,
    family=Family.ATTENTION,
    args=(Arg("q"), Arg("k"), Arg("v"), Arg("alibi_slopes", optional=True), Arg("k_lens", optional=True)),
    params=PARAMS,
    shape_rule=_shape,
    dtype_rule=_dtype,
    dtypes=tuple((d, d, d, DType.F32, DType.U32, d) for d in FLOATS),
    pattern=Pattern(_alternatives(), _build),
    decompose=decompose,
    backward=backward,
    sample_inputs=sample_inputs,
    error_inputs=error_inputs,
    doc=(
        "softmax(scale*q k^T, softcapped, plus ALiBi, over the kept keys) @ v for q[B,Hq,Sq,D], k and v[B,Hkv,Sk,D]; "
        "a fully masked row is zero; query head h reads kv head h // (Hq//Hkv); k_lens replaces k_len where given. "
        "causal keeps keys up to i + causal_offset for query i, by default k_len - Sq (with k_lens, k_lens[b] - Sq): "
        "the last query sees the last key."
    ),
)
