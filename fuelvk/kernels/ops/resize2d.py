"""Kernels of resize2d and its gradient: the sources of each row and column and their weights come as tables."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv
from fuelvk.kernels.claims import STRICT_RESIZE, STRICT_RESIZE_BACKWARD
from fuelvk.kernels.ops._elements import grid
from fuelvk.kernels.ops._images import image_rows
from fuelvk.kernels.types import Registration, Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

Array = np.ndarray[Any, Any]
_PARAMS = struct.Struct("<2I6i")


@dataclass(frozen=True, slots=True, eq=False)
class _Axis:
    """``taps`` i32 and ``weights`` f64 [m, 2] of the results, ``spans`` i32 [n, 2] of the sources."""

    taps: Array
    weights: Array
    spans: Array


def _place(o: int, n: int, m: int, coordinates: str) -> tuple[int, int]:
    """Returns where element ``o`` of ``m`` lies among ``n``, held between the ends, as numerator and denominator."""
    if coordinates == "align_corners":
        above, below = (o * (n - 1), m - 1) if m > 1 else (0, 1)
    elif coordinates == "asymmetric":
        above, below = o * n, m
    else:
        above, below = (2 * o + 1) * n - m, 2 * m
    return min(max(above, 0), (n - 1) * below), below


@functools.lru_cache(maxsize=64)
def axis_table(n: int, m: int, mode: str, coordinates: str) -> _Axis:
    """Returns the tables of an axis of ``n`` elements resized to ``m``; weights are rounded once, to F64."""
    taps, weights = np.zeros((m, 2), np.int32), np.zeros((m, 2), np.float64)
    first, last = np.full(n, m, np.int32), np.zeros(n, np.int32)
    for o in range(m):
        above, below = _place(o, n, m, coordinates)
        low, rest = divmod(above, below)
        if mode == "nearest":
            low, rest = low + (2 * rest > below), 0
        high = low + (rest > 0)
        taps[o] = low, high
        weights[o] = (below - rest) / below, rest / below
        for source in (low, high):
            first[source] = min(first[source], o)
            last[source] = o + 1
    return _Axis(taps, weights, np.stack([np.minimum(first, last), last], axis=1))


def _axes(op: str, shapes: Sequence[Any], params: Mapping[str, Any]) -> tuple[tuple[int, ...], list[_Axis]]:
    """Returns (planes, h, w, ho, wo) and the tables of rows and columns; shapes are the input's and the output's."""
    source, target = reversed(shapes) if op.endswith("backward") else shapes
    extents = (elements(source[:-2]), *source[-2:], *target[-2:])
    pairs = zip(source[-2:], target[-2:], strict=True)
    return extents, [axis_table(n, m, params["mode"], params["coordinates"]) for n, m in pairs]


def _on_cpu(op: str, dtype: DType) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        x, y = inputs[0], outputs[0]
        if not y.size:
            return
        extents, axes = _axes(op, (x.shape, y.shape), params)
        tables = [np.concatenate([a.taps for a in axes]), np.concatenate([a.weights for a in axes])]
        if op.endswith("backward"):
            tables.append(np.concatenate([a.spans for a in axes]))
        ckernels.call(f"{op}_{dtype.key}", x, *tables, y, *extents)

    return kernel


def _table(axes: Sequence[_Axis], dtype: DType, *, spans: bool) -> bytes:
    """Returns the shader's table: six words an entry, two indices and two numbers of the accumulator's type."""
    number = (
        np.dtype(np.float64)
        if dtype is DType.F64
        else np.dtype({"names": ["v"], "formats": ["<f4"], "itemsize": 8})
    )
    row = np.dtype([("taps", "<i4", 2), ("weights", number, 2)])
    count = sum(len(a.taps) for a in axes)
    made = np.zeros(count + (sum(len(a.spans) for a in axes) if spans else 0), row)
    made["taps"][:count] = np.concatenate([a.taps for a in axes])
    weights = np.concatenate([a.weights for a in axes])
    if dtype is DType.F64:
        made["weights"][:count] = weights
    else:
        made["weights"]["v"][:count] = weights
    if spans:
        made["taps"][count:] = np.concatenate([a.spans for a in axes])
    return made.tobytes()


def _on_vulkan(op: str, shader: ShaderRef, dtype: DType) -> Callable[..., None]:
    backward = op.endswith("backward")

    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        count = elements(layouts[-1].shape)
        if not count:
            return
        extents, axes = _axes(op, [v.shape for v in layouts], params)
        table = context.constant(_table(axes, dtype, spans=backward))
        groups = grid(shader, context, count)
        words = _PARAMS.pack(count, groups[0], layouts[0].offset, layouts[-1].offset, *extents[1:])
        context.dispatch(shader, groups, (inputs[0], table, outputs[0]), 0b100, words)

    return kernel


def _results_read(shapes: Shapes, params: Mapping[str, Any]) -> int:
    """At most so many iterations for the results that one source went into."""
    g, dx = shapes
    assert g is not None and dx is not None
    rows, columns = (2 * m // max(n - 1, 1) + 3 for m, n in zip(g[-2:], dx[-2:], strict=True))
    return rows * (columns + 1)


def _rows(op: str) -> list[Registration]:
    found: list[Registration] = []
    for dtype in FLOATS:
        shader = spirv("networks/resize", op, dtype=dtype)
        found += image_rows(
            op,
            dtype,
            1,
            on_vulkan=_on_vulkan(op, shader, dtype),
            on_cpu=_on_cpu(op, dtype),
            shader=shader,
            operations=lambda params: 9 if params["mode"] == "linear" else 0,
            precision=STRICT_RESIZE_BACKWARD if op.endswith("backward") else STRICT_RESIZE,
            wrapper=__file__,
            iterations=_results_read if op.endswith("backward") else lambda shapes, params: 1,
        )
    return found


IMPLS = tuple(row for op in ("resize2d", "resize2d_backward") for row in _rows(op))
