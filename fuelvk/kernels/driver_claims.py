"""Claims of elementary functions that are not the canonical ones: the cheap strict level and the driver's own.

What a driver's function may be off by is what the Vulkan specification allows it ("Precision and Operation of SPIR-V
Instructions"): exp and exp2 ``3 + 2|x|`` ULP, log and log2 3 ULP outside [1/2, 2] and 2^-21 absolute inside, a quotient
2.5 ULP, an inverse square root 2 ULP, sine and cosine 2^-11 absolute in [-pi, pi]. Nothing is allowed for, and so
nothing claimed of, what loses its relative accuracy in a subtraction. All of it leaves out subnormals on a device that
flushes them.
"""

from __future__ import annotations

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.kernels.bounds import Array, rounding
from fuelvk.kernels.types import BoundInputs, PrecisionGuarantee

CHEAP_ONE_ULP = PrecisionGuarantee(
    True,
    max_ulp=1,
    batch_invariant=True,
    notes="The strict library's cheap function, on + - * and integers: the same bits on every device, but not those "
    "of the op, which is correctly rounded.",
)
"""The elementary functions in F32 on Vulkan as composite ops use them. Own polynomials. F32. No sum. At most 1 ULP,
every input tried. Left out: subnormals on a device that flushes them.
"""


def driver_log(b: BoundInputs) -> Array:
    """3 ULP outside [1/2, 2], 2^-21 absolute inside (Vulkan specification)"""
    size = np.abs(np.asarray(b.reference, np.float64))
    (x,) = (np.abs(np.asarray(i, np.float64)) for i in b.inputs if i is not None)
    with np.errstate(all="ignore"):
        outside = 3 * size * 2.0**-23
    return rounding(b, np.where((x >= 0.5) & (x <= 2), 2.0**-21, outside))


# In ULP of F32, for every x: |x| is at most 104 where exp neither overflows nor vanishes, and 149 for exp2. The others
# follow from their formulas: a sum 0.5, a product 0.5, a quotient 2.5, twice 2 of an inverse root in sqrt.
_ULPS = {
    "exp": 211.0,
    "exp2": 301.0,
    "sigmoid": 216.0,
    "silu": 218.0,
    "sqrt": 7.0,
    "rsqrt": 2.0,
    "recip": 2.5,
}
# Absolute, in F32 and F16: log and log2 by the largest results, erf by its formula.
_ABSOLUTE = {"log": (3 * 2.0**-17, 2.0**-6), "log2": (3 * 2.0**-16, 2.0**-6), "erf": (1e-6, 2.0**-11)}
_UNBOUNDED = {
    "sin": "the specification allows 2^-11 absolute in [-pi, pi] and anything beyond",
    "cos": "the specification allows 2^-11 absolute in [-pi, pi] and anything beyond",
    "tanh": "the specification derives it from a difference of exponentials, which cancels near 0",
    "expm1": "exp(x) - 1, which cancels near 0",
    "log1p": "log(1 + x), which loses x near 0",
    "softplus": "log(1 + exp(x)), which loses exp(x) far below 0",
    "gelu": "an exponential of a polynomial, whose error grows with its argument",
    "gelu_erf": "half of 1 + erf(x/sqrt(2)), which cancels far below 0",
}


def driver_claim(op: str, dtype: DType) -> PrecisionGuarantee:
    """Returns the claim of an elementary function by the driver's own in F32, rounded to F16 once more for F16."""
    half = dtype is not DType.F32
    computed = "F32, rounded to F16" if half else "F32"
    notes = f"The driver's function in {computed}: what the Vulkan specification allows it."
    if op in _ULPS:
        return PrecisionGuarantee(
            False, max_ulp=0.5 + _ULPS[op] * 2.0**-12 if half else _ULPS[op], notes=notes
        )
    if op in _ABSOLUTE:
        bound = driver_log if op != "erf" else None
        return PrecisionGuarantee(False, max_absolute=_ABSOLUTE[op][half], bound=bound, notes=notes)
    return PrecisionGuarantee.none(f"The driver's own: {_UNBOUNDED[op]}.")
