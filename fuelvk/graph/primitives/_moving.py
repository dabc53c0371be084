"""What the movement primitives share: entries, index inputs, and values that a dtype must hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fuelvk.base.dtypes import INDICES, DType
from fuelvk.base.errors import DTypeError, IndexOutOfRangeError, ParameterError
from fuelvk.base.shapes import normalize_axis
from fuelvk.graph import rules
from fuelvk.graph.ir import Value
from fuelvk.graph.samples import SampleInputs, ones
from fuelvk.graph.types import (
    Arg,
    Backward,
    DTypeRule,
    DTypes,
    ErrorSample,
    Family,
    Param,
    Params,
    PrimitiveEntry,
    PrimitiveId,
    ShapeRule,
    ValueCheck,
)

ALL = tuple(DType)
Gradients = tuple[Value | None, ...]
Outputs = tuple[Value, ...]
Rng = np.random.Generator
ErrorInputs = Callable[[], Iterable[ErrorSample]]


def moving(
    name: str,
    args: Sequence[str | Arg],
    params: tuple[Param, ...],
    shape_rule: ShapeRule,
    backward: Backward,
    samples: SampleInputs,
    errors: ErrorInputs | None,
    doc: str,
    *,
    dtype_rule: DTypeRule | None = None,
    dtypes: tuple[tuple[DType, ...], ...] = rules.rows(ALL, 1),
    **more: Any,
) -> PrimitiveEntry:
    """Returns the entry of an op that moves elements of any dtype; its inputs share one by default."""
    inputs = tuple(Arg(a) if isinstance(a, str) else a for a in args)
    return PrimitiveEntry(
        id=PrimitiveId(name),
        family=Family.MOVEMENT,
        args=inputs,
        params=params,
        shape_rule=shape_rule,
        dtype_rule=dtype_rule or rules.uniform(name, tuple(a.name for a in inputs), ALL),
        dtypes=dtypes,
        backward=backward,
        sample_inputs=samples,
        error_inputs=errors,
        doc=doc,
        **more,
    )


# --- indices ----------------------------------------------------------------------------------------------------

INDEXED = tuple((d, i, d) for d in ALL for i in INDICES)


def indexed_dtype(op: str) -> DTypeRule:
    """Returns the rule of ``(x, indices)``: the result has the dtype of x, indices are whole numbers."""

    def rule(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
        rules.need_dtype(op, "indices", dtypes[1], INDICES)
        assert dtypes[0] is not None
        return (dtypes[0],)

    return rule


def indices_inside(op: str) -> ValueCheck:
    """Returns the check of ``(x, indices; axis)`` on host arrays."""

    def check(inputs: Sequence[Any], params: Params) -> None:
        x, indices = inputs
        axis = normalize_axis(params["axis"], x.ndim, op)
        refuse_outside(op, indices, x.shape[axis], axis)

    return check


def refuse_outside(op: str, indices: np.ndarray[Any, Any], extent: int, axis: int) -> None:
    """Raises IndexOutOfRangeError for the first index outside [0, extent), with its place."""
    if not indices.size or (indices.min() >= 0 and indices.max() < extent):
        return
    place = tuple(int(i) for i in np.argwhere((indices < 0) | (indices >= extent))[0])
    raise IndexOutOfRangeError(
        f"{op}: an index is out of range of axis {axis}",
        seen=f"indices{list(place)} is {indices[place]}",
        allowed=f"0 to {extent - 1}" if extent else "none, the axis is empty",
    )


def index_errors(op: str, good: np.ndarray[Any, Any]) -> Iterable[ErrorSample]:
    """Yields the refusals of ``(x[3, 4], indices; axis=0)`` that all such ops share."""
    x = ones((3, 4))
    yield ErrorSample((x, good), {}, ParameterError, f"{op} needs parameter axis", "no_axis")
    for axis in (2, -3):
        yield ErrorSample(
            (x, good), {"axis": axis}, ParameterError, f"{op}.*axis out of range", f"axis_{axis}"
        )
    yield ErrorSample((x, ones(good.shape)), {"axis": 0}, DTypeError, "indices is f32", "float_indices")
    for bad in (-1, 3, 2**31 - 1, 2**32):
        indices = good.astype(np.int64)
        indices.reshape(-1)[1] = bad
        match = rf"{op}: an index is out of range of axis 0.*\[.*1\] is {bad}.*0 to 2"
        yield ErrorSample((x, indices), {"axis": 0}, IndexOutOfRangeError, match, f"index_{bad}")


# --- values -----------------------------------------------------------------------------------------------------


def need_held(op: str, dtype: DType | None, value: float) -> None:
    """Refuses a value that ``dtype`` does not hold; floats round any value."""
    assert dtype is not None
    if dtype.is_float:
        return
    low, high = 0, 1
    if dtype is not DType.BOOL:
        info = np.iinfo(dtype.numpy)
        low, high = int(info.min), int(info.max)
    if not (math.isfinite(value) and value == int(value) and low <= value <= high):
        raise ParameterError(
            f"{op}: {dtype.key} does not hold this value",
            seen=value,
            allowed=f"an integer from {low} to {high}",
        )
