"""Turns a graph into a plan: fuse, resolve views, route each node, decompose what nothing serves, place memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import ToleranceError, UnsupportedError
from fuelvk.base.shapes import Layout
from fuelvk.graph.fuse import fuse
from fuelvk.graph.ir import Builder, Node, Value, topological
from fuelvk.graph.registry import builder as default_builder
from fuelvk.graph.registry import find_op
from fuelvk.graph.types import FusedOpEntry, OpEntry, PrimitiveEntry
from fuelvk.kernels.types import FusedKernelRegistry
from fuelvk.optimizer.plan import Plan, Ref, Slot, SlotKind, Step, pack_arena
from fuelvk.optimizer.route import SET_ASIDE, Doubts, Evidence, Route, route
from fuelvk.optimizer.tolerance import Tolerance
from fuelvk.optimizer.trust import mending, name_passed_over


@dataclass(frozen=True, slots=True)
class Target:
    """Where a plan is to run: backends in order of preference with their capabilities, and what is believed."""

    kernels: FusedKernelRegistry
    order: tuple[str, ...]
    capabilities: Mapping[str, Any]
    evidence: Evidence | None = None
    doubts: Doubts | None = None


def lower(
    outputs: Sequence[Value],
    inputs: Sequence[Value],
    target: Target,
    tolerance: Tolerance,
    *,
    fusing: bool = True,
) -> Plan:
    """Returns the plan that computes ``outputs`` from the leaves ``inputs``; other leaves become constants.

    Raises UnsupportedError when a node has no admitted implementation and no decomposition the tolerance allows.
    """
    graph = fuse(tuple(outputs)) if fusing else tuple(outputs)
    lowering = _Lowering(target, tolerance, default_builder())
    input_slots = tuple(lowering.leaf(v, SlotKind.INPUT).slot for v in inputs)
    for node in topological(graph):
        lowering.node(node)
    refs = tuple(lowering.output(v) for v in graph)
    return lowering.finish(input_slots, refs)


def _advice(found: Route) -> str:
    """Returns what to do when nothing serves a call."""
    aside = dict.fromkeys(
        (found.op.name, c.backend) for c in found.candidates if c.reason.startswith(SET_ASIDE)
    )
    if aside:
        return mending(aside)
    return "choose another device or dtype, or give a tolerance that admits one of these"


@dataclass(slots=True)
class _Lowering:
    target: Target
    tolerance: Tolerance
    builder: Builder
    refs: dict[Value, Ref] = field(default_factory=dict)
    slots: list[Slot] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    constants: list[tuple[int, Any]] = field(default_factory=list)

    def slot(self, nbytes: int, kind: SlotKind) -> int:
        self.slots.append(Slot(nbytes, kind))
        return len(self.slots) - 1

    def leaf(self, value: Value, kind: SlotKind) -> Ref:
        layout = Layout.of(value.shape)
        slot = self.slot(layout.elements * value.dtype.size, kind)
        ref = self.refs[value] = Ref(slot, layout, value.dtype)
        if kind is SlotKind.CONSTANT:
            self.constants.append((slot, value.node.data))
        return ref

    def node(self, node: Node) -> None:
        if node.outputs()[0] in self.refs:
            return
        if node.is_leaf:
            self.leaf(node.outputs()[0], SlotKind.CONSTANT)
        elif isinstance(node.op, PrimitiveEntry) and node.op.view_rule is not None:
            self.view(node, node.op)
        else:
            self.compute(node)

    def view(self, node: Node, op: PrimitiveEntry) -> None:
        source = node.inputs[0]
        assert source is not None
        assert op.view_rule is not None
        ref = self.refs[source]
        layout = op.view_rule(ref.layout, node.params)
        if layout is None:
            ref = self.copied(ref)
            layout = op.view_rule(ref.layout, node.params)
            assert layout is not None
        self.refs[node.outputs()[0]] = Ref(ref.slot, layout, ref.dtype)

    def compute(self, node: Node) -> None:
        inputs = tuple(None if v is None else self.refs[v] for v in node.inputs)
        found = self.route(node.op, inputs, node.shapes, node.dtypes, node.params)
        if found.chosen is None:
            self.decomposed(node, found)
            return
        outputs = tuple(self.fresh(s, d) for s, d in zip(node.shapes, node.dtypes, strict=True))
        self.emit(node.op, found, inputs, outputs, node.params)
        for value, ref in zip(node.outputs(), outputs, strict=True):
            self.refs[value] = ref

    def decomposed(self, node: Node, found: Route) -> None:
        """Lowers a node through its decomposition, where the tolerance allows other bits than the fused op's, or where
        the decomposition is what the op means.
        """
        op = node.op
        strict = self.tolerance.is_strict
        if not isinstance(op, FusedOpEntry) or (strict and not op.canonical_decomposition):
            admitted = any(
                c.unfit
                and c.impl.admits(found.shapes, node.params, self.target.capabilities.get(c.backend)) is None
                for c in found.candidates
            )
            fault = ToleranceError if admitted else UnsupportedError
            raise fault(
                f"no implementation of {op.name} serves this call under a {self.tolerance} tolerance",
                asked=", ".join(d.key for d in found.dtypes) + f" on {' or '.join(self.target.order)}",
                seen=found.refusals(),
                hint=_advice(found),
            )
        self.name_passed_over(found, "its decomposition")
        # The inputs are computed already; leaves stand for them so that only the new nodes are walked.
        stand_ins = tuple(
            None if v is None else Value(Node(v.node.op, (), {}, (v.shape,), (v.dtype,)), 0)
            for v in node.inputs
        )
        for value, stand_in in zip(node.inputs, stand_ins, strict=True):
            if value is not None and stand_in is not None:
                self.refs[stand_in] = self.refs[value]
        results = op.decompose(self.builder, stand_ins, node.params)
        for inner in topological(results):
            self.node(inner)
        for value, result in zip(node.outputs(), results, strict=True):
            self.refs[value] = self.refs[result]

    def route(
        self,
        op: OpEntry,
        inputs: Sequence[Ref | None],
        shapes: Sequence[tuple[int, ...]],
        dtypes: Sequence[DType],
        params: Mapping[str, Any],
    ) -> Route:
        found = route(
            op,
            (*(None if r is None else r.dtype for r in inputs), *dtypes),
            (*(None if r is None else r.layout.shape for r in inputs), *shapes),
            params,
            kernels=self.target.kernels,
            capabilities=self.target.capabilities,
            order=self.target.order,
            tolerance=self.tolerance,
            evidence=self.target.evidence,
            doubts=self.target.doubts,
        )
        if found.chosen is not None:
            self.name_passed_over(found, f"{found.chosen.impl.name} on {found.chosen.backend}")
        return found

    def name_passed_over(self, found: Route, instead: str) -> None:
        """Warns of kernels that do not serve for want of evidence, where evidence is asked for at all."""
        if self.target.evidence is not None:
            over = [(c.impl, c.reason) for c in found.passed_over()]
            name_passed_over(found.op.name, over, instead)

    def fresh(self, shape: tuple[int, ...], dtype: DType) -> Ref:
        layout = Layout.of(shape)
        return Ref(self.slot(layout.elements * dtype.size, SlotKind.TEMP), layout, dtype)

    def emit(
        self,
        op: OpEntry,
        found: Route,
        inputs: Sequence[Ref | None],
        outputs: tuple[Ref, ...],
        params: Mapping[str, Any],
    ) -> None:
        assert found.chosen is not None
        strided = found.chosen.impl.caps.strided_input
        ready = tuple(
            r if r is None or strided or r.layout.is_contiguous() else self.copied(r) for r in inputs
        )
        self.steps.append(Step(op, found, ready, outputs, params))

    def copied(self, ref: Ref) -> Ref:
        """Emits a strided copy into fresh contiguous memory."""
        copy = find_op("copy")
        assert copy is not None
        shape = ref.layout.shape
        target = self.fresh(shape, ref.dtype)
        found = self.route(copy, (ref,), (shape,), (ref.dtype,), {})
        if found.chosen is None:
            raise UnsupportedError(
                "no copy kernel serves this dtype", asked=ref.dtype.key, seen=found.refusals()
            )
        self.steps.append(Step(copy, found, (ref,), (target,), {}))
        return target

    def output(self, value: Value) -> Ref:
        """Gives a result memory of its own: contiguous, at offset 0, owned by the caller."""
        ref = self.refs[value]
        slot = self.slots[ref.slot]
        whole = ref.layout.is_contiguous() and ref.layout.offset == 0
        nbytes = ref.layout.elements * ref.dtype.size
        if not whole or slot.kind is not SlotKind.TEMP or slot.nbytes != nbytes:
            ref = self.copied(ref)
            slot = self.slots[ref.slot]
        slot.kind = SlotKind.OUTPUT
        return Ref(ref.slot, Layout.of(ref.layout.shape), ref.dtype)

    def write_in_place(self) -> None:
        """Lets an op that may destroy an input write its result where that input lies.

        Where the input is a whole temporary of the plan that no other step reads later: what the caller gave or gets
        is never written over. The kernel then reads and writes one memory, which C kernels are promised not to.
        """
        last = {r.slot: n for n, s in enumerate(self.steps) for r in (*s.inputs, *s.outputs) if r is not None}
        moved: dict[int, int] = {}
        for number, step in enumerate(self.steps):
            place = step.op.destructive_input if isinstance(step.op, FusedOpEntry) else None
            given = None if place is None else step.inputs[place]
            if given is None or step.backend == "cpu" or last[given.slot] != number:
                continue
            (result,) = step.outputs
            slot = self.slots[given.slot]
            same = slot.nbytes == self.slots[result.slot].nbytes and given.layout.is_contiguous()
            alone = sum(r is not None and r.slot == given.slot for r in step.inputs) == 1
            if slot.kind is SlotKind.TEMP and same and alone:
                moved[given.slot] = result.slot
                slot.nbytes = 0

        def placed(ref: Ref | None) -> Any:
            while ref is not None and ref.slot in moved:
                ref = replace(ref, slot=moved[ref.slot])
            return ref

        if moved:
            self.steps = [
                replace(s, inputs=tuple(map(placed, s.inputs)), outputs=tuple(map(placed, s.outputs)))
                for s in self.steps
            ]

    def finish(self, inputs: tuple[int, ...], outputs: tuple[Ref, ...]) -> Plan:
        self.write_in_place()
        for number, step in enumerate(self.steps):
            for ref in (*step.inputs, *step.outputs):
                if ref is not None:
                    slot = self.slots[ref.slot]
                    slot.first = number if slot.first < 0 else slot.first
                    slot.last = number
        arena = pack_arena(self.slots)
        return Plan(tuple(self.steps), tuple(self.slots), inputs, tuple(self.constants), outputs, arena)
