"""What the gradients of softmax and of the two normalisations share: signature, rules, samples, refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import DTypeError, ParameterError, ShapeError
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.ir import Value
from fuelvk.graph.patterns import Match
from fuelvk.graph.samples import TILE_EDGES, Array, label, normal, ones, specials
from fuelvk.graph.types import ErrorSample, Params, Sample, ShapeRule, Shapes

DTYPES = rules.rows(FLOATS, 2)
SHAPES = ((5,), (2, 3, 4, 5), (0, 7), (3, 0), (130, 2))


def gradient_shape(op: str, name: str) -> ShapeRule:
    """Returns the rule of an input [..., D] and a gradient of the same shape."""

    def rule(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
        x = rules.given(shapes[0])
        rules.need_rank(op, name, x, 1)
        rules.need_shape(op, "g", shapes[1], x, f"the gradient of an output that is like {name}")
        return (x,)

    return rule


def build_norm_gradient(match: Match) -> tuple[tuple[Value | None, ...], dict[str, object]] | None:
    """Builds x, g and eps out of a norm gradient's match; a gradient that broadcasts is refused."""
    x, g, eps = match.values["x"], match.values["g"], match.scalars["eps"]
    return ((x, g), {"eps": eps}) if x.shape == g.shape and eps >= 0 else None


def softmax_of(x: Array, dtype: DType) -> Array:
    """Returns rows that a softmax could have made."""
    e = np.exp(x.astype(np.float64) - x.astype(np.float64).max(axis=-1, keepdims=True, initial=-np.inf))
    return np.asarray(e / e.sum(axis=-1, keepdims=True)).astype(dtype.numpy)


def gradient_samples(
    prepare: Callable[[Array, DType], Array], *, eps: bool
) -> Callable[[tuple[DType, ...], np.random.Generator], Iterable[Sample]]:
    """Returns the samples; ``prepare`` turns random rows into the op's first input."""

    def samples(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
        dtype = dtypes[0]

        def case(x: Array, name: str, **params: float) -> Sample:
            return Sample((prepare(x, dtype), normal(rng, x.shape, dtype)), dict(params), name)

        for cols in TILE_EDGES:
            yield case(normal(rng, (3, cols), dtype, shift=0.5), f"3x{cols}")
        for shape in SHAPES:
            yield case(normal(rng, shape, dtype), label(shape))
        rows = normal(rng, (4, 70), dtype)
        rows[0, 3], rows[1, 4] = np.nan, 30.0
        g = normal(rng, (4, 70), dtype)
        g[2, 5], g[3, 6] = np.inf, np.nan
        yield Sample((prepare(rows, dtype), g), {}, "nan_inf_rows")
        values = specials(dtype)
        finite = values[np.abs(values.astype(np.float64)) < 1e3]
        yield Sample(
            (prepare(np.stack([finite, finite[::-1]]), dtype), np.stack([finite] * 2)), {}, "small_specials"
        )
        if eps:
            yield case(normal(rng, (2, 384), dtype, shift=30.0), "offset", eps=1e-12)
            yield case(normal(rng, (2, 100), dtype, scale=1e-3), "eps_matters", eps=0.01)
            yield case(normal(rng, (2, 96), dtype), "eps_zero", eps=0.0)
            yield case(np.full((3, 70), 1.5).astype(dtype.numpy), "constant_rows")
        else:
            yield case(normal(rng, (2, 200), dtype, scale=40.0), "far_apart")

    return samples


def gradient_errors(op: str, name: str, *, eps: bool) -> Callable[[], Iterable[ErrorSample]]:
    """Returns the refusals."""

    def errors() -> Iterable[ErrorSample]:
        x = ones((2, 3))
        yield ErrorSample((ones(()), ones(())), {}, ShapeError, f"{op}.*{name}.*rank", "scalar")
        yield ErrorSample((x, ones((2, 1))), {}, ShapeError, rf"{op}.*g.*\(2, 3\)", "shapes")
        yield ErrorSample((x, ones((2, 3), DType.F16)), {}, DTypeError, f"{op}.*f32.*f16", "mixed_dtypes")
        whole = ones((2, 3), DType.I32)
        yield ErrorSample((whole, whole), {}, DTypeError, f"{op}.*i32", "integers")
        if eps:
            for value, text in ((-1e-5, "negative"), (float("nan"), "nan")):
                yield ErrorSample((x, x), {"eps": value}, ParameterError, f"{op}.*eps.*>= 0", f"eps_{text}")

    return errors
