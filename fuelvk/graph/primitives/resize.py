"""resize2d and its gradient: ONNX's Resize over the last two axes.

Where element o of the result lies on an axis of n elements resized to m, as an exact fraction:

    half_pixel      (o + 1/2) * n/m - 1/2
    align_corners   o * (n-1)/(m-1), 0 for m = 1
    asymmetric      o * n/m

held between 0 and n - 1. nearest takes the nearest element, the lower one of two as near (ONNX's round_prefer_floor);
linear weights the two around it, and reads one alone whose weight is 1. The two weights of an axis are rounded once.
Columns first: products, then their sum, each rounded, in both rows; then the same down.

The gradient of an element of x sums, over the rows of the result that read it and in each over the columns, gradient
times weight of the column, in blocks of 64; then those sums times the weights of the rows in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import DTypeError, ParameterError, ShapeError
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder
from fuelvk.graph.primitives._images import Gradients, Outputs, Rng, entry, not_negative
from fuelvk.graph.samples import label, normal, ones, specials
from fuelvk.graph.types import ErrorSample, Family, Param, Params, Sample, Shapes, Values

MODES = ("nearest", "linear")
COORDINATES = ("half_pixel", "align_corners", "asymmetric")


def _one_of(names: tuple[str, ...]) -> Callable[[str], str | None]:
    return lambda value: None if value in names else "one of " + ", ".join(names)


_PARAMS = (
    Param("size", "pair", check=not_negative),
    Param("mode", "str", default="nearest", check=_one_of(MODES)),
    Param("coordinates", "str", default="half_pixel", check=_one_of(COORDINATES)),
)


def _need_source(op: str, source: Shape, target: Shape) -> None:
    for n, m in zip(source[-2:], target[-2:], strict=True):
        if n == 0 and m > 0:
            raise ShapeError(
                f"{op}: nothing to read from", seen=f"{source} to {target}", allowed="no empty axis of x"
            )


def _shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x = rules.given(shapes[0])
    rules.need_rank("resize2d", "x", x, 2)
    result = (*x[:-2], *params["size"])
    _need_source("resize2d", x, result)
    return (result,)


def _backward_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    g = rules.given(shapes[0])
    rules.need_rank("resize2d_backward", "g", g, 2)
    result = (*g[:-2], *params["size"])
    _need_source("resize2d_backward", result, g)
    return (result,)


def _backward(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (x,) = inputs
    assert x is not None
    return (g.resize2d_backward(grads[0], **{**params, "size": x.shape[-2:]}),)


def _forward(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (dy,) = inputs
    assert dy is not None
    return (g.resize2d(grads[0], **{**params, "size": dy.shape[-2:]}),)


_CASES: tuple[tuple[tuple[int, ...], tuple[int, int]], ...] = (
    ((2, 3, 4, 5), (8, 15)),
    ((2, 7, 9), (3, 4)),
    ((3, 5), (1, 7)),
)
_ONCE: tuple[tuple[tuple[int, ...], tuple[int, int]], ...] = (
    ((1, 1), (1, 1)),
    ((1, 1, 6, 5), (6, 5)),
    ((0, 2, 3), (5, 5)),
    ((2, 4, 3), (0, 5)),
    ((1, 1, 1), (9, 130)),
    ((1, 33, 31), (70, 64)),
    ((200, 3), (2, 200)),
)


def _samples(backward: bool) -> Callable[[tuple[DType, ...], Rng], Iterable[Sample]]:
    def samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
        dtype = dtypes[0]

        def one(shape: tuple[int, ...], size: tuple[int, int], mode: str, coordinates: str) -> Sample:
            given = (*shape[:-2], *size) if backward else shape
            params = {"size": shape[-2:] if backward else size, "mode": mode, "coordinates": coordinates}
            name = f"{label(shape)}-{size[0]}x{size[1]}-{mode}-{coordinates}"
            return Sample((normal(rng, given, dtype),), params, name)

        for mode in MODES:
            for coordinates in COORDINATES:
                for shape, size in _CASES:
                    yield one(shape, size, mode, coordinates)
        for shape, size in _ONCE:
            yield one(shape, size, "linear", "half_pixel")
        values = specials(dtype)
        rows = np.ones((3, 2 * values.size), dtype.numpy)
        rows[1, ::2] = values
        size = (6, rows.shape[1] * 2 - 1)
        params = {"size": size, "mode": "linear", "coordinates": "align_corners"}
        yield Sample((rows,), params if not backward else {**params, "size": (2, values.size)}, "specials")
        yield Sample((np.stack([values, values]),), {"size": (3, values.size)}, "specials_nearest")

    return samples


def _errors(op: str) -> Callable[[], Iterable[ErrorSample]]:
    def errors() -> Iterable[ErrorSample]:
        x: Any = ones((1, 4, 4))
        cases: tuple[tuple[dict[str, Any], str, str], ...] = (
            ({}, f"{op} needs parameter size", "no_size"),
            ({"size": -1}, "size is not acceptable", "size_negative"),
            ({"size": (1, 2, 3)}, "size has the wrong type", "size_triple"),
            ({"size": 2, "mode": "cubic"}, "mode is not acceptable.*linear", "mode"),
            (
                {"size": 2, "coordinates": "corners"},
                "coordinates is not acceptable.*align_corners",
                "coordinates",
            ),
        )
        for params, match, name in cases:
            yield ErrorSample((x,), params, ParameterError, match, name)
        yield ErrorSample((ones((2, 2), DType.I32),), {"size": 2}, DTypeError, f"{op}.*i32", "integers")
        yield ErrorSample((ones((4,)),), {"size": 2}, ShapeError, f"{op}.*rank", "rank")
        empty, size = ((1, 4, 4), (0, 4)) if op.endswith("backward") else ((1, 0, 4), (4, 4))
        yield ErrorSample(
            (ones(empty),), {"size": size}, ShapeError, f"{op}: nothing to read from", "empty_axis"
        )

    return errors


OPS = (
    entry(
        "resize2d", ("x",), _PARAMS, _shape, _samples(False), _errors("resize2d"),
        "The last two axes resized to size by ONNX's rules: nearest (the lower of two as near), or linear between the "
        "elements around each place, one whose weight is 0 not read.",
        backward=_backward,
    ),
    entry(
        "resize2d_backward", ("g",), _PARAMS, _backward_shape, _samples(True), _errors("resize2d_backward"),
        "Gradient of resize2d of an x whose last two axes are size.",
        backward=_forward,
        family=Family.BACKWARD,
    ),
)  # fmt: skip
