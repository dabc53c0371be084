"""What the two normalisations share: patterns, rules, samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import DTypeError, ParameterError, ShapeError
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.ops.fused_linear import as_vector
from fuelvk.graph.patterns import Match, P, Scalar, Term
from fuelvk.graph.samples import TILE_EDGES, Array, label, normal, ones, specials
from fuelvk.graph.types import ErrorSample, Param, Params, Sample, ShapeRule, Shapes

EPS = Param("eps", "float", default=1e-5, check=rules.not_negative)
LAST = {"axes": (-1,), "keepdims": True}


def norm_shape(op: str, names: tuple[str, ...]) -> ShapeRule:
    """Returns the rule of x[..., D] with optional vectors [D]."""

    def rule(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
        x = rules.given(shapes[0])
        rules.need_rank(op, "x", x, 1)
        for name, shape in zip(names, shapes[1:], strict=True):
            rules.need_shape(op, name, shape, (x[-1],), "one number per element of the last axis")
        return (x,)

    return rule


def mean_of(term: Term) -> P:
    """The mean over the last axis, kept."""
    return P("mean", term, when=rules.last_axis_kept)


def roots(centred: Term) -> Iterator[P]:
    """Yields the ways to write ``sqrt(mean(centred^2) + eps)``."""
    for square in (P("sqr", centred), P("mul", centred, centred)):
        yield P("sqrt", P("add", mean_of(square), Scalar("eps")))


def normalised(centred: Term) -> Iterator[P]:
    """Yields the ways to write ``centred / sqrt(mean(centred^2) + eps)``."""
    one = Scalar("one", 1.0)
    for root in roots(centred):
        yield P("div", centred, root)
        yield P("mul", centred, P("div", one, root))


def built(
    vectors: tuple[str, ...],
) -> Callable[[Match], tuple[tuple[Value | None, ...], dict[str, object]] | None]:
    """Returns the build function: x, the vectors that were matched (each must be one of D numbers), eps."""

    def build(match: Match) -> tuple[tuple[Value | None, ...], dict[str, object]] | None:
        x, eps = match.values["x"], match.scalars["eps"]
        if not eps >= 0:
            return None
        inputs: list[Value | None] = [x]
        for name in vectors:
            seen = match.values.get(name)
            vector = None if seen is None else as_vector(seen, x.shape[-1])
            if seen is not None and vector is None:
                return None
            inputs.append(vector)
        return tuple(inputs), {"eps": eps}

    return build


def scaled(g: Builder, value: Value, weight: Value | None) -> Value:
    """Returns ``value * weight`` in value's dtype, value itself without a weight."""
    result: Value = value if weight is None else g.mul(value, rules.narrow(g, weight, value.dtype))
    return result


def vector_gradient(g: Builder, grad: Value, vector: Value | None) -> Value | None:
    """Returns a wide gradient summed over every axis but the last, in the vector's dtype."""
    return None if vector is None else rules.narrow(g, rules.sum_to(g, grad, vector.shape), vector.dtype)


def norm_samples(
    vectors: tuple[tuple[bool, ...], ...],
) -> Callable[[tuple[DType, ...], np.random.Generator], Iterable[Sample]]:
    """Returns the samples; ``vectors`` lists which of the optional inputs are given, taken in turn."""

    def samples(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
        dtype = dtypes[0]
        turn = 0

        def case(x: Array, name: str, **params: float) -> Sample:
            nonlocal turn
            given = vectors[turn % len(vectors)]
            turn += 1
            extra = tuple(normal(rng, x.shape[-1:], dtype, shift=0.5) if there else None for there in given)
            return Sample((x, *extra), dict(params), f"{name}-vectors{sum(given)}")

        for cols in TILE_EDGES:
            yield case(normal(rng, (3, cols), dtype, shift=0.5), f"3x{cols}")
        for shape in ((5,), (2, 3, 4, 5), (0, 7), (3, 0), (130, 2)):
            yield case(normal(rng, shape, dtype), label(shape))
        yield case(normal(rng, (2, 384), dtype, shift=30.0), "offset", eps=1e-12)
        yield case(normal(rng, (2, 100), dtype, scale=1e-3), "eps_matters", eps=0.01)
        yield case(normal(rng, (2, 96), dtype), "eps_zero", eps=0.0)
        yield case(normal(rng, (2, 66), dtype, scale=3e3), "squares_beyond_f16")
        yield case(np.full((3, 70), 1.5).astype(dtype.numpy), "constant_rows")
        yield case(np.zeros((2, 65), dtype.numpy), "zeros-eps_zero", eps=0.0)
        rows = normal(rng, (4, 70), dtype)
        rows[0, 3], rows[1, 4], rows[2, 69] = np.nan, np.inf, -np.inf
        yield case(rows, "nan_inf_rows")
        values = specials(dtype)
        finite = values[np.abs(values.astype(np.float64)) < 1e3]
        yield case(np.stack([finite, finite[::-1]]), "small_specials")

    return samples


def norm_errors(op: str, vectors: tuple[str, ...]) -> Callable[[], Iterable[ErrorSample]]:
    """Returns the refusals of a normalisation."""

    def errors() -> Iterable[ErrorSample]:
        x, none = ones((2, 3)), (None,) * len(vectors)
        yield ErrorSample((ones(()), *none), {}, ShapeError, f"{op}.*rank", "scalar")
        yield ErrorSample((ones((2, 3), DType.I32), *none), {}, DTypeError, f"{op}.*i32", "integers")
        for eps, name in ((-1e-5, "negative"), (float("nan"), "nan")):
            yield ErrorSample((x, *none), {"eps": eps}, ParameterError, f"{op}.*eps.*>= 0", f"eps_{name}")
        for index, vector in enumerate(vectors):
            for shape in ((2,), (1, 3)):
                inputs = [x, *none]
                inputs[index + 1] = ones(shape)
                yield ErrorSample(
                    tuple(inputs), {}, ShapeError, rf"{op}.*{vector}.*\(3,\)", f"{vector}_{label(shape)}"
                )
        mixed = (x, ones((3,), DType.F16), *none[1:])
        yield ErrorSample(mixed, {}, DTypeError, f"{op}.*f32.*f16", "mixed_dtypes")

    return errors
