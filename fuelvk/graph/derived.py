"""Gradients by name: ``<op>_backward_<input>``, for ops whose gradient has no entry of its own.

``rope_backward_x(x, cos, sin, g)`` takes the op's inputs, then the gradient of its output. It has no kernels: its
canonical algorithm is the graph that the op's backward rule builds, the same that ``fv.grad`` runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import ParameterError
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.autograd import gradients
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.ir import apply as applied
from fuelvk.graph.types import (
    NOT_DIFFERENTIABLE,
    Arg,
    DTypes,
    Family,
    FusedOpEntry,
    OpEntry,
    Params,
    PrimitiveId,
    Shapes,
    Values,
)

_NAME = re.compile(r"(\w+)_backward_(\w+)")
GRADIENT = "g"
T = TypeVar("T")


def derived_gradient(name: str, find: Callable[[str], OpEntry | None]) -> FusedOpEntry | None:
    """Returns the entry called ``<op>_backward_<input>``, None where there is no such op, input or gradient."""
    match = _NAME.fullmatch(name)
    op = find(match[1]) if match else None
    if match is None or op is None or op.backward is NOT_DIFFERENTIABLE or op.args[-1].variadic:
        return None
    names = [a.name for a in op.args]
    if match[2] not in names or GRADIENT in names:
        return None
    return _entry(name, op, names.index(match[2]))


def _entry(name: str, op: OpEntry, index: int) -> FusedOpEntry:
    def shape_rule(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
        (result,) = op.shape_rule(shapes[:-1], params)
        rules.need_shape(name, GRADIENT, shapes[-1], result, f"the gradient of what {op.name} returns")
        return (_present(name, op, index, shapes[index]),)

    def dtype_rule(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
        (result,) = op.dtype_rule(dtypes[:-1], params)
        rules.need_dtype(name, GRADIENT, dtypes[-1], (result,))
        return (_present(name, op, index, dtypes[index]),)

    def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
        *own, grad = inputs
        value = _present(name, op, index, own[index])
        (output,) = applied(op, tuple(own), params)
        (found,) = gradients((output,), (grad,), (value,), g)
        return (found if found is not None else rules.full(g, 0.0, value.shape, value.dtype),)

    return FusedOpEntry(
        id=PrimitiveId(name),
        family=Family.BACKWARD,
        args=(*op.args, Arg(GRADIENT)),
        params=op.params,
        shape_rule=shape_rule,
        dtype_rule=dtype_rule,
        value_check=op.value_check,
        pattern=None,
        decompose=decompose,
        canonical_decomposition=True,
        doc=f"The gradient of {op.name} with respect to {op.args[index].name}, by the graph of its backward rule.",
    )


def _present(name: str, op: OpEntry, index: int, value: T | None) -> T:
    if value is None:
        raise ParameterError(
            f"{name}: there is no {op.args[index].name} to differentiate by", allowed=op.signature()
        )
    return value
