"""``fuelvk ops``; ``inventory`` also feeds docs/ops.md."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from fuelvk.base.errors import UnknownNameError, closest
from fuelvk.cli._output import Result, table
from fuelvk.graph.registry import FusedOps, default_fused_op_registry, default_primitive_registry
from fuelvk.graph.types import OpEntry, PrimitiveEntry
from fuelvk.registry import default_kernel_registry


@dataclass(frozen=True, slots=True)
class Group:
    """Implementations of an op that differ in nothing but dtype and revision."""

    backend: str
    name: str
    claim: str
    notes: str
    dtypes: tuple[tuple[str, ...], ...]
    revisions: tuple[str, ...]

    def short_dtypes(self) -> str:
        """Returns the element types: one word where all operands share it."""
        return ", ".join(dict.fromkeys(d[0] if len(set(d)) == 1 else " ".join(d) for d in self.dtypes))


@dataclass(frozen=True, slots=True)
class OpRow:
    """An op with all its implementations."""

    name: str
    number: int | None
    family: str
    signature: str
    doc: str
    is_view: bool
    groups: tuple[Group, ...]


def inventory() -> tuple[OpRow, ...]:
    """Returns every op that has an entry: fused ones by number, then primitives by family."""
    primitives = sorted(default_primitive_registry(), key=lambda e: (e.family.value, e.name))
    return tuple(_row(entry) for entry in (*default_fused_op_registry(), *primitives))


def waiting() -> tuple[str, ...]:
    """Returns the fused ops that have a number and no entry."""
    registry = default_fused_op_registry()
    return tuple(op.name.lower() for op in FusedOps.all() if registry.get(op) is None)


def _row(entry: OpEntry) -> OpRow:
    merged: dict[tuple[str, str, str, str], tuple[list[tuple[str, ...]], list[str]]] = {}
    for backend, impl in default_kernel_registry().impls_for(entry.id):
        key = (backend, impl.name, impl.precision.summary(), impl.precision.notes)
        dtypes, revisions = merged.setdefault(key, ([], []))
        dtypes.append(tuple(d.key for d in impl.dtypes))
        revisions.append(str(impl.revision))
    groups = tuple(Group(*key, tuple(d), tuple(dict.fromkeys(r))) for key, (d, r) in merged.items())
    return OpRow(
        name=entry.name,
        number=getattr(entry.id, "number", None),
        family=entry.family.value,
        signature=entry.signature(),
        doc=entry.doc.strip(),
        is_view=isinstance(entry, PrimitiveEntry) and entry.view_rule is not None,
        groups=groups,
    )


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="OP", help="show only these, with every implementation")


def run(options: argparse.Namespace) -> Result:
    rows = inventory()
    known = {row.name for row in rows}
    unknown = next((n for n in options.names if n.lower() not in known), None)
    if unknown is not None:
        raise UnknownNameError(
            "unknown op", asked=unknown, hint=closest(unknown, known) or "run `fuelvk ops`"
        )
    wanted = {n.lower() for n in options.names}
    rows = tuple(row for row in rows if not wanted or row.name in wanted)
    data = {"ops": [_as_dict(row) for row in rows], "without_entry": list(waiting())}

    def show() -> None:
        if wanted:
            for row in rows:
                _show_one(row)
            return
        table(
            ("op", "family", "implementations"),
            [(row.signature, row.family, _implementations(row)) for row in rows],
        )
        print(
            f"{len(rows)} ops; {len(waiting())} more have a number and no implementation: {', '.join(waiting())}"
        )
        print("`fuelvk ops OP` shows claims and revisions, `fuelvk explain OP --shape 8x1024` the choice")

    return Result(data, show)


def _as_dict(row: OpRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "number": row.number,
        "family": row.family,
        "signature": row.signature,
        "view": row.is_view,
        "implementations": [
            {
                "backend": g.backend,
                "name": g.name,
                "claim": g.claim,
                "notes": g.notes,
                "dtypes": [list(d) for d in g.dtypes],
                "revisions": list(g.revisions),
            }
            for g in row.groups
        ],
    }


def _implementations(row: OpRow) -> str:
    if row.is_view:
        return "view: relabels, runs nothing"
    return "\n".join(f"{g.name}: {g.short_dtypes()}" for g in row.groups) or "none"


def _show_one(row: OpRow) -> None:
    print(row.signature + (f"\n{row.doc}" if row.doc else ""))
    table(
        ("implementation", "backend", "dtypes", "claim", "revision"),
        [(g.name, g.backend, g.short_dtypes(), g.claim, "\n".join(g.revisions)) for g in row.groups],
    )
