"""The immutable graph: applications of ops to values. Nothing here runs anything."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import UnknownNameError, closest
from fuelvk.base.shapes import Shape
from fuelvk.graph.types import Family, OpEntry, PrimitiveEntry, PrimitiveId

_serial = itertools.count()


def _leaf_rule(*_: Any) -> Any:
    raise AssertionError("a leaf's shape is its data's")


LEAF = PrimitiveEntry(
    id=PrimitiveId("leaf"), family=Family.VIEW, args=(), shape_rule=_leaf_rule, dtype_rule=_leaf_rule,
    doc="A value that is given, not computed.",
)  # fmt: skip


class Node:
    """One application of an op. ``data`` is set on leaves only: an array, or a runtime's storage."""

    __slots__ = ("data", "dtypes", "inputs", "op", "params", "serial", "shapes")

    def __init__(
        self,
        op: OpEntry,
        inputs: tuple[Value | None, ...],
        params: Mapping[str, Any],
        shapes: tuple[Shape, ...],
        dtypes: tuple[DType, ...],
        data: Any = None,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.params = params
        self.shapes = shapes
        self.dtypes = dtypes
        self.data = data
        self.serial = next(_serial)

    @property
    def is_leaf(self) -> bool:
        return self.op is LEAF

    @property
    def is_view(self) -> bool:
        return isinstance(self.op, PrimitiveEntry) and self.op.view_rule is not None

    def outputs(self) -> tuple[Value, ...]:
        return tuple(Value(self, i) for i in range(len(self.shapes)))

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.shapes} {self.dtypes}>"


class Value:
    """One output of a node."""

    __slots__ = ("index", "node")

    def __init__(self, node: Node, index: int = 0) -> None:
        self.node = node
        self.index = index

    @property
    def shape(self) -> Shape:
        return self.node.shapes[self.index]

    @property
    def dtype(self) -> DType:
        return self.node.dtypes[self.index]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and other.node is self.node and other.index == self.index

    def __hash__(self) -> int:
        return hash((id(self.node), self.index))

    def __repr__(self) -> str:
        return f"<{self.node.op.name}:{self.index} {self.shape} {self.dtype.key}>"


def leaf(data: Any, shape: Shape, dtype: DType) -> Value:
    """Returns a value that stands for ``data``."""
    return Value(Node(LEAF, (), {}, (tuple(shape),), (dtype,), data))


def constant(array: np.ndarray[Any, Any]) -> Value:
    """Returns a leaf that holds a NumPy array of a supported dtype."""
    return leaf(array, array.shape, DType.of(array))


def apply(op: OpEntry, inputs: tuple[Value | None, ...], params: Mapping[str, Any]) -> tuple[Value, ...]:
    """Applies ``op`` after its shape and dtype rules agreed; ``params`` are already converted."""
    dtypes = op.dtype_rule(tuple(None if v is None else v.dtype for v in inputs), params)
    given = tuple(None if v is None else v.shape for v in inputs)
    shapes = op.shape_rule(given, params)
    if op.check is not None:
        op.check(given, tuple(None if v is None else v.dtype for v in inputs), params)
    return Node(op, inputs, params, shapes, dtypes).outputs()


class Builder:
    """Makes nodes by name: ``g.add(a, b)``, ``g.sum(x, axes=(-1,), keepdims=True)``.

    ``find`` maps a name to its entry or None; a single output comes back as one Value.
    """

    def __init__(self, find: Callable[[str], OpEntry | None], names: Iterable[str] = ()) -> None:
        self._find = find
        self._names = tuple(names)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = self._find(name)
        if op is None:
            raise UnknownNameError("unknown op", asked=name, hint=closest(name, self._names) or None)
        entry = op

        def build(*inputs: Value | None, **params: Any) -> Value | tuple[Value, ...]:
            bound, converted = entry.bind(inputs, params)
            outputs = apply(entry, bound, converted)
            return outputs[0] if len(outputs) == 1 else outputs

        return build

    @staticmethod
    def constant(array: np.ndarray[Any, Any] | float, dtype: DType | None = None) -> Value:
        """Returns a leaf; a number needs ``dtype``."""
        data = np.asarray(array) if dtype is None else np.asarray(array).astype(dtype.numpy)
        return constant(data)


def topological(outputs: Iterable[Value]) -> list[Node]:
    """Returns every node the outputs depend on, inputs before users, in a fixed order."""
    order: list[Node] = []
    done: set[int] = set()
    stack: list[tuple[Node, Iterator[Value | None]]] = []
    for output in outputs:
        if id(output.node) in done:
            continue
        done.add(id(output.node))
        stack.append((output.node, iter(output.node.inputs)))
        while stack:
            node, rest = stack[-1]
            for value in rest:
                if value is not None and id(value.node) not in done:
                    done.add(id(value.node))
                    stack.append((value.node, iter(value.node.inputs)))
                    break
            else:
                order.append(node)
                stack.pop()
    return order


def rewrite(
    outputs: Iterable[Value], change: Callable[[Node, tuple[Value | None, ...]], tuple[Value, ...] | None]
) -> tuple[Value, ...]:
    """Rebuilds the graph bottom-up; ``change`` gets each node with its new inputs and may replace its
    outputs.
    """
    wanted = tuple(outputs)
    new: dict[int, tuple[Value, ...]] = {}
    for node in topological(wanted):
        inputs = tuple(None if v is None else new[id(v.node)][v.index] for v in node.inputs)
        replaced = change(node, inputs)
        if replaced is None:
            same = all(a is b or a == b for a, b in zip(inputs, node.inputs, strict=True))
            keep = node if same else Node(node.op, inputs, node.params, node.shapes, node.dtypes, node.data)
            replaced = keep.outputs()
        new[id(node)] = replaced
    return tuple(new[id(v.node)][v.index] for v in wanted)
