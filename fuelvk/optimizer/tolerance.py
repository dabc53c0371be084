"""How far a result may be off, and which claims fit."""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Iterator
from dataclasses import dataclass

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import ParameterError
from fuelvk.kernels.types import PrecisionGuarantee


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a caller accepts. Strict (the default) admits only implementations that give the canonical bits.

    A relative or an absolute tolerance *also* admits faster implementations whose claim promises no more error than
    that. Canonical implementations are admitted under every tolerance, also where their own claim promises less than
    was asked: a tolerance widens the choice and never leaves a call unserved that strict serves. ``fv.explain`` says
    where that is so. Where several tolerances apply (call, region, default), the tightest wins.
    """

    max_relative: float | None = None
    max_absolute: float | None = None
    anything: bool = False

    @classmethod
    def unbounded(cls) -> Tolerance:
        """Accepts every implementation, whatever it claims."""
        return cls(anything=True)

    @classmethod
    def strict(cls) -> Tolerance:
        return cls()

    @classmethod
    def relative(cls, bound: float) -> Tolerance:
        """Admits what promises ``abs(out - exact) <= bound * abs(exact)``, and the canonical kernels in any case."""
        return cls(max_relative=_positive("relative", bound))

    @classmethod
    def absolute(cls, bound: float) -> Tolerance:
        """Admits what promises ``abs(out - exact) <= bound``, and the canonical kernels in any case."""
        return cls(max_absolute=_positive("absolute", bound))

    @property
    def is_strict(self) -> bool:
        return self.max_relative is None and self.max_absolute is None and not self.anything

    def tightest(self, other: Tolerance) -> Tolerance:
        """Returns a tolerance that satisfies both: strict beats all, otherwise every bound given holds."""
        if self.is_strict or other.is_strict:
            return Tolerance.strict()
        if self.anything or other.anything:
            return other if self.anything else self
        return Tolerance(
            _least(self.max_relative, other.max_relative), _least(self.max_absolute, other.max_absolute)
        )

    def refuses(self, claim: PrecisionGuarantee, dtype: DType) -> str | None:
        """Returns why an implementation with this claim may not serve, or None."""
        if claim.canonical or self.anything:
            return None
        if self.is_strict:
            return "not the canonical algorithm, and the request is strict"
        return self._exceeded(claim, dtype)

    def remark(self, claim: PrecisionGuarantee, dtype: DType) -> str:
        """Returns what is to be said of an admitted claim: that it is canonical, and where it promises too little."""
        if self.is_strict or self.anything or not claim.canonical:
            return ""
        if self._exceeded(claim, dtype) is None:
            return "canonical: admitted under every tolerance"
        return (
            f"canonical: admitted under every tolerance; promises {claim.summary()}, which does not bear out the "
            f"{self} asked for"
        )

    def _exceeded(self, claim: PrecisionGuarantee, dtype: DType) -> str | None:
        """Returns how a claim promises less than a relative or absolute tolerance asks for, or None."""
        relative = claim.max_relative
        if relative is None and claim.max_ulp is not None:
            relative = claim.max_ulp * 2 * dtype.unit_roundoff
        if self.max_relative is not None and (relative is None or relative > self.max_relative):
            return f"claims {claim.summary()}, the request allows relative {self.max_relative:g}"
        if self.max_absolute is not None and (
            claim.max_absolute is None or claim.max_absolute > self.max_absolute
        ):
            return f"claims {claim.summary()}, the request allows absolute {self.max_absolute:g}"
        return None

    def __str__(self) -> str:
        if self.is_strict or self.anything:
            return "strict" if self.is_strict else "unbounded"
        words = [f"relative {self.max_relative:g}" if self.max_relative is not None else ""]
        words.append(f"absolute {self.max_absolute:g}" if self.max_absolute is not None else "")
        return " and ".join(w for w in words if w)


def _positive(kind: str, bound: float) -> float:
    if not (isinstance(bound, int | float) and math.isfinite(bound) and bound > 0):
        raise ParameterError(f"a {kind} tolerance is a positive number", seen=bound, allowed="> 0 and finite")
    return float(bound)


def _least(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else min(a, b)


_region: contextvars.ContextVar[Tolerance | None] = contextvars.ContextVar("fuelvk_tolerance", default=None)


@contextlib.contextmanager
def region(tolerance: Tolerance) -> Iterator[None]:
    """Applies a tolerance to everything planned inside the ``with`` block; nested regions tighten it."""
    outer = _region.get()
    token = _region.set(tolerance if outer is None else outer.tightest(tolerance))
    try:
        yield
    finally:
        _region.reset(token)


def effective(call: Tolerance | None) -> Tolerance:
    """Returns what applies to a call: its own tolerance tightened by the region's; strict when neither is given."""
    if call is not None and not isinstance(call, Tolerance):
        raise ParameterError(
            "a tolerance is a Tolerance",
            asked=repr(call),
            allowed="Tolerance.strict(), .relative(r), .absolute(a)",
        )
    outer = _region.get()
    if call is None:
        return outer if outer is not None else Tolerance.strict()
    return call if outer is None else outer.tightest(call)
