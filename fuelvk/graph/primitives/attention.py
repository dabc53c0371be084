"""All gradients of attention at once: what the three fused ops become where a graph asks for more than one."""

from __future__ import annotations

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.graph.autograd import by_decomposition
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.ops._attention_backward import (
    ARGS,
    JOINT,
    PARAMS,
    all_samples,
    dtype_of,
    error_samples,
    gradients,
    shapes_of,
)
from fuelvk.graph.types import DTypes, Family, Params, PrimitiveEntry, PrimitiveId, Shapes, Values


def _shape(shapes: Shapes, params: Params) -> tuple[tuple[int, ...], ...]:
    return shapes_of(JOINT, shapes, params)


def _dtype(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
    return (dtype_of(JOINT, dtypes, params),) * 3


def _parts(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
    dq, dk, dv = gradients(g, inputs, params)[:3]
    assert dq is not None
    assert dk is not None
    assert dv is not None
    return dq, dk, dv


def _backward(
    g: Builder, inputs: Values, outputs: tuple[Value, ...], grads: Values, params: Params
) -> tuple[Value | None, ...]:
    return by_decomposition(_parts, inputs, params, grads, g)


OPS = (
    PrimitiveEntry(
        id=PrimitiveId(JOINT),
        family=Family.ATTENTION,
        args=ARGS,
        params=PARAMS,
        shape_rule=_shape,
        dtype_rule=_dtype,
        dtypes=tuple((d, d, d, d, DType.F32, DType.U32, d, d, d) for d in FLOATS),
        backward=_backward,
        sample_inputs=all_samples,
        error_inputs=lambda: error_samples(JOINT),
        doc="dq, dk and dv of flash_attn in one computation of the probabilities; the bits of the three ops alone.",
    ),
)
