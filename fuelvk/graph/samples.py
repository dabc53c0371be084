"""Arrays that ops are tested with: random, special and odd-sized, for every dtype.

Each generator is deterministic for a given ``rng``. Sizes stay small: every implementation runs every sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import DTypeError, ShapeError
from fuelvk.graph.types import ErrorSample, Sample

Array = np.ndarray[Any, Any]
Rng = np.random.Generator
SampleInputs = Callable[[tuple[DType, ...], Rng], Iterable[Sample]]

# Around one tile of 64, one row of 1024, and a prime.
TILE_EDGES = (1, 7, 63, 64, 65, 127, 1025)


def normal(rng: Rng, shape: Sequence[int], dtype: DType, *, scale: float = 1.0, shift: float = 0.0) -> Array:
    """Returns random values: normal for floats, small integers of both signs, or bits for BOOL."""
    if dtype is DType.BOOL:
        return np.asarray(rng.integers(0, 2, shape), np.bool_)
    if dtype.is_integer:
        low = 0 if dtype in (DType.U8, DType.U32) else -100
        return np.asarray(rng.integers(low, 101, shape), dtype.numpy)
    return np.asarray(rng.standard_normal(shape) * scale + shift).astype(dtype.numpy)


def positive(rng: Rng, shape: Sequence[int], dtype: DType) -> Array:
    """Returns positive values over a few powers of two; subject to no cancellation."""
    return np.exp2(rng.uniform(-4, 4, shape)).astype(dtype.numpy)


def specials(dtype: DType) -> Array:
    """Returns what arithmetic trips over: zeros of both signs, subnormals, extremes, infinities, NaN; integer
    ends.
    """
    if dtype is DType.BOOL:
        return np.array([False, True])
    if dtype.is_integer:
        ends = np.iinfo(dtype.numpy)
        return np.array([0, 1, 2, 3, ends.max, ends.max - 1, ends.min, ends.min + 1], dtype=dtype.numpy)
    limits: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    tiny, least, most = float(limits.smallest_normal), float(limits.smallest_subnormal), float(limits.max)
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 3.0, 10.0, -20.0, 88.5, -104.0]
    values += [least, -least, tiny, -tiny, tiny - least, 3 * least, most, -most, most / 2]
    values += [float("nan")] if dtype is DType.F8E4M3 else [float("inf"), float("-inf"), float("nan")]
    with np.errstate(over="ignore"):
        return np.array(values, dtype=np.float64).astype(dtype.numpy)


def pairs_of_specials(dtype: DType) -> tuple[Array, Array]:
    """Returns every pair of the special values, as two arrays of one shape."""
    values = specials(dtype)
    return np.repeat(values, values.size), np.tile(values, values.size)


def unary_samples(*, domain: tuple[float, float] | None = None) -> SampleInputs:
    """Returns the samples of an op of one input and no parameters; ``domain`` bounds a uniform sweep of
    floats.
    """

    def samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
        dtype = dtypes[0]
        for shape in ((), (0,), (1,), (3, 5), (2, 0, 3), (63,), (257,), (1025,)):
            yield Sample((normal(rng, shape, dtype, scale=3.0),), {}, f"normal-{label(shape)}")
        yield Sample((specials(dtype),), {}, "specials")
        if domain is not None:
            yield Sample((rng.uniform(*domain, 512).astype(dtype.numpy),), {}, "sweep")
            yield Sample((normal(rng, (300,), dtype, scale=1e-3),), {}, "near_zero")

    return samples


def function_samples(*, domain: tuple[float, float], shift: float = 0.0) -> SampleInputs:
    """Returns the samples of an elementary function: ``domain`` is where it is steep, ``shift`` moves the random ones.

    A 16-bit type is tried whole. Of a wider one every exponent is, with both signs and random digits. Subnormal numbers
    are samples of their own, since devices that flush them leave those out.
    """

    def samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
        dtype = dtypes[0]
        for shape in ((), (0,), (3, 5), (2, 0, 3), (257,)):
            yield Sample((normal(rng, shape, dtype, scale=3.0, shift=shift),), {}, f"normal-{label(shape)}")
        yield Sample((specials(dtype),), {}, "specials")
        yield Sample((rng.uniform(*domain, 2048).astype(dtype.numpy),), {}, "sweep")
        normals, subnormals = _every_exponent(rng, dtype)
        yield Sample((normals,), {}, "every_input" if dtype.size == 2 else "every_exponent")
        yield Sample((subnormals,), {}, "subnormals")
        if dtype.size > 2:
            yield Sample((normal(rng, (300,), dtype, scale=1e-3, shift=float(shift > 0)),), {}, "near_a_root")

    return samples


def _every_exponent(rng: Rng, dtype: DType) -> tuple[Array, Array]:
    """Returns every normal number, infinity and NaN of a 16-bit type, or some of every exponent; the subnormal ones."""
    fraction = dtype.mantissa_bits - 1
    width = dtype.size * 8
    exponents = np.arange(1 << (width - fraction), dtype=np.uint64) << np.uint64(fraction)
    if dtype.size == 2:
        bits = np.arange(1 << width, dtype=np.uint64)
    else:
        bits = exponents | rng.integers(0, 1 << fraction, exponents.size, dtype=np.uint64)
    largest = np.uint64(((1 << (width - 1)) - 1) ^ ((1 << fraction) - 1))
    subnormal = bits & largest == 0
    tiny = bits[subnormal]
    if dtype.size > 2:
        low = rng.integers(1, 1 << fraction, 60, dtype=np.uint64) >> np.arange(
            60, dtype=np.uint64
        ) % np.uint64(fraction)
        tiny = np.concatenate([tiny, low, low | np.uint64(1 << (width - 1))])
    return tuple(b.astype(f"u{dtype.size}").view(dtype.numpy) for b in (bits[~subnormal], tiny))


def binary_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    """Yields the samples of an op of two inputs of one dtype that broadcast."""
    dtype = dtypes[0]
    for left, right in BROADCASTS:
        a, b = normal(rng, left, dtype, scale=3.0), normal(rng, right, dtype, scale=3.0)
        yield Sample((a, b), {}, f"broadcast-{label(left)}-{label(right)}")
    yield Sample(pairs_of_specials(dtype), {}, "specials-all_pairs")
    ties = normal(rng, (130,), dtype)
    yield Sample((ties, np.where(rng.integers(0, 2, 130) > 0, ties, ties[::-1])), {}, "ties")


BROADCASTS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()),
    ((0,), (1,)),
    ((1,), (1,)),
    ((65,), ()),
    ((), (7,)),
    ((3, 5), (5,)),
    ((3, 1), (1, 7)),
    ((2, 1, 4), (3, 1)),
    ((2, 3, 1, 5), (2, 1, 4, 1)),
    ((1025,), (1025,)),
    ((4, 0), (1, 1)),
    ((33, 31), (33, 31)),
)


def label(shape: Sequence[int]) -> str:
    """Returns a shape as part of a label: ``2x3``, or ``scalar``."""
    return "x".join(map(str, shape)) if shape else "scalar"


def ones(shape: Sequence[int], dtype: DType = DType.F32) -> Array:
    """Returns ones, for refusals where the values do not matter."""
    return np.ones(shape, dtype.numpy)


def binary_errors(op: str) -> Callable[[], Iterable[ErrorSample]]:
    """Returns the refusals every op of two broadcasting inputs shares."""

    def errors() -> Iterable[ErrorSample]:
        yield ErrorSample((ones((2, 3)), ones((2, 4))), {}, ShapeError, f"{op}.*broadcast", "shapes")
        mixed = (ones((2,)), ones((2,), DType.F64))
        yield ErrorSample(mixed, {}, DTypeError, f"{op}.*one dtype.*f32.*f64", "mixed_dtypes")
        flags = (ones((2,), DType.BOOL), ones((2,), DType.BOOL))
        yield ErrorSample(flags, {}, DTypeError, f"{op}.*bool", "bool")

    return errors


def unary_errors(op: str) -> Callable[[], Iterable[ErrorSample]]:
    """Returns the refusals every op of one number input shares."""

    def errors() -> Iterable[ErrorSample]:
        yield ErrorSample((ones((2,), DType.BOOL),), {}, DTypeError, f"{op}.*bool", "bool")

    return errors
