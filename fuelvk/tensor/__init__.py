"""The lazy Tensor people hold, and the calls around it."""

from __future__ import annotations

from fuelvk.tensor.calls import call
from fuelvk.tensor.capture import compile, grad
from fuelvk.tensor.core import Tensor, asarray, from_dlpack
from fuelvk.tensor.explanation import Explanation, explain
from fuelvk.tensor.profiling import profile

__all__ = ["Explanation", "Tensor", "asarray", "call", "compile", "explain", "from_dlpack", "grad", "profile"]
