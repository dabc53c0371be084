"""Fusion: what people write becomes the fused op, what only looks like it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fuelvk.base.dtypes import DType
from fuelvk.graph import ir
from fuelvk.graph.fuse import fuse, merge_common
from fuelvk.graph.ir import Value
from fuelvk.graph.registry import FusedOpRegistry, builder
from tests.support.interpret import evaluate

g = builder()
RNG = np.random.default_rng(4)
LAST = {"axes": (-1,), "keepdims": True}


def leaf(*shape: int, dtype: DType = DType.F64) -> Value:
    return ir.constant(np.asarray(RNG.standard_normal(shape)).astype(dtype.numpy))


def number(value: float, dtype: DType = DType.F64) -> Value:
    return g.constant(value, dtype)


def names(*outputs: Value) -> list[str]:
    """Returns the ops of a graph, leaves left out, inputs first."""
    return [n.op.name for n in ir.topological(outputs) if not n.is_leaf]


def check(output: Value, expected: list[str]) -> ir.Node:
    """Fuses, compares the ops that remain and the values they give, and returns the last node."""
    (fused,) = fuse((output,))
    assert names(fused) == expected
    before, after = evaluate([output, fused])
    assert before is not None
    assert after is not None
    assert (fused.shape, fused.dtype) == (output.shape, output.dtype)
    np.testing.assert_allclose(
        after.astype(np.float64),
        before.astype(np.float64),
        rtol=2e-2 if output.dtype is DType.F16 else 1e-10,
        atol=1e-3 if output.dtype is DType.F16 else 1e-12,
    )
    return fused.node


def softmax(x: Value, **axes: Any) -> Value:
    e = g.exp(g.sub(x, g.max(x, **(axes or LAST))))
    return g.div(e, g.sum(e, **(axes or LAST)))


@pytest.mark.parametrize("axes", [-1, (2,), 2])
@pytest.mark.parametrize("dtype", [DType.F64, DType.F16])
def test_softmax(axes: Any, dtype: DType) -> None:
    check(softmax(leaf(2, 3, 5, dtype=dtype), axes=axes, keepdims=True), ["softmax_last_dim"])


def test_softmax_all_axes_of_a_vector() -> None:
    check(softmax(leaf(7), axes=None, keepdims=True), ["softmax_last_dim"])


def test_softmax_with_the_exponential_written_twice() -> None:
    x = leaf(3, 5)
    twice = [g.exp(g.sub(x, g.max(x, **LAST))) for _ in range(2)]
    check(g.div(twice[0], g.sum(twice[1], **LAST)), ["softmax_last_dim"])


def test_not_a_softmax() -> None:
    x = leaf(4, 4)
    other = softmax(x, axes=(0,), keepdims=True)
    assert names(*fuse((other,))) == names(other)
    shifted = g.exp(g.sub(x, g.max(leaf(4, 4), **LAST)))
    wrong = g.div(shifted, g.sum(shifted, **LAST))
    assert "softmax_last_dim" not in names(*fuse((wrong,)))
    square = leaf(4, 4)
    e = g.exp(g.sub(square, g.max(square, axes=(-1,))))  # keepdims forgotten: broadcasts the other way
    assert "softmax_last_dim" not in names(*fuse((g.div(e, g.sum(e, axes=(-1,))),)))


def test_inner_value_used_outside_is_not_fused_away() -> None:
    x = leaf(3, 5)
    e = g.exp(g.sub(x, g.max(x, **LAST)))
    y = g.div(e, g.sum(e, **LAST))
    assert "softmax_last_dim" not in names(*fuse((y, e)))
    assert "softmax_last_dim" not in names(*fuse((g.add(y, e),)))
    assert names(*fuse((y, x))) == ["softmax_last_dim"]


def layer_norm(x: Value, root: Callable[[Value, Value], Value], square: Callable[[Value], Value]) -> Value:
    centred = g.sub(x, g.mean(x, **LAST))
    return root(centred, g.sqrt(g.add(g.mean(square(centred), **LAST), number(1e-5, x.dtype))))


ROOTS: dict[str, Callable[[Value, Value], Value]] = {
    "divided": g.div,
    "reciprocal": lambda d, r: g.mul(d, g.div(number(1.0, d.dtype), r)),
    "reciprocal_first": lambda d, r: g.mul(g.div(number(1.0, d.dtype), r), d),
}
SQUARES: dict[str, Callable[[Value], Value]] = {"sqr": g.sqr, "mul": lambda d: g.mul(d, d)}


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("square", SQUARES)
@pytest.mark.parametrize("vectors", ["none", "weight", "bias", "both"])
def test_layer_norm(root: str, square: str, vectors: str) -> None:
    x, weight, bias = leaf(2, 3, 6), leaf(6), leaf(6)
    y = layer_norm(x, ROOTS[root], SQUARES[square])
    if vectors in ("weight", "both"):
        y = g.mul(weight, y)
    if vectors in ("bias", "both"):
        y = g.add(y, bias)
    node = check(y, ["layer_norm_last_dim"])
    assert node.inputs == (
        x,
        weight if vectors in ("weight", "both") else None,
        bias if vectors in ("bias", "both") else None,
    )
    assert node.params["eps"] == 1e-5


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_rms_norm(root: str, weighted: bool) -> None:
    x, weight = leaf(2, 3, 6), leaf(6)
    y = ROOTS[root](x, g.sqrt(g.add(number(1e-6), g.mean(g.sqr(x), **LAST))))
    node = check(g.mul(y, weight) if weighted else y, ["rms_norm_last_dim"])
    assert node.inputs == (x, weight if weighted else None)
    assert node.params["eps"] == 1e-6


def test_layer_norm_without_shared_difference() -> None:
    x = leaf(3, 6)
    a, b = (g.sub(x, g.mean(x, **LAST)) for _ in range(2))
    check(g.div(a, g.sqrt(g.add(g.mean(g.sqr(b), **LAST), number(0.1)))), ["layer_norm_last_dim"])


def test_a_weight_of_another_shape_stays_outside() -> None:
    y = layer_norm(leaf(2, 3, 6), ROOTS["divided"], SQUARES["sqr"])
    check(g.mul(y, leaf(2, 3, 6)), ["layer_norm_last_dim", "mul"])
    check(g.mul(y, number(3.0)), ["layer_norm_last_dim", "mul"])
    check(g.add(y, leaf(3, 1)), ["layer_norm_last_dim", "add"])


def test_an_eps_that_is_no_constant() -> None:
    x, eps = leaf(3, 6), leaf(3, 1)
    y = g.div(x, g.sqrt(g.add(g.mean(g.sqr(x), **LAST), g.abs(eps))))
    assert "rms_norm_last_dim" not in names(*fuse((y,)))
    unknown = ir.leaf(None, (), DType.F64)  # an input of a captured function: known at run time only
    z = g.div(x, g.sqrt(g.add(g.mean(g.sqr(x), **LAST), unknown)))
    assert "rms_norm_last_dim" not in names(*fuse((z,)))


@pytest.mark.parametrize(
    ("a", "b", "bias"),
    [
        ((2, 3), (3, 4), (4,)),
        ((2, 3), (3, 4), (1, 4)),
        ((5, 2, 3), (3, 4), (4,)),
        ((5, 2, 3), (5, 3, 4), (1, 1, 4)),
    ],
)
def test_linear(a: tuple[int, ...], b: tuple[int, ...], bias: tuple[int, ...]) -> None:
    left, right, vector = leaf(*a), leaf(*b), leaf(*bias)
    reshaped = ["reshape"] if len(bias) > 1 else []
    check(g.add(g.matmul(left, right), vector), [*reshaped, "fused_linear"])
    check(g.add(vector, g.matmul(left, right)), [*reshaped, "fused_linear"])


def test_linear_with_a_broadcast_bias() -> None:
    bias = leaf(4)
    spread = g.broadcast_to(g.reshape(bias, shape=(1, 4)), shape=(2, 4))
    node = check(g.add(g.matmul(leaf(2, 3), leaf(3, 4)), spread), ["fused_linear"])
    assert node.inputs[2] == bias


@pytest.mark.parametrize("other", [(2, 4), (2, 1), (), (7, 2, 4)])
def test_not_a_linear(other: tuple[int, ...]) -> None:
    y = g.add(g.matmul(leaf(2, 3), leaf(3, 4)), leaf(*other))
    check(y, ["matmul", "add"])


def test_vectors_are_no_linear() -> None:
    check(g.add(g.matmul(leaf(3), leaf(3, 4)), leaf(4)), ["matmul", "add"])


SCALINGS: dict[str, tuple[Callable[[Value, Value], Value], float]] = {
    "scores_times": (lambda q, k: g.mul(g.matmul(q, k), number(0.25)), 0.25),
    "scores_over": (lambda q, k: g.div(g.matmul(q, k), number(4.0)), 0.25),
    "query_times": (lambda q, k: g.matmul(g.mul(q, number(0.25)), k), 0.25),
    "unscaled": (g.matmul, 1.0),
}


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("kv_heads", [1, 3])
@pytest.mark.parametrize("fused_already", [False, True])
def test_attention(scaling: str, kv_heads: int, fused_already: bool) -> None:
    scores, scale = SCALINGS[scaling]
    q, k, v = leaf(2, 3, 4, 8), leaf(2, kv_heads, 5, 8), leaf(2, kv_heads, 5, 8)
    s = scores(q, g.transpose(k, axes=(0, 1, -1, -2)))
    p = g.softmax_last_dim(s) if fused_already else softmax(s)
    node = check(g.matmul(p, v), ["flash_attn"])
    assert node.inputs == (q, k, v, None, None)
    assert node.params["scale"] == scale


def test_not_an_attention() -> None:
    q, k, v = leaf(1, 2, 4, 8), leaf(1, 2, 5, 8), leaf(1, 2, 5, 6)
    turned = g.transpose(k, axes=(0, 1, 3, 2))
    narrower = g.matmul(softmax(g.matmul(q, turned)), v)
    assert names(*fuse((narrower,)))[-1] == "matmul"
    wide = leaf(1, 1, 2, 300)
    too_wide = g.matmul(softmax(g.matmul(wide, g.transpose(wide, axes=(0, 1, 3, 2)))), wide)
    assert "flash_attn" not in names(*fuse((too_wide,)))
    kept = softmax(g.matmul(q, turned))
    assert "flash_attn" not in names(*fuse((g.matmul(kept, leaf(1, 2, 5, 8)), kept)))


def test_a_whole_block() -> None:
    """Two fused ops that feed each other, and a residual that uses an input twice."""
    x, w, b = leaf(3, 6), leaf(6, 6), leaf(6)
    y = g.add(g.matmul(layer_norm(x, ROOTS["divided"], SQUARES["sqr"]), w), b)
    check(g.add(x, softmax(y)), ["layer_norm_last_dim", "fused_linear", "softmax_last_dim", "add"])


def test_fusing_again_changes_nothing() -> None:
    x, w, b = leaf(3, 6), leaf(6, 6), leaf(6)
    once = fuse((softmax(g.add(g.matmul(x, w), b)),))
    assert fuse(once) == once


def test_registry_without_patterns_leaves_the_graph() -> None:
    y = softmax(leaf(3, 5))
    assert names(*fuse((y,), FusedOpRegistry())) == names(y)


def test_merge_common() -> None:
    x, y = leaf(3), leaf(3)
    merged = merge_common((g.add(g.exp(x), g.exp(x)), g.exp(y)))
    assert names(*merged) == ["exp", "add", "exp"]
    assert names(*merge_common((g.add(g.sum(leaf(3)), g.sum(leaf(3))),))) == ["sum", "sum", "add"]
    different = merge_common((g.sum(x, keepdims=True), g.sum(x)))
    assert names(*different) == ["sum", "sum"]


def max_gradient(x: Value, dy: Value, *, swapped: bool = False, cast: bool = False, **axes: Any) -> Value:
    """Returns the gradient of a maximum as one writes it: ties counted, the gradient divided, NaN kept."""
    one, zero = (number(v, x.dtype) for v in (1.0, 0.0))
    top = g.max(x, **(axes or LAST))
    hit = g.equal(top, x) if swapped else g.equal(x, top)
    ties = g.cast(hit, dtype=x.dtype) if cast else g.where(hit, one, zero)
    shared = g.where(hit, g.div(dy, g.sum(ties, **(axes or LAST))), zero)
    return g.where(g.equal(top, top), shared, top)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("cast", [False, True])
def test_max_gradient(swapped: bool, cast: bool) -> None:
    x = ir.constant(np.array([[1.0, 3.0, 3.0], [np.nan, 1.0, 2.0], [-np.inf] * 3, [0.0, -0.0, -1.0]]))
    dy = leaf(4, 1)
    node = check(max_gradient(x, dy, swapped=swapped, cast=cast), ["reduce_max_to_backward"])
    assert node.inputs == (x, dy)


def test_max_gradient_over_any_axes() -> None:
    x, dy = leaf(2, 3, 5), leaf(1, 3, 1)
    check(max_gradient(x, dy, axes=(0, -1), keepdims=True), ["reduce_max_to_backward"])
    check(max_gradient(x, leaf(1, 1, 1), axes=None, keepdims=True), ["reduce_max_to_backward"])


def test_not_a_max_gradient() -> None:
    x = leaf(4, 4)
    wide = max_gradient(x, leaf(4, 4))  # a gradient of every element, not of every window
    assert names(*fuse((wide,))) == names(wide)
    one, zero, top = number(1.0), number(0.0), g.max(x, **LAST)
    hit = g.equal(x, top)
    other = g.sum(g.where(hit, one, zero), axes=(0,), keepdims=True)  # counts along the other axis
    wrong = g.where(g.equal(top, top), g.where(hit, g.div(leaf(4, 1), other), zero), top)
    assert names(*fuse((wrong,))) == names(wrong)
    zeros = g.where(hit, g.div(leaf(4, 1), g.sum(g.where(hit, one, zero), **LAST)), zero)  # NaN gives 0
    assert names(*fuse((zeros,))) == names(zeros)
