"""Patterns of primitives that a fused op replaces.

A pattern is a small graph of ``P`` nodes over ``Capture`` leaves. Using one Python object twice means the
same value twice, so shared subexpressions (the exp of a softmax) are written as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuelvk.graph.ir import Node, Value

COMMUTATIVE = frozenset({"add", "mul", "maximum", "minimum"})


@dataclass(frozen=True, slots=True, eq=False)
class Capture:
    """Matches any value and names it."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """Matches a constant leaf all of whose elements are equal, and names its value."""

    name: str
    value: float | None = None


class P:
    """Matches an application of a primitive; ``when`` looks at the node's parameters and shapes."""

    __slots__ = ("inputs", "op", "when")

    def __init__(self, op: str, *inputs: Term, when: Callable[[Node], bool] | None = None) -> None:
        self.op = op
        self.inputs = inputs
        self.when = when


Term = Capture | Scalar | P


@dataclass(frozen=True, slots=True)
class Match:
    """What a pattern found: captured values and numbers, and the interior nodes it covers."""

    values: Mapping[str, Value]
    scalars: Mapping[str, float]
    covered: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Alternatives tried in order; ``build`` turns a match into (inputs, params) of the fused op, or
    refuses.
    """

    alternatives: tuple[P, ...]
    build: Callable[[Match], tuple[tuple[Value | None, ...], dict[str, Any]] | None]
    doc: str = field(default="")


def match(term: P, value: Value) -> Match | None:
    """Returns what ``term`` captures with its root at ``value``, or None."""
    bound: dict[int, Value] = {}
    values: dict[str, Value] = {}
    scalars: dict[str, float] = {}
    covered: list[Node] = []

    def walk(t: Term, v: Value) -> bool:
        nonlocal bound, values, scalars
        seen = bound.get(id(t))
        if seen is not None:
            return seen == v
        if isinstance(t, Capture):
            values[t.name] = v
        elif isinstance(t, Scalar):
            number = scalar_of(v)
            if number is None or (t.value is not None and number != t.value):
                return False
            scalars[t.name] = number
        else:
            node = v.node
            if node.op.name != t.op or (t.when is not None and not t.when(node)):
                return False
            given = [i for i in node.inputs if i is not None]
            if len(given) != len(t.inputs):
                return False
            orders = [given, given[::-1]] if t.op in COMMUTATIVE and len(given) == 2 else [given]
            for order in orders:
                saved = dict(bound), dict(values), dict(scalars), len(covered)
                if all(walk(a, b) for a, b in zip(t.inputs, order, strict=True)):
                    covered.append(node)
                    break
                bound, values, scalars = saved[0], saved[1], saved[2]
                del covered[saved[3] :]
            else:
                return False
        bound[id(t)] = v
        return True

    return Match(values, scalars, tuple(covered)) if walk(term, value) else None


def scalar_of(value: Value) -> float | None:
    """Returns the number a constant leaf (or a broadcast of one) holds, or None."""
    node = value.node
    while node.op.name in ("broadcast_to", "reshape") and node.inputs[0] is not None:
        node = node.inputs[0].node
    data = node.data
    if not node.is_leaf or not isinstance(data, np.ndarray) or data.size != 1:
        return None
    return float(data.reshape(()))
