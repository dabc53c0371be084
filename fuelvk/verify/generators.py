"""Named inputs that arithmetic trips over. Each is deterministic for a given generator of random numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from fuelvk.base.dtypes import DType

Array = np.ndarray[Any, Any]
Rng = np.random.Generator
Operands = tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """Ends of a float type: exponents of the least and the largest normal number, stored mantissa bits."""

    least: int
    most: int
    stored: int

    @classmethod
    def of(cls, dtype: DType) -> Limits:
        found: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
        return cls(int(found.minexp), int(np.frexp(float(found.max))[1]) - 1, dtype.mantissa_bits - 1)


def values(dtype: DType, sign: Array, exponent: Array, fraction: Array) -> Array:
    """Returns (-1)^sign * (1 + fraction) * 2^exponent in ``dtype``; fraction in [0, 1) as stored bits."""
    limits = Limits.of(dtype)
    mantissa = (1 + np.asarray(fraction, np.longdouble) / 2.0**limits.stored) * np.where(sign, -1, 1)
    wide = np.ldexp(mantissa, np.asarray(exponent, np.int64).astype(np.int32))
    narrowed: Array = wide.astype(np.float64 if dtype is DType.F64 else np.float32).astype(dtype.numpy)
    return narrowed


def _random(rng: Rng, dtype: DType, count: int, low: int, high: int) -> Array:
    limits = Limits.of(dtype)
    fraction = rng.integers(0, 1 << limits.stored, count, dtype=np.int64)
    return values(dtype, rng.integers(0, 2, count) > 0, rng.integers(low, high + 1, count), fraction)


def exponents(rng: Rng, dtype: DType, operands: int, count: int) -> Operands:
    """Every exponent equally often, any sign and mantissa; integers of every length."""
    if dtype.is_integer:
        return tuple(_integers(rng, dtype, count) for _ in range(operands))
    limits = Limits.of(dtype)
    return tuple(_random(rng, dtype, count, limits.least, limits.most - 1) for _ in range(operands))


def _integers(rng: Rng, dtype: DType, count: int) -> Array:
    bits = 8 * dtype.size
    wide = rng.integers(0, 1 << 64, count, dtype=np.uint64)
    kept = wide >> rng.integers(64 - bits, 64, count).astype(np.uint64)
    return (kept & np.uint64((1 << bits) - 1)).astype(f"u{dtype.size}").view(dtype.numpy)


def moderate(rng: Rng, dtype: DType, operands: int, count: int) -> Operands:
    """Numbers between 1/16 and 16: nothing overflows or vanishes in sums and products of many."""
    return tuple(_random(rng, dtype, count, -4, 3) for _ in range(operands))


def cancellation(rng: Rng, dtype: DType, operands: int, count: int) -> Operands:
    """Operands that nearly cancel when added; of one operand, neighbours do."""
    limits = Limits.of(dtype)
    first = _random(rng, dtype, count, -4, 3)
    step = np.ldexp(1.0, -limits.stored) * rng.integers(-2, 3, count)
    second = (-first.astype(np.longdouble) * (1 + step)).astype(np.float64).astype(dtype.numpy)
    if operands == 1:
        mixed = first.copy()
        mixed[1::2] = (
            (-first[: count - count % 2 : 2].astype(np.longdouble) * (1 + step[1::2]))
            .astype(np.float64)
            .astype(dtype.numpy)
        )
        return (mixed,)
    return (first, second, *(_random(rng, dtype, count, -4, 3) for _ in range(operands - 2)))


def ties(rng: Rng, dtype: DType, operands: int, count: int) -> Operands:
    """Half-way cases: added, the second operand is half of the first one's last place; one operand lies half-way
    between two numbers of a 16-bit type, or of an 8-bit type when it has 16 bits itself.
    """
    limits = Limits.of(dtype)
    if operands == 1:
        kept = np.where(np.arange(count) % 2 == 0, 10, 7) if limits.stored > 10 else np.full(count, 3)
        place = limits.stored - kept - 1  # the bit after the last that is kept
        high = rng.integers(0, 1 << 62, count, dtype=np.int64) % (np.int64(1) << kept.astype(np.int64))
        fraction = ((high << 1) | 1) << place.astype(np.int64)
        return (values(dtype, rng.integers(0, 2, count) > 0, rng.integers(-6, 7, count), fraction),)
    exponent = rng.integers(max(-4, limits.least + limits.stored + 1), 4, count)
    fraction = rng.integers(0, 1 << limits.stored, count, dtype=np.int64)
    sign = rng.integers(0, 2, count) > 0
    first = values(dtype, sign, exponent, fraction)
    half = values(dtype, sign, exponent - limits.stored - 1, np.zeros(count))
    return (first, half, *(_random(rng, dtype, count, -4, 3) for _ in range(operands - 2)))


def subnormals(rng: Rng, dtype: DType, operands: int, count: int) -> Operands:
    """Numbers below the least normal one, of both signs, down to the smallest."""
    limits = Limits.of(dtype)

    def one() -> Array:
        steps = rng.integers(1, 1 << limits.stored, count, dtype=np.int64) >> rng.integers(
            0, limits.stored, count
        )
        wide = np.ldexp(np.longdouble(1) * np.maximum(steps, 1), limits.least - limits.stored)
        signed = wide * np.where(rng.integers(0, 2, count) > 0, -1, 1)
        narrowed: Array = signed.astype(np.float64).astype(dtype.numpy)
        return narrowed

    return tuple(one() for _ in range(operands))


def largest(rng: Rng, dtype: DType, operands: int, count: int) -> Operands:
    """The largest finite numbers of both signs; of integers both ends."""
    if dtype.is_integer:
        ends = np.iinfo(dtype.numpy)
        near = rng.integers(0, 4, (operands, count))
        at_top = rng.integers(0, 2, (operands, count)) > 0
        return tuple(
            np.where(t, ends.max - n.astype(object), ends.min + n.astype(object)).astype(dtype.numpy)
            for t, n in zip(at_top, near, strict=True)
        )
    limits = Limits.of(dtype)
    top = float(ml_dtypes.finfo(dtype.numpy).max)  # type: ignore[no-untyped-call]

    def one() -> Array:
        steps = rng.integers(0, 8, count) * np.ldexp(1.0, limits.most - limits.stored)
        signed: Array = (top - steps) * np.where(rng.integers(0, 2, count) > 0, -1, 1)
        return signed.astype(dtype.numpy)

    return tuple(one() for _ in range(operands))


def signed_zeros(rng: Rng, dtype: DType, operands: int, count: int) -> Operands:
    """Zeros of both signs among other numbers, in every combination of operands."""
    picks = np.arange(count)
    made = []
    for operand in range(operands):
        kind = picks // 3**operand % 3
        other = _random(rng, dtype, count, -2, 1)
        zero = np.where(kind == 0, 0.0, -0.0).astype(dtype.numpy)
        made.append(np.where(kind < 2, zero, other))
    return tuple(made)


def _among(special: list[float], rng: Rng, dtype: DType, operands: int, count: int) -> Operands:
    picks = np.arange(count)
    pool = np.array(special).astype(dtype.numpy)
    made = []
    for operand in range(operands):
        other = _random(rng, dtype, count, -2, 1)
        taken = picks // 2**operand % 2 == 0
        made.append(np.where(taken, pool[picks // 2**operands % pool.size], other))
    return tuple(made)


def nans(rng: Rng, dtype: DType, operands: int, count: int) -> Operands:
    """NaN among numbers, in every combination of operands."""
    return _among([float("nan")], rng, dtype, operands, count)


def infinities(rng: Rng, dtype: DType, operands: int, count: int) -> Operands:
    """Infinities of both signs among numbers, in every combination of operands."""
    return _among([float("inf"), float("-inf")], rng, dtype, operands, count)


def tiny_products(rng: Rng, dtype: DType, operands: int, count: int) -> Operands:
    """Normal numbers whose products, and squares, are subnormal."""
    limits = Limits.of(dtype)
    middle = (limits.least - limits.stored // 2) // 2
    return tuple(_random(rng, dtype, count, middle - 1, middle) for _ in range(operands))


def every_value(rng: Rng, dtype: DType, operands: int, count: int) -> Operands:
    """Every bit pattern of a 16-bit or 8-bit type, once."""
    return (np.arange(1 << (8 * dtype.size), dtype=f"u{dtype.size}").view(dtype.numpy),)


@dataclass(frozen=True, slots=True)
class Generator:
    """A named source of inputs. ``composite`` ones also suit sums and products of many elements."""

    make: Callable[[Rng, DType, int, int], Operands]
    integers: bool = False
    composite: bool = False
    operands: int = 0
    most_bytes: int = 8
    infinities: bool = False

    def fits(self, dtype: DType, operands: int) -> bool:
        """Says whether there is anything to generate for so many operands of a dtype."""
        if self.operands not in (0, operands) or dtype.size > self.most_bytes or dtype is DType.BOOL:
            return False
        if self.infinities and dtype is DType.F8E4M3:
            return False
        return dtype.is_float or self.integers


GENERATORS: dict[str, Generator] = {
    "exponents": Generator(exponents, integers=True),
    "moderate": Generator(moderate, composite=True),
    "cancellation": Generator(cancellation, composite=True),
    "ties": Generator(ties),
    "subnormals": Generator(subnormals),
    "largest": Generator(largest, integers=True),
    "signed_zeros": Generator(signed_zeros),
    "nans": Generator(nans),
    "infinities": Generator(infinities, infinities=True),
    "tiny_products": Generator(tiny_products),
    "every_value": Generator(every_value, integers=True, operands=1, most_bytes=2),
}
"""Every generator by name."""
