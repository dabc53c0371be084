"""What a CPU kernel wrapper works with: C kernels, NumPy references, the registration helper."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cpu_reference import c as ckernels
from cpu_reference.numpy.cast import round_to_format
from fuelvk.base.dtypes import DType
from fuelvk.base.hashing import digest64
from fuelvk.graph.types import OpId
from fuelvk.kernels._wrappers import wrapper_digest
from fuelvk.kernels.types import (
    BackendId,
    BackendImpl,
    CostFunction,
    KernelCaps,
    KernelRevisionHash,
    PrecisionGuarantee,
    Registration,
    Shapes,
)

ROUNDED_ONCE = PrecisionGuarantee(
    True,
    max_ulp=0.5000001,
    notes="computed in float64 or wider and rounded once; F64 itself carries the library's error",
)


def c_missing(shapes: Shapes, params: Mapping[str, Any], capabilities: Any) -> str | None:
    """The ``admits`` of a C kernel: refuses with the reason when the extension is not there."""
    return None if ckernels.available() else ckernels.why_missing()


@functools.cache
def _source_digest(source: str) -> int:
    """Returns a digest of everything a C file is compiled from; the kernels of one file share it."""
    return digest64(*(part for named in ckernels.revision_sources_of(source) for part in named))


@functools.cache
def _reference_digest(module: str) -> int:
    return digest64(inspect.getsource(importlib.import_module(module)))


def c_kernel(
    op_id: OpId,
    dtypes: tuple[DType, ...],
    kernel: Callable[..., None],
    *,
    functions: tuple[str, ...],
    cost: CostFunction,
    precision: PrecisionGuarantee,
    wrapper: str,
    name: str = "cpu.c",
) -> Registration:
    """Returns a table row for a C kernel; ``functions`` are the C names it calls and give its revision."""
    parts: list[str | int] = ["c", op_id.name, *(_source_digest(ckernels.source_of(f)) for f in functions)]
    impl = BackendImpl(
        name=name,
        kernel=kernel,
        dtypes=dtypes,
        cost=cost,
        precision=precision,
        caps=KernelCaps(strided_input=False),
        revision=KernelRevisionHash(digest64(*parts, *functions, wrapper_digest(wrapper))),
        admits=c_missing,
    )
    return Registration(op_id, BackendId.CPU, impl)


def numpy_reference(
    op_id: OpId,
    dtypes: tuple[DType, ...],
    *,
    module: str | None = None,
    cost: CostFunction,
    precision: PrecisionGuarantee = ROUNDED_ONCE,
    name: str = "cpu.numpy",
) -> Registration:
    """Returns a table row for the float64 oracle of an op, rounded once to the output type.

    An alternative for machines without the C extension; its bits are not the canonical ones.
    """
    reference = importlib.import_module(f"cpu_reference.numpy.{module or op_id.name.lower()}").reference
    output = dtypes[-1]

    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        with np.errstate(all="ignore"):
            found = reference(*inputs, **params)
            for into, exact in zip(outputs, found if isinstance(found, tuple) else (found,), strict=True):
                result = np.asarray(exact)
                if output is DType.BF16:  # NumPy would round to F32 first
                    result = round_to_format(result, output)
                into[...] = result if result.dtype == output.numpy else result.astype(output.numpy)

    impl = BackendImpl(
        name=name,
        kernel=kernel,
        dtypes=dtypes,
        cost=cost,
        precision=precision,
        revision=KernelRevisionHash(digest64("numpy", op_id.name, _reference_digest(reference.__module__))),
    )
    return Registration(op_id, BackendId.CPU, impl)
