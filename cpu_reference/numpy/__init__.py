"""The oracles: one small file per op, ``reference(*inputs, **params)``, written to be read.

Float results are float64, or ``longdouble`` where an input is F64, and are not rounded to the output type; everything
else (movement, comparisons, casts, integers) comes back exactly, in the output's dtype. Omitted inputs are None.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np


def oracle(op: str) -> Callable[..., np.ndarray[Any, Any]]:
    """Returns the ``reference`` of an op by name; raises ModuleNotFoundError for an op without one."""
    found: Callable[..., np.ndarray[Any, Any]] = importlib.import_module(f"{__name__}.{op}").reference
    return found
