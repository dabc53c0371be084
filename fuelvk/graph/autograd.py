"""Reverse mode over the graph: builds the gradient's graph out of the backward rules of the ops."""

from __future__ import annotations

from collections.abc import Sequence

from fuelvk.base.errors import DTypeError, ShapeError, UnsupportedError
from fuelvk.graph.ir import Builder, Node, Value, leaf, rewrite, topological
from fuelvk.graph.types import DECOMPOSE, NOT_DIFFERENTIABLE, Decompose, FusedOpEntry, Params, Values


def gradients(
    outputs: Sequence[Value], grads: Sequence[Value | None], wrt: Sequence[Value], builder: Builder
) -> list[Value | None]:
    """Returns, for each value of ``wrt``, the sum over outputs of ``grad * d output / d value``.

    A None in ``grads`` stands for zero; a None in the result says that no output depends on the value by way
    of floats. Contributions to one value are added in the reverse of the graph's topological order. Raises
    UnsupportedError where a gradient would have to pass through an op that has none.
    """
    sums: dict[Value, Value] = {}
    for output, grad in zip(outputs, grads, strict=True):
        if grad is not None:
            _check(output, grad)
            _accumulate(sums, output, grad, builder)
    order = topological(outputs)
    needed = _depend_on(order, wrt)
    for node in reversed(order):
        if node.is_leaf or id(node) not in needed:
            continue
        results = node.outputs()
        seeds = tuple(sums.get(v) for v in results)
        if all(s is None for s in seeds):
            continue
        for value, grad in zip(node.inputs, _backward(node, results, seeds, builder), strict=True):
            if value is not None and grad is not None and id(value.node) in needed:
                _check(value, grad)
                _accumulate(sums, value, grad, builder)
    return [sums.get(v) for v in wrt]


def _accumulate(sums: dict[Value, Value], value: Value, grad: Value, builder: Builder) -> None:
    before = sums.get(value)
    sums[value] = grad if before is None else builder.add(before, grad)


def _check(value: Value, grad: Value) -> None:
    if grad.shape != value.shape:
        raise ShapeError("a gradient has another shape than its value", seen=grad.shape, allowed=value.shape)
    if grad.dtype is not value.dtype:
        raise DTypeError(
            "a gradient has another dtype than its value", seen=grad.dtype.key, allowed=value.dtype.key
        )


def _depend_on(order: Sequence[Node], wrt: Sequence[Value]) -> set[int]:
    """Returns the ids of the nodes that are, or depend on, a value of ``wrt``."""
    needed = {id(v.node) for v in wrt}
    for node in order:
        if any(v is not None and id(v.node) in needed for v in node.inputs):
            needed.add(id(node))
    return needed


def _backward(node: Node, results: tuple[Value, ...], seeds: Values, builder: Builder) -> Values:
    rule = node.op.backward
    if rule is NOT_DIFFERENTIABLE:
        raise UnsupportedError(
            f"{node.op.name} has no gradient", hint="detach its input, or leave it out of wrt"
        )
    if rule is DECOMPOSE:
        assert isinstance(node.op, FusedOpEntry)
        return by_decomposition(node.op.decompose, node.inputs, node.params, seeds, builder)
    assert callable(rule)
    return rule(builder, node.inputs, results, seeds, node.params)


def by_decomposition(
    decompose: Decompose, inputs: Values, params: Params, seeds: Values, builder: Builder
) -> Values:
    """Differentiates a decomposition over stand-ins of the inputs, which may depend on one another."""
    stand_ins = tuple(None if v is None else leaf(None, v.shape, v.dtype) for v in inputs)
    parts = decompose(builder, stand_ins, params)
    present = [v for v in stand_ins if v is not None]
    found = gradients(parts, seeds, present, builder)
    actual = {
        id(s.node): v for s, v in zip(stand_ins, inputs, strict=True) if s is not None and v is not None
    }

    def change(inner: Node, inputs: tuple[Value | None, ...]) -> tuple[Value, ...] | None:
        value = actual.get(id(inner))
        return None if value is None else (value,)

    kept = iter(rewrite([v for v in found if v is not None], change))
    by_input = iter([None if v is None else next(kept) for v in found])
    return tuple(None if s is None else next(by_input) for s in stand_ins)
