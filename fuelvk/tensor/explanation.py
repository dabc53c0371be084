"""``fv.explain``: which kernels were considered for an op or a tensor's plan, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Shape
from fuelvk.graph import ir
from fuelvk.graph.types import FusedOpId, OpEntry, PrimitiveId
from fuelvk.optimizer import tolerance as tolerances
from fuelvk.optimizer.lower import lower
from fuelvk.optimizer.route import Route, route
from fuelvk.optimizer.tolerance import Tolerance
from fuelvk.optimizer.trust import grouped, mending
from fuelvk.runtime.devices import Device
from fuelvk.runtime.devices import device as find_device
from fuelvk.tensor.calls import entry_named
from fuelvk.tensor.core import Tensor
from fuelvk.tensor.realize import resolved, signature


@dataclass(frozen=True, slots=True)
class RouteRow:
    """One implementation that was considered for one op; ``set_aside`` are claims of it that are not believed."""

    op: str
    impl: str
    backend: str
    dtypes: tuple[str, ...]
    revision: str
    claim: str
    notes: str
    flops: int
    bytes_moved: int
    overhead_ns: int
    verdict: str
    reason: str
    set_aside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """What was asked, where, and a row per implementation considered; ``str`` renders it for people."""

    subject: str
    device: str
    tolerance: str
    routes: tuple[RouteRow, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def advice(self) -> str:
        """The commands that try the claims that are set aside; empty where none are."""
        stale = dict.fromkeys((r.op, r.backend) for r in self.routes if r.set_aside)
        return mending(stale)

    def __str__(self) -> str:
        lines = [f"{self.subject} on {self.device}, tolerance {self.tolerance}"]
        for row in self.routes:
            mark = {"chosen": "->", "alternative": "  ", "refused": " x"}[row.verdict]
            lines.append(
                f"{mark} {row.op}: {row.impl}[{','.join(row.dtypes)}] on {row.backend}, revision {row.revision}; "
                f"claims {row.claim}; {row.flops} flops, {row.bytes_moved} bytes; {row.verdict}: {row.reason}"
            )
            if row.set_aside and "set aside: " not in row.reason:
                lines.append(f"     set aside: {grouped(row.set_aside)}")
        if self.advice:
            lines.append(self.advice)
        return "\n".join(lines)


def explain(
    subject: Tensor | str | FusedOpId | PrimitiveId,
    *,
    shapes: Sequence[Shape] | None = None,
    dtype: DType | str = DType.F32,
    device: str | Device | None = None,
    tolerance: Tolerance | None = None,
    **params: Any,
) -> Explanation:
    """Returns the routes considered for a tensor's plan, or for one call of an op on inputs of ``shapes``.

    For an op without shapes, every registered implementation is listed with what the device says of it.
    """
    chosen = tolerances.effective(tolerance)
    if isinstance(subject, Tensor):
        where = subject.device
        values = [resolved(subject._value)]
        plan = lower(values, signature(values)[1], where.target(), chosen)
        rows = tuple(row for step in plan.steps for row in _rows(step.route))
        return Explanation(repr(subject), where.spec, str(chosen), rows)
    entry = entry_named(subject)
    where = find_device(device)
    found = _route_of(entry, shapes, DType.of(dtype), where, chosen, params)
    return Explanation(entry.signature(), where.spec, str(chosen), _rows(found))


def _route_of(
    entry: OpEntry,
    shapes: Sequence[Shape] | None,
    dtype: DType,
    device: Device,
    tolerance: Tolerance,
    params: dict[str, Any],
) -> Route:
    target = device.target()
    wanted = next((d for d in entry.dtypes if d[0] is dtype), None)
    if wanted is None:
        wanted = (dtype,) * (len(entry.args) + 1)
    given = (
        [None if s is None else tuple(s) for s in shapes]
        if shapes is not None
        else [(8, 64)] * len(entry.args)
    )
    if shapes is not None and len(given) == 1:
        required = sum(not a.optional for a in entry.args)
        given = given * required
    padded = [*given, *[None] * (len(entry.args) - len(given))]
    leaves = tuple(
        None if s is None else ir.leaf(None, s, d)
        for s, d in zip(padded, wanted[: len(padded)], strict=False)
    )
    if shapes is None:
        full: tuple[Any, ...] = (*padded, (8, 64))
        return route(
            entry, (*wanted[:-1], wanted[-1]), full, params, kernels=target.kernels,
            capabilities=target.capabilities, order=target.order, tolerance=tolerance, evidence=target.evidence,
            doubts=target.doubts,
        )  # fmt: skip
    bound, converted = entry.bind(leaves, params)
    outputs = ir.apply(entry, bound, converted)
    return route(
        entry,
        (*(None if v is None else v.dtype for v in bound), *(o.dtype for o in outputs)),
        (*(None if v is None else v.shape for v in bound), *(o.shape for o in outputs)),
        converted,
        kernels=target.kernels,
        capabilities=target.capabilities,
        order=target.order,
        tolerance=tolerance,
        evidence=target.evidence,
        doubts=target.doubts,
    )


def _rows(found: Route) -> tuple[RouteRow, ...]:
    return tuple(
        RouteRow(
            found.op.name,
            c.impl.name,
            c.backend,
            tuple(d.key for d in c.impl.dtypes),
            str(c.impl.revision),
            c.impl.precision.summary(),
            c.impl.precision.notes,
            c.cost.flops,
            c.cost.bytes_moved,
            c.cost.kernel_overhead_ns,
            c.verdict.value,
            c.reason,
            c.set_aside,
        )
        for c in found.candidates
    )
