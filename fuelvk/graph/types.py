"""The records of the graph half."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import FuelvkError, ParameterError, UnknownNameError, closest
from fuelvk.base.shapes import Layout, Shape

if TYPE_CHECKING:
    from fuelvk.graph.ir import Builder, Value
    from fuelvk.graph.patterns import Pattern

Params = Mapping[str, Any]
Shapes = tuple[Shape | None, ...]
DTypes = tuple[DType | None, ...]
Values = tuple["Value | None", ...]


class _Required(enum.Enum):
    REQUIRED = "required"


REQUIRED = _Required.REQUIRED


@dataclass(frozen=True, slots=True, order=True)
class FusedOpId:
    """Identity of a fused op. Numbers are written in ops.md and never reused."""

    number: int
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, order=True)
class PrimitiveId:
    """Identity of a primitive."""

    name: str

    def __str__(self) -> str:
        return self.name


OpId = FusedOpId | PrimitiveId


class Family(enum.Enum):
    """What kind of op it is; groups tables in docs and reports."""

    FORWARD = "forward"
    BACKWARD = "backward"
    QUANTIZED = "quantized"
    ATTENTION = "attention"
    NORM = "norm"
    POINTWISE = "pointwise"
    TRANSCENDENTAL = "transcendental"
    COMPARE = "compare"
    CAST = "cast"
    MOVEMENT = "movement"
    VIEW = "view"
    REDUCTION = "reduction"
    MATMUL = "matmul"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Arg:
    """One array input. A variadic one takes all that remain (at least one)."""

    name: str
    optional: bool = False
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter: ``kind`` converts it to a hashable value, ``check`` refuses what is out of range.

    Kinds: int, float, number (either, as given), bool, str, dtype, ints (an int or a sequence of ints), pair (one int
    stands for two), pairs (a sequence of pairs).
    """

    name: str
    kind: str
    default: Any = REQUIRED
    optional: bool = False
    check: Callable[[Any], str | None] | None = None

    def convert(self, op: str, value: Any) -> Any:
        """Returns ``value`` as this parameter's type; raises ParameterError."""
        if value is None:
            if self.optional:
                return None
            raise ParameterError(f"{op}: parameter {self.name} may not be None", allowed=self.kind)
        try:
            result = _CONVERT[self.kind](value)
        except FuelvkError:
            raise
        except (TypeError, ValueError, OverflowError):
            raise ParameterError(
                f"{op}: parameter {self.name} has the wrong type", seen=repr(value), allowed=self.kind
            ) from None
        complaint = self.check(result) if self.check is not None else None
        if complaint is not None:
            raise ParameterError(
                f"{op}: parameter {self.name} is not acceptable", seen=value, allowed=complaint
            )
        return result


def _as_int(value: Any) -> int:
    if isinstance(value, bool | np.bool_) or int(value) != value:
        raise TypeError
    return int(value)


def _as_float(value: Any) -> float:
    if isinstance(value, str | bool):
        raise TypeError
    return float(value)


def _as_number(value: Any) -> int | float:
    """Keeps integers whole, so that 64-bit ones lose nothing; True and False are 1 and 0."""
    if isinstance(value, bool | int | np.bool_ | np.integer):
        return int(value)
    return _as_float(value)


def _as_bool(value: Any) -> bool:
    if value not in (True, False):
        raise TypeError
    return bool(value)


def _as_str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _as_ints(value: Any) -> tuple[int, ...]:
    if isinstance(value, int | np.integer):
        return (_as_int(value),)
    return tuple(_as_int(v) for v in value)


def _as_pair(value: Any) -> tuple[int, int]:
    items = _as_ints(value)
    if len(items) == 1:
        return items[0], items[0]
    a, b = items
    return a, b


def _as_pairs(value: Any) -> tuple[tuple[int, int], ...]:
    return tuple(_as_pair(v) for v in value)


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "int": _as_int,
    "float": _as_float,
    "number": _as_number,
    "bool": _as_bool,
    "str": _as_str,
    "dtype": DType.of,
    "ints": _as_ints,
    "pair": _as_pair,
    "pairs": _as_pairs,
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One legal call: NumPy inputs in the op's order (None for one left out) and parameters."""

    inputs: tuple[np.ndarray[Any, Any] | None, ...]
    params: dict[str, Any]
    label: str


@dataclass(frozen=True, slots=True)
class ErrorSample:
    """One call that must be refused, with the class and a regular expression of the message."""

    inputs: tuple[Any, ...]
    params: dict[str, Any]
    error: type[Exception]
    match: str
    label: str


ShapeRule = Callable[[Shapes, Params], tuple[Shape, ...]]
DTypeRule = Callable[[DTypes, Params], tuple[DType, ...]]
Decompose = Callable[["Builder", "Values", Params], "tuple[Value, ...]"]
Backward = Callable[["Builder", "Values", "tuple[Value, ...]", "Values", Params], "tuple[Value | None, ...]"]
Check = Callable[[Shapes, DTypes, Params], None]
ValueCheck = Callable[[Sequence[Any], Params], None]
ViewRule = Callable[[Layout, Params], Layout | None]


class NotDifferentiable(enum.Enum):
    """Stands in place of a backward rule."""

    NOT_DIFFERENTIABLE = "not differentiable"


NOT_DIFFERENTIABLE = NotDifferentiable.NOT_DIFFERENTIABLE


class ByDecomposition(enum.Enum):
    """Stands in place of a backward rule: differentiate the decomposition."""

    DECOMPOSE = "decompose"


DECOMPOSE = ByDecomposition.DECOMPOSE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OpEntry:
    """What both kinds of op share: signature, rules, derivative and the inputs they are tested with."""

    id: OpId
    family: Family
    args: tuple[Arg, ...]
    params: tuple[Param, ...] = ()
    shape_rule: ShapeRule
    dtype_rule: DTypeRule
    # What kernels are written for: one dtype per arg (optional ones too, a variadic one once), then the
    # outputs'.
    dtypes: tuple[tuple[DType, ...], ...] = ()
    check: Check | None = None  # refuses what depends on shapes and dtypes together
    value_check: ValueCheck | None = None  # refuses elements of host arrays before anything runs
    backward: Backward | NotDifferentiable | ByDecomposition = NOT_DIFFERENTIABLE
    sample_inputs: Callable[[tuple[DType, ...], np.random.Generator], Iterable[Sample]] | None = None
    error_inputs: Callable[[], Iterable[ErrorSample]] | None = None
    doc: str = ""

    @property
    def name(self) -> str:
        """The snake_case name used by ``fv.call`` and ``fv.ops``."""
        return self.id.name.lower()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def bind(self, given: Sequence[Any], named: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Sorts a call into inputs (in order, None for those left out) and converted parameters."""
        variadic = bool(self.args) and self.args[-1].variadic
        if not variadic and len(given) > len(self.args):
            raise ParameterError(
                f"{self.name} takes {len(self.args)} inputs", seen=len(given), allowed=self.signature()
            )
        rest = dict(named)
        inputs = list(given)
        for arg in self.args[len(given) :]:
            if arg.name in rest and not arg.variadic:
                inputs.append(rest.pop(arg.name))
            elif arg.optional:
                inputs.append(None)
            else:
                raise ParameterError(f"{self.name} needs input {arg.name}", allowed=self.signature())
        for index, value in enumerate(inputs):
            arg = self.args[min(index, len(self.args) - 1)]
            if value is None and not arg.optional:
                raise ParameterError(
                    f"{self.name}: input {arg.name} may not be None", allowed=self.signature()
                )
        params: dict[str, Any] = {}
        for param in self.params:
            if param.name in rest:
                params[param.name] = param.convert(self.name, rest.pop(param.name))
            elif param.default is REQUIRED:
                raise ParameterError(f"{self.name} needs parameter {param.name}", allowed=self.signature())
            else:
                params[param.name] = param.default
        if rest:
            unknown = next(iter(rest))
            known = [p.name for p in self.params] + [a.name for a in self.args]
            raise UnknownNameError(
                f"{self.name} has no parameter {unknown}",
                allowed=self.signature(),
                hint=closest(unknown, known) or None,
            )
        return tuple(inputs), params

    def dtype_row(self, inputs: DTypes, outputs: tuple[DType, ...]) -> tuple[DType, ...] | None:
        """Returns the row of ``dtypes`` that agrees with a call; None where no kernel is written for it.

        Optional inputs left out (None) agree with anything, a variadic arg is looked at once.
        """
        seen = (*inputs[: len(self.args)], *outputs)
        for row in self.dtypes:
            if len(row) == len(seen) and all(b is None or a is b for a, b in zip(row, seen, strict=True)):
                return row
        return None

    def signature(self) -> str:
        """Returns the call as text: ``rms_norm_last_dim(x, [weight], *, eps=1e-05)``."""
        inputs = [f"*{a.name}" if a.variadic else f"[{a.name}]" if a.optional else a.name for a in self.args]
        params = [p.name if p.default is REQUIRED else f"{p.name}={p.default}" for p in self.params]
        star = ["*"] if params and not any(a.variadic for a in self.args) else []
        return f"{self.name}({', '.join([*inputs, *star, *params])})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrimitiveEntry(OpEntry):
    """A primitive. One with a ``view_rule`` has no kernel: it only relabels its input's elements."""

    view_rule: ViewRule | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FusedOpEntry(OpEntry):
    """A fused op: what it replaces (``pattern``), what it stands for (``decompose``).

    ``joint`` names a primitive that computes this op together with others over the same inputs and parameters, and
    which of its outputs is this op's; fusion calls it where a graph holds more than one of them.
    """

    pattern: Pattern | None
    decompose: Decompose
    output_views: int = 1
    destructive_input: int | None = None
    canonical_decomposition: bool = False  # no kernels: the decomposition is the canonical algorithm
    joint: tuple[str, int] | None = None
