"""The part of docs/exactness.md on the named constants: which kernels carry or earn each, and the worst seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fuelvk.evidence import Record
from fuelvk.evidence.ledger import Ledger
from fuelvk.graph.types import OpEntry
from fuelvk.kernels.named import NAMED, Named, Standing, standing
from fuelvk.kernels.types import BackendImpl

Rows = Sequence[tuple[OpEntry, str, BackendImpl]]
Key = tuple[str, str, str, tuple[str, ...]]
_KINDS = ("bound", "ulp", "bit_stable")


@dataclass(slots=True)
class Account:
    """What is known of one constant: its kernels by how their claims stand to it, and what the ledgers say of those
    that carry it (of those that claim more, where none does). ``against`` are records that speak against the constant.
    """

    named: Named
    kernels: dict[Standing, list[Key]] = field(default_factory=dict)
    worst: tuple[Record, int] | None = None
    elements: int = 0
    stable: int = 0
    places: set[int] = field(default_factory=set)
    against: list[tuple[Record, int]] = field(default_factory=list)


def account(named: Named, rows: Rows, ledgers: Sequence[Ledger]) -> Account:
    """Returns what is known of a constant, by the registry's rows and the ledgers in the order of the page."""
    found = Account(named)
    for op, backend, impl in rows:
        if named.speaks_of(op, backend, impl):
            key = (op.name, backend, impl.name, tuple(d.key for d in impl.dtypes))
            found.kernels.setdefault(standing(named, impl.precision), []).append(key)
    judged = set(found.kernels.get(Standing.CARRIES) or found.kernels.get(Standing.MORE) or [])
    most = named.most_ulps
    for number, ledger in enumerate(ledgers):
        for record in ledger.records.values():
            if (*record.key[:3], record.dtypes) not in judged or record.claim not in _KINDS:
                continue
            found.places.add(number)
            over = record.claim == "ulp" and most is not None and record.worst > most
            if not record.passed or over:
                found.against.append((record, number))
            if record.claim == "bit_stable":
                found.stable += record.inputs
            else:
                found.elements += record.inputs
                if found.worst is None or _rank(record) > _rank(found.worst[0]):
                    found.worst = (record, number)
    return found


def section(ledgers: Sequence[Ledger], rows: Rows) -> Iterator[str]:
    """Yields the section's lines; ``ledgers`` are lettered in their order."""
    yield from (
        "## The named constants",
        "",
        "Each constant of `fuelvk.fused` speaks of some kernels. One *carries* it when it promises just that "
        "(canonical bytes and independence of neighbours aside, which the constants leave open); then it must have "
        "*earned* it, by records without a failure. Most promise more, in claims of their own: where none carries the "
        "constant, the table says whether the records of those bear it out as well. The worst seen is theirs.",
        "",
        "| constant | promises | its kernels | earned | worst seen |",
        "|---|---|---|---|---|",
    )
    for named in NAMED:
        yield _line(account(named, rows, ledgers))
    yield ""


def _line(found: Account) -> str:
    named = found.named
    total = sum(len(keys) for keys in found.kernels.values())
    note = f"; {named.note}" if named.note else ""
    promises = named.precision.summary().replace("audited, ", "")
    cells = [f"`{named.name}`", promises]
    if not total:
        return f"| {' | '.join([*cells, f'none: {named.note}', 'not carried', ''])} |"
    parts = [_kernels(s, found.kernels[s]) for s in Standing if s in found.kernels]
    cells.append("; ".join(parts) + note)
    carried = bool(found.kernels.get(Standing.CARRIES))
    cells += [_earned(found, carried), _worst(found)]
    return f"| {' | '.join(c.replace('|', chr(92) + '|') for c in cells)} |"


def _rank(record: Record) -> tuple[bool, float]:
    """Orders records by what they found; those of bounds, which have no unit, come before ULPs."""
    return record.claim == "bound", record.worst


def _kernels(stands: Standing, keys: Sequence[Key]) -> str:
    """Returns how many kernels stand so, by name where they are the exception."""
    if stands is Standing.MORE or len(keys) > 12:
        return f"{len(keys)} {stands.value}"
    names = dict.fromkeys(f"{op} {impl}" for op, _, impl, _ in keys)
    if len(names) > 3:
        names = dict.fromkeys(impl for _, _, impl, _ in keys)
    return f"{len(keys)} {stands.value} ({', '.join(names)})"


def _earned(found: Account, carried: bool) -> str:
    if found.against:
        record, number = found.against[0]
        where = f"{record.op} {record.impl} {','.join(record.dtypes)} on {_letter(number)}"
        return f"**no**: {record.claim} of {where}" + (", and carried" if carried else ", not carried")
    if not found.places:
        return "nothing recorded" if carried else "nothing recorded, not carried"
    letters = ", ".join(_letter(n) for n in sorted(found.places))
    return f"yes, on {letters}" + ("" if carried else "; not carried")


def _worst(found: Account) -> str:
    if found.worst is None:
        return f"no other bits in {found.stable:,} repeats" if found.stable else ""
    record, number = found.worst
    value = record.worst
    kernel = f"{record.op} {record.impl} {_dtypes(record.dtypes)} on {_letter(number)}"
    stable = f"; no other bits in {found.stable:,} repeated elements" if found.stable else ""
    if record.claim == "bound":
        return f"{value:.4g} of its own bound: {kernel}{stable}"
    text = "exact" if value == 0 else f"{value:.6g} ULP: {kernel}"
    return f"{text}, of {found.elements:,} elements{stable}"


def _dtypes(keys: Sequence[str]) -> str:
    return "/".join(dict.fromkeys(keys))


def _letter(number: int) -> str:
    return chr(ord("A") + number)
