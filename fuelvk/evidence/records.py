"""One record: a claim of one implementation, tried on one device, with what was found. And its JSON form."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import FormatError

#: Kind of claim -> what a record of it says.
CLAIMS: dict[str, str] = {
    "ulp": "the distance from the exact result, in units of the output type's last place",
    "relative": "the distance from the exact result over its size",
    "absolute": "the distance from the exact result",
    "bound": "the distance from the exact result over the bound for these inputs",
    "bit_stable": "elements that came out otherwise on a repeat, on this machine",
    "batch_invariant": "elements of a row that came out otherwise among other rows than alone",
    "canonical": "elements whose bytes are not those of the C kernel",
    "sweep": "all 2^32 inputs of an F32 function: the worst distance from the exact result, in ULPs",
}
VERSION = 1
FORMAT = "fuelvk-ledger"


@dataclass(frozen=True, slots=True)
class Place:
    """A device with its driver, as ledgers tell them apart.

    ``device`` is the device's name (lavapipe's holds the width of its vectors), ``driver`` its driver's name and
    build, ``backend`` who runs kernels there ("vulkan", "cpu"). ``host`` is the instruction set that a device which
    is a processor runs on, empty for others: it does not tell ledgers apart, but records carry it.
    """

    backend: str
    device: str
    driver: str
    host: str = field(default="", compare=False)

    @property
    def slug(self) -> str:
        """A file name of this place: lower case, digits and hyphens."""
        words = f"{self.device} {self.driver}".lower()
        return re.sub(r"[^a-z0-9.]+", "-", words).strip("-.")

    def __str__(self) -> str:
        return f"{self.device}, {self.driver}"

    def header(self) -> str:
        """Returns the first line of this place's ledger."""
        return _line(
            {"format": FORMAT, "version": VERSION, **{f.name: getattr(self, f.name) for f in _identity()}}
        )

    @classmethod
    def parse(cls, line: str) -> Place:
        """Returns the place a ledger's first line names; raises FormatError when it is no ledger of this version."""
        row = _object(line)
        if row.get("format") != FORMAT:
            raise FormatError(
                "not a ledger", seen=line[:80], allowed=f'a first line with "format": "{FORMAT}"'
            )
        if row.get("version") != VERSION:
            raise FormatError("a ledger of another version", seen=row.get("version"), allowed=VERSION)
        values = {f.name: row.get(f.name) for f in _identity()}
        if not all(isinstance(v, str) and v for v in values.values()):
            raise FormatError("a ledger without a device or driver", seen=line[:200])
        return cls(**{k: str(v) for k, v in values.items()})


def _identity() -> tuple[Field[Any], ...]:
    """Returns the fields of a Place that tell ledgers apart."""
    return tuple(f for f in fields(Place) if f.compare)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What was found when a claim was tried.

    ``promised`` is the claim in words or numbers, ``worst`` the worst value seen (its unit is the claim kind's, see
    CLAIMS), ``where`` its place: element, inputs. ``inputs`` counts the elements judged, ``shapes`` the calls.
    ``protocol`` is the version of the procedure, ``date`` the day in UTC, ``counts`` further numbers by name, ``notes``
    anything that restricts what was found, ``host`` the instruction set where the device is a processor. ``source``
    is the key of the source a sweep holds for (verify/sweep_source), empty in records of other claims.
    """

    op: str
    backend: str
    impl: str
    dtypes: tuple[str, ...]
    revision: str
    claim: str
    promised: str
    worst: float
    where: str
    inputs: int
    shapes: int
    seed: int
    protocol: int
    date: str
    passed: bool
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: str = ""
    source: str = ""
    host: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What a later record replaces: everything but the revision and what was found."""
        return self.op, self.backend, self.impl, ",".join(self.dtypes), self.claim

    def line(self) -> str:
        """Returns the record as one line of JSON with sorted keys; what is empty is left out."""
        row: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        row["dtypes"] = ",".join(self.dtypes)
        row["worst"] = self.worst if math.isfinite(self.worst) else str(self.worst)
        return _line({k: v for k, v in row.items() if v not in ("", {})})

    @classmethod
    def parse(cls, line: str) -> Record:
        """Returns the record of a line; raises FormatError naming the field that is missing, unknown or wrong."""
        row = _object(line)
        unknown = sorted(set(row) - set(_FIELDS))
        if unknown:
            raise FormatError(
                "a record with unknown fields", seen=", ".join(unknown), allowed=", ".join(_FIELDS)
            )
        values: dict[str, Any] = {}
        for name, (convert, fits) in _FIELDS.items():
            value = row.get(name, _EMPTY.get(name))
            if value is None or not fits(value):
                raise FormatError(f"a record whose {name} is missing or wrong", seen=repr(value))
            values[name] = convert(value)
        return cls(**values)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _filled(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: Any) -> bool:
    return value in ("inf", "nan") or (isinstance(value, int | float) and not isinstance(value, bool))


_KEYS = frozenset(d.key for d in DType)
_FIELDS: Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], bool]]] = {
    "op": (str, _filled),
    "backend": (str, _filled),
    "impl": (str, _filled),
    "dtypes": (lambda v: tuple(v.split(",")), lambda v: _filled(v) and set(v.split(",")) <= _KEYS),
    "revision": (str, lambda v: _text(v) and re.fullmatch("[0-9a-f]{16}", v) is not None),
    "source": (str, lambda v: _text(v) and re.fullmatch("[0-9a-f]{16}|", v) is not None),
    "claim": (str, lambda v: v in CLAIMS),
    "promised": (str, _text),
    "worst": (float, _number),
    "where": (str, _text),
    "inputs": (int, _count),
    "shapes": (int, _count),
    "seed": (int, _count),
    "protocol": (int, _count),
    "date": (str, lambda v: _text(v) and re.fullmatch(r"\d{4}-\d\d-\d\d", v) is not None),
    "passed": (bool, lambda v: isinstance(v, bool)),
    "counts": (dict, lambda v: isinstance(v, dict) and all(_count(n) for n in v.values())),
    "notes": (str, _text),
    "host": (str, _text),
}
_EMPTY: Mapping[str, Any] = {"source": "", "promised": "", "where": "", "notes": "", "counts": {}, "host": ""}


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, ensure_ascii=False, separators=(", ", ": "), allow_nan=False)


def _object(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise FormatError("not a line of JSON", seen=f"{line[:80]!r} ({error})") from None
    if not isinstance(row, dict):
        raise FormatError("not a JSON object", seen=line[:80])
    return row
