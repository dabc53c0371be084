"""Kernels of the primitive roll: copies of the parts that a rolled axis cuts x into."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.graph.primitives.movement import resolve_roll
from fuelvk.kernels._vulkan import spirv
from fuelvk.kernels.ops._elements import copy_shaders, copy_strided
from fuelvk.kernels.ops._movement import movement
from fuelvk.kernels.types import KernelCaps, Registration, admits_all


def _on_cpu(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
    x, y = inputs[0], outputs[0]
    if not x.size:
        return
    source = x
    for axis, shift in resolve_roll(x.shape, params).items():
        target = np.empty_like(x)
        inner = elements(x.shape[axis + 1 :]) * x.itemsize
        ckernels.call("roll", source, target, elements(x.shape[:axis]), x.shape[axis], inner, shift)
        source = target
    y[...] = source


def _parts(source: Layout, target: Layout, moves: Mapping[int, int]) -> Iterator[tuple[Layout, Layout]]:
    """Yields what to copy where: per rolled axis the part that stays in order, and the one that comes to the front."""
    rank, shape = len(source.shape), source.shape
    steps = (1,) * rank
    cuts = [((0, s, shape[a] - s), (shape[a] - s, 0, s)) for a, s in moves.items() if s]
    axes = [a for a, s in moves.items() if s]
    for choice in itertools.product(*cuts):
        starts, places, extents = [0] * rank, [0] * rank, list(shape)
        for axis, (start, place, extent) in zip(axes, choice, strict=True):
            starts[axis], places[axis], extents[axis] = start, place, extent
        yield source.slice(starts, steps, extents), target.slice(places, steps, extents)


def _on_vulkan(size: int) -> Any:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        source, target = layouts[0], layouts[-1]
        if 0 not in source.shape:
            for part, place in _parts(source, target, resolve_roll(source.shape, params)):
                copy_strided(context, size, inputs[0], part, outputs[0], place)

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    return movement(
        "roll",
        (dtype, dtype),
        on_vulkan=_on_vulkan(dtype.size),
        on_cpu=_on_cpu,
        shader=spirv("movement/copy", "copy", bytes=dtype.size, shape="small"),
        optional=copy_shaders(),
        function="roll",
        wrapper=__file__,
        caps=KernelCaps(strided_input=True),
        admits=admits_all,
    )


IMPLS = tuple(row for dtype in DType for row in _rows(dtype))
