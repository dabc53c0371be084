"""Shape rules, dtype rules, parameter checks and gradient helpers that many ops share.

A rule's first argument follows the op's ``args``; an optional input that was left out is None there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuelvk.base.dtypes import HALVES, DType
from fuelvk.base.errors import DTypeError, ShapeError
from fuelvk.base.shapes import Shape, broadcast_shapes, normalize_axes
from fuelvk.graph.ir import Builder, Node, Value
from fuelvk.graph.types import DTypeRule, DTypes, Params, ShapeRule, Shapes

# --- shapes -----------------------------------------------------------------------------------------------------


def given(shape: Shape | None) -> Shape:
    """Returns a shape that ``bind`` has made sure is there."""
    assert shape is not None
    return shape


def like_first(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    """The result has the shape of the first input."""
    return (given(shapes[0]),)


def broadcast(op: str) -> ShapeRule:
    """Returns the rule of inputs of equal standing: NumPy's broadcasting."""

    def rule(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
        try:
            return (broadcast_shapes(*(given(s) for s in shapes)),)
        except ShapeError as error:
            raise ShapeError(f"{op}: {error.message}", seen=error.seen, allowed=error.allowed) from None

    return rule


def need_rank(op: str, arg: str, shape: Shape, least: int, most: int | None = None) -> None:
    """Refuses a shape whose rank is not in ``least`` to ``most`` (None: any above)."""
    if len(shape) < least or (most is not None and len(shape) > most):
        allowed = (
            f"{least}" if most == least else f"{least} or more" if most is None else f"{least} to {most}"
        )
        raise ShapeError(f"{op}: {arg} has the wrong rank", seen=f"{arg}{shape}", allowed=f"rank {allowed}")


def need_shape(op: str, arg: str, shape: Shape | None, expected: Shape, why: str) -> None:
    """Refuses an input that is given and has not exactly the expected shape."""
    if shape is not None and shape != expected:
        raise ShapeError(
            f"{op}: {arg} has the wrong shape", seen=f"{arg}{shape}", allowed=f"{arg}{expected}, {why}"
        )


def matmul_shape(op: str, a: Shape, b: Shape) -> Shape:
    """Returns NumPy's shape of ``a @ b`` (either may be 1-d); raises ShapeError."""
    need_rank(op, "a", a, 1)
    need_rank(op, "b", b, 1)
    a2 = a if len(a) > 1 else (1, *a)
    b2 = b if len(b) > 1 else (*b, 1)
    if a2[-1] != b2[-2]:
        raise ShapeError(
            f"{op}: the contracted axes differ",
            seen=f"a{a} and b{b}",
            allowed="as many columns of a as rows of b",
        )
    try:
        batch = broadcast_shapes(a2[:-2], b2[:-2])
    except ShapeError:
        raise ShapeError(
            f"{op}: the batch axes do not broadcast", seen=f"a{a} and b{b}", allowed="equal extents or 1"
        ) from None
    return (*batch, *(a2[-2:-1] if len(a) > 1 else ()), *(b2[-1:] if len(b) > 1 else ()))


# --- dtypes -----------------------------------------------------------------------------------------------------


def uniform(
    op: str, names: Sequence[str], allowed: Sequence[DType], result: DType | None = None
) -> DTypeRule:
    """Returns the rule of operands that share one dtype out of ``allowed``; the result has it too, or
    ``result``.

    With more inputs than names (a variadic op) the last name is numbered.
    """

    def rule(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
        first, first_name = None, ""
        for index, dtype in enumerate(dtypes):
            if dtype is None:
                continue
            name = names[index] if len(dtypes) <= len(names) else f"{names[-1]}[{index}]"
            if first is None:
                first, first_name = dtype, name
                need_dtype(op, name, dtype, allowed)
            elif dtype is not first:
                raise DTypeError(
                    f"{op}: operands of one op have one dtype",
                    seen=f"{first_name} is {first.key} and {name} is {dtype.key}",
                    allowed=f"{name} as {first.key}",
                    hint="cast one of them",
                )
        assert first is not None
        return (result or first,)

    return rule


def need_dtype(op: str, arg: str, dtype: DType | None, allowed: Sequence[DType]) -> None:
    """Refuses an input that is given and has none of the ``allowed`` dtypes."""
    if dtype is not None and dtype not in allowed:
        raise DTypeError(
            f"{op} does not take this dtype",
            seen=f"{arg} is {dtype.key}",
            allowed=", ".join(d.key for d in allowed),
            hint="cast it first",
        )


def rows(dtypes: Sequence[DType], count: int, result: DType | None = None) -> tuple[tuple[DType, ...], ...]:
    """Returns one dtype tuple per dtype: ``count`` times itself, then the result's."""
    return tuple((d,) * count + (result or d,) for d in dtypes)


# --- parameters -------------------------------------------------------------------------------------------------


def not_negative(value: float) -> str | None:
    """Parameter check: refuses negative numbers and NaN."""
    return None if value >= 0 else "a number >= 0"


def finite_not_negative(value: float) -> str | None:
    """Parameter check: refuses negative, infinite and NaN."""
    return None if 0 <= value < math.inf else "a finite number >= 0"


def not_nan(value: float) -> str | None:
    """Parameter check: refuses NaN."""
    return "a number that is not NaN" if math.isnan(value) else None


# --- what patterns look at --------------------------------------------------------------------------------------


def last_axis_kept(node: Node) -> bool:
    """True for a reduction over just the last axis with keepdims, however the axis was written."""
    source = node.inputs[0]
    if source is None or not node.params["keepdims"] or source.ndim == 0:
        return False
    return normalize_axes(node.params["axes"], source.ndim) == (source.ndim - 1,)


# --- building graphs --------------------------------------------------------------------------------------------


def wide(g: Builder, value: Value) -> Value:
    """Returns ``value`` in its accumulator type, so that what follows rounds there and not in a 16-bit
    type.
    """
    result: Value = g.cast(value, dtype=value.dtype.accumulator) if value.dtype in HALVES else value
    return result


def narrow(g: Builder, value: Value, dtype: DType) -> Value:
    """Returns ``value`` as ``dtype``, itself when it is that already."""
    result: Value = value if value.dtype is dtype else g.cast(value, dtype=dtype)
    return result


def full(g: Builder, number: float, shape: Shape, dtype: DType) -> Value:
    """Returns a constant of ``shape``: one element, broadcast as a view."""
    result: Value = g.broadcast_to(g.constant(number, dtype), shape=shape)
    return result


def reshaped(g: Builder, value: Value, shape: Sequence[int]) -> Value:
    """Returns ``value`` under ``shape``, itself when it has it already."""
    result: Value = value if value.shape == tuple(shape) else g.reshape(value, shape=tuple(shape))
    return result


def broadcasted(g: Builder, value: Value, shape: Shape) -> Value:
    """Returns ``value`` broadcast to ``shape``, itself when it has it already."""
    result: Value = value if value.shape == shape else g.broadcast_to(value, shape=shape)
    return result


def sum_to(g: Builder, grad: Value, shape: Shape) -> Value:
    """Returns a gradient summed over the axes along which an input of ``shape`` was broadcast."""
    if grad.shape == shape:
        return grad
    lead = grad.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(shape) if n == 1 and grad.shape[lead + i] != 1
    )
    summed = narrow(g, g.sum(wide(g, grad), axes=axes), grad.dtype) if axes else grad
    return reshaped(g, summed, shape)


def transpose_last(g: Builder, value: Value) -> Value:
    """Returns ``value`` with its last two axes exchanged, as a view."""
    n = value.ndim
    result: Value = g.transpose(value, axes=(*range(n - 2), n - 1, n - 2))
    return result


def matmul_gradients(g: Builder, a: Value, b: Value, grad: Value) -> tuple[Value, Value]:
    """Returns the gradients of ``a @ b`` by NumPy's shapes: ``g b^T`` and ``a^T g``, summed over broadcast
    axes.
    """
    a2 = reshaped(g, a, (1, *a.shape)) if a.ndim == 1 else a
    b2 = reshaped(g, b, (*b.shape, 1)) if b.ndim == 1 else b
    batch = broadcast_shapes(a2.shape[:-2], b2.shape[:-2])
    g2 = reshaped(g, grad, (*batch, a2.shape[-2], b2.shape[-1]))
    da = sum_to(g, g.matmul(g2, transpose_last(g, b2)), a2.shape)
    db = sum_to(g, g.matmul(transpose_last(g, a2), g2), b2.shape)
    return reshaped(g, da, a.shape), reshaped(g, db, b.shape)
