"""What the bits of an F32 function come from: the key of its sweep.

A sweep holds as long as the text holds that decides the function's bits: its own definitions in the strict headers, or
in the driver level's shader, and their constants. Kernels around it, layout of modules and compilers are not part of
it: what they may break, the everyday tests find. A record with another key *lags*.
"""

from __future__ import annotations

import enum
from functools import cache
from pathlib import Path

from cpu_reference import _sources
from cpu_reference.truth import FUNCTIONS
from fuelvk.evidence import Record
from fuelvk.kernels.driver_claims import CHEAP_ONE_ULP
from fuelvk.kernels.types import BackendImpl
from fuelvk.verify.definitions import Definitions

_DRIVER = Path(__file__).parents[2] / "shaders" / "slang" / "pointwise" / "functions_driver.slang"


class Level(enum.Enum):
    """The levels of a function, by what they promise."""

    ROUNDED = "correctly rounded"
    CHEAP = "at most 1 ULP"
    DRIVER = "the driver's own"


#: What a level computes of v, where it is not made of the functions that are named after the op.
_EXPRESSIONS: dict[tuple[str, Level], str] = {
    ("sqrt", Level.ROUNDED): "st_sqrt(v)",
    ("sqr", Level.ROUNDED): "v * v",
}


def level_of(impl: BackendImpl) -> Level:
    """Returns the level of an implementation of a swept function."""
    if impl.precision.canonical:
        return Level.ROUNDED
    return Level.CHEAP if impl.precision == CHEAP_ONE_ULP else Level.DRIVER


@cache
def _strict() -> Definitions:
    return Definitions(text for _, text in sorted(_sources.strict_headers().items()))


@cache
def _driver() -> Definitions | None:
    return Definitions([_DRIVER.read_text(encoding="utf-8")]) if _DRIVER.is_file() else None


def forget() -> None:
    """Drops the sources that were read."""
    for each in (_strict, _driver, source):
        each.cache_clear()


def expression(op: str, level: Level) -> str | None:
    """Returns what a level computes of v; None where there is no such level, or its source is not installed."""
    if level is Level.CHEAP and ((op, Level.ROUNDED) in _EXPRESSIONS or not _strict().has(f"st_{op}")):
        return None
    if level is Level.DRIVER:
        driver = _driver()
        return None if driver is None else driver.kernel(op)
    default = f"st_{op}(v)" if level is Level.CHEAP else f"st_{op}_cr_try(v), st_{op}_cr_fixed(v)"
    return _EXPRESSIONS.get((op, level), default)


@cache
def source(op: str, level: Level) -> str:
    """Returns the key of an op's function at a level, 16 hex digits; "" where its source is not installed."""
    text = expression(op, level)
    definitions = _driver() if level is Level.DRIVER else _strict()
    return "" if text is None or definitions is None else definitions.digest(text)


def level_swept(record: Record) -> Level | None:
    """Returns the level whose present source a record of a sweep is of; None when the record lags."""
    if not record.source or record.op not in FUNCTIONS:
        return None
    return next((level for level in Level if source(record.op, level) == record.source), None)
