"""What the ops over images [.., H, W] share: parameters, extents of pooling windows, refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import ParameterError, ShapeError
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.ir import Value
from fuelvk.graph.samples import SampleInputs
from fuelvk.graph.types import (
    NOT_DIFFERENTIABLE,
    Arg,
    Backward,
    ErrorSample,
    Family,
    NotDifferentiable,
    Param,
    Params,
    PrimitiveEntry,
    PrimitiveId,
    ShapeRule,
)

Gradients = tuple[Value | None, ...]
Outputs = tuple[Value, ...]
Rng = np.random.Generator


def at_least_one(pair: tuple[int, int]) -> str | None:
    """Parameter check of kernels, strides and dilations."""
    return None if min(pair) >= 1 else "integers >= 1"


def not_negative(pair: tuple[int, int]) -> str | None:
    """Parameter check of paddings and sizes."""
    return None if min(pair) >= 0 else "integers >= 0"


def windows(params: Params) -> tuple[tuple[int, int, int, int], ...]:
    """Returns (kernel, stride, padding, dilation) of the rows, then of the columns."""
    kernel = params["kernel"]
    strides = kernel if params["stride"] is None else params["stride"]
    dilation = params.get("dilation", (1, 1))
    return tuple(zip(kernel, strides, params["padding"], dilation, strict=True))


def pooled_extent(extent: int, window: tuple[int, int, int, int], ceil_mode: bool) -> int:
    """Returns how many windows there are along an axis; 0 or less for none.

    ``(n + 2p - d*(k-1) - 1)/s + 1``, rounded down, or up in ceil mode, where a window that would start in the padding
    behind the input is dropped.
    """
    kernel, stride, padding, dilation = window
    rest = extent + 2 * padding - dilation * (kernel - 1) - 1
    count = (-(-rest // stride) if ceil_mode else rest // stride) + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= extent + padding else count


def _reaches(extent: int, window: tuple[int, int, int, int], count: int) -> bool:
    """Returns whether every window along an axis holds an element of the input."""
    kernel, stride, padding, dilation = window
    last = (count - 1) * stride - padding
    for start in range(-padding, min(0, last + 1), stride):
        first = start - start // dilation * dilation  # the first tap at or behind 0
        if first >= extent or first > start + (kernel - 1) * dilation:
            return False
    return last < extent


def pooled_shape(op: str, x: Shape, params: Params) -> Shape:
    """Returns the shape of ``x`` [.., H, W] after pooling; refuses windows that hold nothing of it."""
    rules.need_rank(op, "x", x, 2)
    extents = []
    for extent, window in zip(x[-2:], windows(params), strict=True):
        count = pooled_extent(extent, window, params["ceil_mode"])
        if count < 1 or extent < 1:
            raise ShapeError(
                f"{op}: the kernel is larger than the padded input",
                seen=f"x{x}, kernel {params['kernel']}, padding {params['padding']}",
                allowed="at least one window, over an input that is not empty",
            )
        if not _reaches(extent, window, count):
            raise ParameterError(
                f"{op}: a window lies in the padding altogether",
                seen=f"x{x}, kernel {params['kernel']}, padding {params['padding']}",
                allowed="windows that each hold an element of x",
            )
        extents.append(count)
    return (*x[:-2], *extents)


def entry(
    name: str,
    args: tuple[str, ...],
    params: tuple[Param, ...],
    shape_rule: ShapeRule,
    samples: SampleInputs,
    errors: Callable[[], Iterable[ErrorSample]],
    doc: str,
    *,
    backward: Backward | NotDifferentiable = NOT_DIFFERENTIABLE,
    family: Family = Family.NETWORK,
    **more: Any,
) -> PrimitiveEntry:
    """Returns the entry of an op whose inputs and result share one float type."""
    return PrimitiveEntry(
        id=PrimitiveId(name),
        family=family,
        args=tuple(Arg(a) for a in args),
        params=params,
        shape_rule=shape_rule,
        dtype_rule=rules.uniform(name, args, FLOATS),
        dtypes=rules.rows(FLOATS, len(args)),
        backward=backward,
        sample_inputs=samples,
        error_inputs=errors,
        doc=doc,
        **more,
    )


def distinct(rng: Rng, shape: Shape, dtype: DType) -> np.ndarray[Any, Any]:
    """Returns values no two of which are equal where the type can tell them apart, in random order."""
    count = int(np.prod(shape, dtype=np.int64))
    values = (rng.permutation(count) - count / 2) / 16
    return np.asarray(values.reshape(shape)).astype(dtype.numpy)
