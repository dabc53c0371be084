"""The one comparison of a result with the exact answer, in ULPs of the output type, relative and absolute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.kernels.types import BoundInputs, PrecisionGuarantee

Array = np.ndarray[Any, Any]

# Exponent of the smallest normal number, per type.
_MIN_EXPONENT = {DType.F64: -1022, DType.F32: -126, DType.F16: -14, DType.BF16: -126, DType.F8E4M3: -6}
_VALUES = frozenset({"values"})
_MAX_FINITE = {
    DType.F64: float(np.finfo(np.float64).max),
    DType.F32: float(np.finfo(np.float32).max),
    DType.F16: 65504.0,
    DType.BF16: float(2.0**127 * (2 - 2.0**-7)),
    DType.F8E4M3: 448.0,
}


@dataclass(frozen=True, slots=True)
class Report:
    """What a comparison found: worst errors, where, and what broke the claim (empty when it held).

    ``kinds`` names what broke: "ulp", "relative", "absolute", "bound", or "values" for NaN and infinities in other
    places, shapes and integers, which no bound allows.
    """

    worst_ulp: float
    worst_relative: float
    worst_absolute: float
    worst_bound_ratio: float
    where: tuple[int, ...] | None
    got: float | None
    want: float | None
    broken: tuple[str, ...]
    kinds: frozenset[str] = frozenset()

    @property
    def ok(self) -> bool:
        return not self.broken

    def __str__(self) -> str:
        place = "" if self.where is None else f" at {self.where}: got {self.got!r}, exact {self.want!r}"
        text = f"worst {self.worst_ulp:.4g} ULP, relative {self.worst_relative:.3g}, absolute {self.worst_absolute:.3g}"
        return f"{text}{place}" + (f"; broken: {'; '.join(self.broken)}" if self.broken else "")


def ulp(reference: Array, dtype: DType) -> Array:
    """Returns the spacing of ``dtype`` at each reference value (that of the smallest normal number below it)."""
    exact = np.abs(np.asarray(reference, np.longdouble))
    _, exponent = np.frexp(np.where(np.isfinite(exact) & (exact > 0), exact, 1))
    exponent = np.maximum(exponent - 1, _MIN_EXPONENT[dtype])
    exponent = np.where(exact > 0, exponent, _MIN_EXPONENT[dtype])
    return np.ldexp(np.longdouble(1), (exponent - (dtype.mantissa_bits - 1)).astype(np.int32))


def compare(
    got: Array,
    reference: Array,
    claim: PrecisionGuarantee,
    dtype: DType,
    *,
    inputs: tuple[Array | None, ...] = (),
    params: dict[str, Any] | None = None,
    flushes: bool = False,
) -> Report:
    """Holds ``got`` against the exact ``reference`` (float64 or wider) and the claim.

    NaN places and infinities must match (a reference beyond the largest finite value may come out as infinity);
    every bound the claim populates must hold. ``flushes`` excludes subnormal results, on devices that flush them.
    """
    if got.shape != reference.shape:
        return _refused(f"shape {got.shape} instead of {reference.shape}")
    if not dtype.is_float:
        return _exact(got, reference)
    with np.errstate(invalid="ignore"):  # a signalling NaN is no event
        value = got.astype(np.longdouble)
        exact = np.asarray(reference).astype(np.longdouble)
    broken: list[str] = []
    kinds: set[str] = set()
    nan = np.isnan(exact)
    if not np.array_equal(np.isnan(value), nan):
        broken.append(f"NaN in {int(np.isnan(value).sum())} places instead of {int(nan.sum())}")
        kinds.add("values")
    limit = np.longdouble(_MAX_FINITE[dtype])
    last = np.ldexp(limit, -dtype.mantissa_bits)  # half the spacing at the top
    slack = last * (2 * (claim.max_ulp if claim.max_ulp is not None else 1))
    value_inf, exact_inf = np.isinf(value), np.isinf(exact)
    near_limit = np.abs(exact) > limit - slack if claim.has_bound else np.abs(exact) > limit / 2
    wrong_inf = ~nan & ((exact_inf & (value != exact)) | (value_inf & ~exact_inf & ~near_limit))
    if wrong_inf.any():
        broken.append(f"infinities differ in {int(wrong_inf.sum())} places")
        kinds.add("values")
    live = ~nan & ~np.isnan(value) & ~value_inf & ~exact_inf
    with np.errstate(all="ignore"):
        error = np.where(live, np.abs(value - exact), 0)
    if flushes:
        tiny = np.ldexp(np.longdouble(1), _MIN_EXPONENT[dtype] + 1)
        error = np.where((np.abs(exact) < tiny) & (error <= tiny), 0, error)
    units = error / ulp(np.where(live, exact, 1), dtype)
    relative = error / np.maximum(
        np.abs(np.where(live, exact, 1)), np.ldexp(np.longdouble(1), _MIN_EXPONENT[dtype])
    )
    ratio = np.zeros_like(error)
    if claim.bound is not None:
        with np.errstate(over="ignore", invalid="ignore"):  # a reference wider than float64 may lie beyond it
            shown = tuple(None if x is None else np.asarray(x, np.float64) for x in inputs)
            narrowed = np.asarray(reference, np.float64)
        allowed = claim.bound(BoundInputs(shown, params or {}, narrowed, dtype))
        allowed = np.broadcast_to(np.asarray(allowed, np.longdouble), error.shape)
        with np.errstate(all="ignore"):
            ratio = np.where(error > 0, error / allowed, 0)
        ratio = np.where(np.isnan(ratio), 0, ratio)
    judged = (
        ("ulp", "ULP", claim.max_ulp, units),
        ("relative", "relative", claim.max_relative, relative),
        ("absolute", "absolute", claim.max_absolute, error),
        ("bound", "bound ratio", 1.0 if claim.bound is not None else None, ratio),
    )
    for kind, label, allowed_value, measured in judged:
        if (
            allowed_value is not None
            and measured.size
            and not (worst := float(measured.max())) <= allowed_value
        ):
            broken.append(f"{label} {worst:.6g} above the claimed {allowed_value:g}")
            kinds.add(kind)
    if not error.size:
        return Report(0, 0, 0, 0, None, None, None, tuple(broken), frozenset(kinds))
    focus = ratio if claim.bound is not None and claim.max_ulp is None else units
    where = np.unravel_index(int(focus.argmax()), focus.shape)
    return Report(
        float(units.max()),
        float(relative.max()),
        float(error.max()),
        float(ratio.max()),
        tuple(int(i) for i in where),
        float(value[where]),
        float(exact[where]),
        tuple(broken),
        frozenset(kinds),
    )


def same_bits(got: Array, want: Array, *, flushes: bool = False) -> str | None:
    """Returns how two arrays differ in their bits, or None. NaN payloads and signs are free."""
    return differing(got, want, flushes=flushes)[1] or None


def differing(got: Array, want: Array, *, flushes: bool = False) -> tuple[int, str]:
    """Returns how many elements of two arrays differ in their bits, and the first; 0 and "" where none does."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return max(got.size, want.size, 1), f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if not got.size:
        return 0, ""
    kind = DType.of(got)
    a = np.ascontiguousarray(got).reshape(-1).view(f"u{kind.size}")
    b = np.ascontiguousarray(want).reshape(-1).view(f"u{kind.size}")
    differ = a != b
    if kind.is_float:
        with np.errstate(invalid="ignore"):
            x, y = got.astype(np.float64).reshape(-1), want.astype(np.float64).reshape(-1)
        differ &= ~(np.isnan(x) & np.isnan(y))
        if flushes:
            tiny = 2.0 ** _MIN_EXPONENT[kind] * 2
            differ &= ~((np.abs(x) < tiny) & (np.abs(y) < tiny))
    count = int(differ.sum())
    if not count:
        return 0, ""
    first = int(differ.argmax())
    place = tuple(int(i) for i in np.unravel_index(first, got.shape))
    return (
        count,
        f"{count} of {differ.size} elements differ, first at {place}: {got[place]!r} and {want[place]!r}",
    )


def _exact(got: Array, reference: Array) -> Report:
    same = got == reference.astype(got.dtype) if reference.dtype != got.dtype else got == reference
    if got.size == 0 or bool(np.all(same)):
        return Report(0, 0, 0, 0, None, None, None, ())
    where = tuple(int(i) for i in np.unravel_index(int(np.argmin(same)), got.shape))
    text = f"{int((~same).sum())} of {got.size} elements differ"
    return Report(
        np.inf, np.inf, np.inf, np.inf, where, float(got[where]), float(reference[where]), (text,), _VALUES
    )


def _refused(text: str) -> Report:
    return Report(np.inf, np.inf, np.inf, np.inf, None, None, None, (text,), _VALUES)
