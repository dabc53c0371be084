"""Kernels of global_avg_pool2d: those of mean over the last two axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fuelvk.base.hashing import digest64
from fuelvk.base.shapes import Layout
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import numpy_reference
from fuelvk.kernels._wrappers import wrapper_digest
from fuelvk.kernels.claims import STRICT_GLOBAL_MEAN
from fuelvk.kernels.ops import reduce
from fuelvk.kernels.types import CostFunction, KernelRevisionHash, Registration

GLOBAL = PrimitiveId("global_avg_pool2d")
_AXES: dict[str, Any] = {"axes": (-2, -1), "keepdims": True}


def _kernel(mean: Callable[..., None]) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Any, context: Any) -> None:
        view, axes = layouts[0], _AXES
        if 0 in view.shape[-2:]:  # nothing, in one axis
            view, axes = Layout.of((*view.shape[:-2], 0)), {**_AXES, "axes": (-1,)}
        mean(inputs, outputs, (view, *layouts[1:]), axes, context)

    return kernel


def _cost(mean: CostFunction) -> CostFunction:
    return lambda shapes, params, capabilities: mean(shapes, _AXES, capabilities)


def _row(row: Registration) -> Registration:
    impl = row.impl
    if impl.name == "cpu.numpy":
        return numpy_reference(GLOBAL, impl.dtypes, cost=_cost(impl.cost))
    return replace(
        row,
        id=GLOBAL,
        impl=replace(
            impl,
            kernel=_kernel(impl.kernel),
            cost=_cost(impl.cost),
            precision=STRICT_GLOBAL_MEAN,
            revision=KernelRevisionHash(digest64(str(impl.revision), wrapper_digest(__file__))),
        ),
    )


IMPLS = tuple(_row(row) for row in reduce.IMPLS if row.id == PrimitiveId("mean"))
