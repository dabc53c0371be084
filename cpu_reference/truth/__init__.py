"""What F32 functions of one input are, for all 2^32 inputs, and how results are held against it.

``judge(name, first, results)`` takes the results for consecutive inputs. Most are decided by a double that errs by
less than a stated bound (``functions.c``, compiled on first use; NumPy where there is no C compiler); inputs for
which that leaves two floats possible are settled by mpmath, one by one; ranges where the result is a constant, NaN
or a half (``flats``) are compared directly.
"""

from __future__ import annotations

from cpu_reference.truth.decide import Judgement, judge, judge_all, near_boundaries
from cpu_reference.truth.table import FUNCTIONS, Flat, Function, Kind

__all__ = ["FUNCTIONS", "Flat", "Function", "Judgement", "Kind", "judge", "judge_all", "near_boundaries"]
