"""Fusion: replaces what the patterns of the fused ops match.

It looks at the graph alone, so the result is the same on every device: the fused graph is what a program
means. Ops are tried in the order of their ids, each over the whole graph from the outputs down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fuelvk.base.errors import FuelvkError
from fuelvk.graph.ir import Node, Value, apply, rewrite, topological
from fuelvk.graph.patterns import Match, Pattern, match
from fuelvk.graph.registry import FusedOpRegistry, default_fused_op_registry, find_op
from fuelvk.graph.types import FusedOpEntry


def fuse(outputs: Iterable[Value], registry: FusedOpRegistry | None = None) -> tuple[Value, ...]:
    """Returns the graph with equal nodes merged and every match of a pattern replaced by its fused op.

    A match counts only when nothing outside it uses its inner nodes, and when the fused op gives the shape
    and dtype of what it replaces.
    """
    current = merge_common(outputs)
    entries = default_fused_op_registry() if registry is None else registry
    for entry in sorted(entries, key=lambda e: e.id):
        if entry.pattern is not None:
            current = _apply(entry, entry.pattern, current)
    return join(current)


def join(outputs: Iterable[Value]) -> tuple[Value, ...]:
    """Returns the graph with ops that one primitive computes together (``FusedOpEntry.joint``) made one node.

    They must have the same inputs and parameters, and there must be two of them or more.
    """
    wanted = tuple(outputs)
    counts = Counter(_joint_key(n, n.inputs) for n in topological(wanted))
    del counts[None]
    if all(n < 2 for n in counts.values()):
        return wanted
    shared: dict[object, tuple[Value, ...]] = {}
    several = {id(n) for n in topological(wanted) if counts[_joint_key(n, n.inputs)] > 1}

    def change(node: Node, inputs: tuple[Value | None, ...]) -> tuple[Value, ...] | None:
        if id(node) not in several:
            return None
        assert isinstance(node.op, FusedOpEntry)
        assert node.op.joint is not None
        name, index = node.op.joint
        key = _joint_key(node, inputs)
        if key not in shared:
            op = find_op(name)
            assert op is not None
            shared[key] = apply(op, inputs, node.params)
        return (shared[key][index],)

    return rewrite(wanted, change)


def _joint_key(node: Node, inputs: tuple[Value | None, ...]) -> object:
    if not isinstance(node.op, FusedOpEntry) or node.op.joint is None:
        return None
    return node.op.joint[0], inputs, tuple(sorted((name, repr(v)) for name, v in node.params.items()))


def merge_common(outputs: Iterable[Value]) -> tuple[Value, ...]:
    """Returns the graph with equal applications of one op to the same inputs made one node.

    Leaves are equal only to themselves: what they hold may differ on the next run.
    """
    seen: dict[object, Node] = {}

    def change(node: Node, inputs: tuple[Value | None, ...]) -> tuple[Value, ...] | None:
        key = _key(node, inputs)
        if key is None:
            return None
        same = seen.get(key)
        if same is None:
            unchanged = inputs == node.inputs
            same = (
                node if unchanged else Node(node.op, inputs, node.params, node.shapes, node.dtypes, node.data)
            )
            seen[key] = same
        return same.outputs()

    return rewrite(outputs, change)


def _key(node: Node, inputs: tuple[Value | None, ...]) -> object:
    if node.is_leaf:
        return None
    # A float parameter by its digits: 0.0 and -0.0 are equal but not the same.
    return node.op.id, inputs, tuple(sorted((name, repr(v)) for name, v in node.params.items()))


def _apply(entry: FusedOpEntry, pattern: Pattern, outputs: tuple[Value, ...]) -> tuple[Value, ...]:
    order = topological(outputs)
    users = _users(order, outputs)
    chosen: dict[int, tuple[Match, Pattern]] = {}
    taken: set[int] = set()
    for node in reversed(order):
        if id(node) in taken or node.is_leaf:
            continue
        found = _match(entry, pattern, node, users, taken)
        if found is not None:
            chosen[id(node)] = found, pattern
            taken.update(id(n) for n in found.covered)
    if not chosen:
        return outputs
    return _replace(entry, chosen, order, outputs)


def _users(order: list[Node], outputs: tuple[Value, ...]) -> dict[int, set[int]]:
    """Returns, by node, the nodes that use it; an output of the graph counts as a user of its own (-1)."""
    users: dict[int, set[int]] = {id(n): set() for n in order}
    for node in order:
        for value in node.inputs:
            if value is not None:
                users[id(value.node)].add(id(node))
    for value in outputs:
        users[id(value.node)].add(-1)
    return users


def _match(
    entry: FusedOpEntry, pattern: Pattern, node: Node, users: dict[int, set[int]], taken: set[int]
) -> Match | None:
    root = Value(node)
    for alternative in pattern.alternatives:
        found = match(alternative, root)
        if found is None:
            continue
        inside = {id(n) for n in found.covered}
        if inside & taken or any(users[i] - inside for i in inside - {id(node)}):
            continue
        built = pattern.build(found)
        if built is None:
            continue
        inputs, params = entry.bind(*built)
        try:
            result = apply(entry, inputs, params)[0]
        except FuelvkError:
            continue  # what the op itself refuses stays as it was written
        if result.shape == root.shape and result.dtype is root.dtype:
            return found
    return None


def _replace(
    entry: FusedOpEntry,
    chosen: dict[int, tuple[Match, Pattern]],
    order: list[Node],
    outputs: tuple[Value, ...],
) -> tuple[Value, ...]:
    new: dict[int, tuple[Value, ...]] = {}
    for node in order:
        if id(node) in chosen:
            found, pattern = chosen[id(node)]
            values = {name: new[id(v.node)][v.index] for name, v in found.values.items()}
            built = pattern.build(Match(values, found.scalars, found.covered))
            assert built is not None
            inputs, params = entry.bind(*built)
            new[id(node)] = apply(entry, inputs, params)
            continue
        inputs = tuple(None if v is None else new[id(v.node)][v.index] for v in node.inputs)
        keep = node if inputs == node.inputs else Node(
            node.op, inputs, node.params, node.shapes, node.dtypes, node.data
        )  # fmt: skip
        new[id(node)] = keep.outputs()
    return tuple(new[id(v.node)][v.index] for v in outputs)
