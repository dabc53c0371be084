"""Conversion between dtypes (ops.md section 1: one rounding, to nearest even, whatever the pair)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fuelvk.base.dtypes import CASTABLE, DType
from fuelvk.base.errors import DTypeError, ParameterError
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.samples import Array, normal, ones, specials
from fuelvk.graph.types import (
    Arg,
    DTypes,
    ErrorSample,
    Family,
    Param,
    Params,
    PrimitiveEntry,
    PrimitiveId,
    Sample,
    Values,
)

F8E4M3 = DType.F8E4M3
F8_PEERS = (DType.F32, DType.F16, DType.BF16)
PAIRS = (
    *((a, b) for a in CASTABLE for b in CASTABLE),
    *((F8E4M3, b) for b in F8_PEERS),
    *((a, F8E4M3) for a in F8_PEERS),
)
_PAIRS = frozenset(PAIRS)


def _dtype(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
    source, target = dtypes[0], params["dtype"]
    if (source, target) not in _PAIRS:
        assert source is not None
        allowed = [b.key for a, b in PAIRS if a is source]
        raise DTypeError(
            "cast: no conversion between these dtypes",
            asked=f"{source.key} to {target.key}",
            allowed=", ".join(allowed),
            hint="go through f32 (numbers that f32 does not hold are then rounded twice)",
        )
    return (target,)


def _backward(
    g: Builder, inputs: Values, outputs: tuple[Value, ...], grads: Values, params: Params
) -> tuple[Value | None, ...]:
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    return (rules.narrow(g, dy, x.dtype),) if x.dtype.is_float and outputs[0].dtype.is_float else (None,)


def _ties(source: DType) -> Array:
    """Values half way between neighbours of the narrower types, one step beside them, and integer ends."""
    values = [1.0 + 2.0**-k for k in (4, 5, 8, 9, 11, 12, 24, 25)]
    values += [1.0 + 3 * 2.0**-k for k in (5, 9, 12, 25)] + [
        1.0 + 2.0**-8 + 2.0**-20,
        1.0 + 2.0**-11 + 2.0**-22,
    ]
    values += [
        448.0,
        463.9,
        464.0,
        464.1,
        479.9,
        500.0,
        65504.0,
        65519.0,
        65520.0,
        2.0**-9,
        2.0**-10,
        3 * 2.0**-11,
    ]
    values += [0.5, 1.5, 2.5, 126.5, 127.5, 128.0, 255.5, 256.0, 32767.5, 32768.0, 65536.5]
    values += [2.0**31 - 1, 2.0**31, 2.0**32 - 1, 2.0**32, 2.0**63, 2.0**64, 2.0**24 + 1, 2.0**53 + 2]
    values += [
        2.0**-24,
        2.0**-25,
        1.5 * 2.0**-25,
        2.0**-133,
        2.0**-134,
        2.0**-149,
        2.0**-150,
        1.1 * 2.0**-150,
    ]
    both = np.array(values + [-v for v in values])
    limit = 240.0 if source is F8E4M3 else np.inf
    return np.asarray(both[np.abs(both) <= limit])


def _samples(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    source, target = dtypes
    params = {"dtype": target}
    yield Sample((specials(source),), params, "specials")
    yield Sample((normal(rng, (3, 43), source, scale=50.0),), params, "normal-3x43")
    yield Sample((normal(rng, (0, 3), source),), params, "empty")
    if source.is_float:
        with np.errstate(over="ignore"):
            yield Sample((_ties(source).astype(source.numpy),), params, "ties_and_ends")
    elif source.is_integer:
        ends = np.iinfo(source.numpy)
        bits = rng.integers(ends.min, ends.max, 257, dtype=source.numpy, endpoint=True)
        near = np.array(
            [(1 << 24) + 1, (1 << 53) + 1, (1 << 62) + (1 << 38) + 1, 2049, 257, 259], dtype=np.int64
        )
        yield Sample((bits,), params, "whole_range")
        yield Sample((near[near <= ends.max].astype(source.numpy),), params, "between_floats")


def _errors() -> Iterable[ErrorSample]:
    yield ErrorSample((ones((2,)),), {}, ParameterError, "cast needs parameter dtype", "no_dtype")
    yield ErrorSample((ones((2,)),), {"dtype": "f12"}, DTypeError, "unknown dtype.*f12", "unknown_dtype")
    x = ones((2,), DType.I32)
    yield ErrorSample((x,), {"dtype": F8E4M3}, DTypeError, "cast.*i32 to f8e4m3", "no_such_pair")


OPS = (
    PrimitiveEntry(
        id=PrimitiveId("cast"),
        family=Family.CAST,
        args=(Arg("x"),),
        params=(Param("dtype", "dtype"),),
        shape_rule=rules.like_first,
        dtype_rule=_dtype,
        dtypes=PAIRS,
        backward=_backward,
        sample_inputs=_samples,
        error_inputs=_errors,
        doc="x as another dtype: one rounding to nearest even; floats to integers truncate and saturate, NaN gives 0.",
    ),
)
