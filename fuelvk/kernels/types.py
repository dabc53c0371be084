"""The records of the kernel half (ops.md section 2)."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import RegistryError
from fuelvk.base.shapes import Layout, Shape
from fuelvk.graph.types import OpId

Shapes = tuple[Shape | None, ...]


class BackendId(enum.StrEnum):
    """Where a kernel runs. The registry takes other strings too."""

    CPU = "cpu"
    VULKAN = "vulkan"


@dataclass(frozen=True, slots=True)
class KernelCaps:
    """What a kernel takes without help: strided inputs; whether it broadcasts its inputs itself."""

    strided_input: bool = False
    requires_broadcast: bool = False


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Work of one call: operations, bytes read and written (cache hits not counted), fixed cost in ns."""

    flops: int = 0
    bytes_moved: int = 0
    kernel_overhead_ns: int = 0


class Audit(enum.Enum):
    """How far a claim was looked into."""

    UNAUDITED = "never audited"
    NO_STATIC_BOUND = "audited, no static bound"
    CLAIMED = "claims a bound"


Bound = Callable[["BoundInputs"], "np.ndarray[Any, Any]"]


@dataclass(frozen=True, slots=True)
class BoundInputs:
    """What a bound is a function of: float64 copies of the inputs, parameters, the exact result, output dtype."""

    inputs: tuple[np.ndarray[Any, Any] | None, ...]
    params: Mapping[str, Any]
    reference: np.ndarray[Any, Any]
    dtype: DType


@dataclass(frozen=True, slots=True)
class PrecisionGuarantee:
    """What an implementation promises. All bounds that are given must hold at once.

    ``max_ulp`` is the distance to the exact result in ULPs of the output type (0.5 is correctly rounded, 0 exact);
    ``max_relative`` is ``abs(out - ref) / max(abs(ref), eps)``; ``bound`` gives the allowed absolute error per element.
    ``canonical`` claims the bits of the op's canonical algorithm (ops.md section 9), ``batch_invariant`` that a row's
    bits do not depend on its neighbours. ``domain`` says for which inputs the bounds hold, where not
    for all. Whether a claim has been verified is the ledger's to say.
    """

    bit_stable_on_same_hardware: bool
    max_ulp: float | None = None
    max_relative: float | None = None
    max_absolute: float | None = None
    notes: str = ""
    domain: str = ""
    bound: Bound | None = None
    canonical: bool = False
    batch_invariant: bool = False
    audit: Audit = Audit.CLAIMED

    REFERENCE: ClassVar[PrecisionGuarantee]
    PRIMITIVE_DETERMINISTIC_CPU: ClassVar[PrecisionGuarantee]
    UNAUDITED: ClassVar[PrecisionGuarantee]

    @classmethod
    def none(cls, reason: str) -> PrecisionGuarantee:
        """Returns a claim that was looked for and not found, with the reason."""
        return cls(bit_stable_on_same_hardware=False, notes=reason, audit=Audit.NO_STATIC_BOUND)

    def strict(self, **changes: Any) -> PrecisionGuarantee:
        """Returns this claim with ``canonical`` and ``batch_invariant`` set, and other fields changed."""
        return replace(self, canonical=True, batch_invariant=True, **changes)

    @property
    def has_bound(self) -> bool:
        return any(b is not None for b in (self.max_ulp, self.max_relative, self.max_absolute, self.bound))

    def summary(self) -> str:
        """Returns the claim in a few words, for tables."""
        words = []
        if self.max_ulp is not None:
            words.append("exact" if self.max_ulp == 0 else f"{self.max_ulp:g} ULP")
        if self.max_relative:
            words.append(f"rel {self.max_relative:.3g}")
        if self.max_absolute:
            words.append(f"abs {self.max_absolute:.3g}")
        if self.bound is not None:
            words.append((self.bound.__doc__ or "a bound by shape").strip().splitlines()[0].rstrip("."))
        if self.domain:
            words.append(self.domain)
        if self.audit is not Audit.CLAIMED:
            words.append(self.audit.value)
        elif not words:
            words.append("no static bound")
        if self.canonical:
            words.append("strict")
        elif self.bit_stable_on_same_hardware:
            words.append("bit-stable")
        return ", ".join(words)


PrecisionGuarantee.REFERENCE = PrecisionGuarantee(True, 0, 0.0, 0.0, notes="the oracle itself")
PrecisionGuarantee.PRIMITIVE_DETERMINISTIC_CPU = PrecisionGuarantee(
    True, notes="fixed loop order on one thread", audit=Audit.NO_STATIC_BOUND
)
PrecisionGuarantee.UNAUDITED = PrecisionGuarantee(False, notes="nobody has looked", audit=Audit.UNAUDITED)


@dataclass(frozen=True, slots=True, eq=False)
class KernelRevisionHash:
    """64 bits over everything that decides a kernel's result. Zero means untracked and equals nothing."""

    value: int

    UNTRACKED: ClassVar[KernelRevisionHash]

    def __post_init__(self) -> None:
        if not 0 <= self.value < 1 << 64:
            raise RegistryError("a revision is 64 bits", seen=self.value)

    @property
    def tracked(self) -> bool:
        return self.value != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelRevisionHash) and self.tracked and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return f"{self.value:016x}"


KernelRevisionHash.UNTRACKED = KernelRevisionHash(0)

Kernel = Callable[[Sequence[Any], Sequence[Any], Sequence[Layout | None], Mapping[str, Any], Any], None]
CostFunction = Callable[[Shapes, Mapping[str, Any], Any], CostEstimate]
Admits = Callable[[Shapes, Mapping[str, Any], Any], str | None]


def admits_all(shapes: Shapes, params: Mapping[str, Any], capabilities: Any) -> str | None:
    """The ``admits`` of a kernel that takes every legal call."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendImpl:
    """One way to run an op.

    ``kernel(inputs, outputs, layouts, params, context)`` has one signature on every backend; inputs and outputs are
    the backend's storage, ``layouts`` their layouts (inputs then outputs). ``admits`` gives the reason for which a
    call is refused, or None.
    """

    name: str
    kernel: Kernel
    dtypes: tuple[DType, ...]
    cost: CostFunction
    precision: PrecisionGuarantee
    caps: KernelCaps = KernelCaps()
    revision: KernelRevisionHash = KernelRevisionHash.UNTRACKED
    admits: Admits = admits_all


@dataclass(frozen=True, slots=True)
class Registration:
    """A row of an op file's IMPLS: which op, where, and how."""

    id: OpId
    backend: BackendId | str
    impl: BackendImpl


class FusedKernelRegistry:
    """Implementations by op id and backend, in the order they were registered."""

    def __init__(self) -> None:
        self._impls: dict[OpId, list[tuple[str, BackendImpl]]] = {}
        self._frozen = False

    def register(self, op_id: OpId, backend: BackendId | str, impl: BackendImpl) -> None:
        """Appends an implementation; several at one (id, backend) are alternatives."""
        if self._frozen:
            raise RegistryError(
                "the kernel registry is frozen",
                asked=f"{op_id} on {backend}",
                hint="make a FusedKernelRegistry of your own and call register_default_kernels on it",
            )
        rows = self._impls.setdefault(op_id, [])
        for other_backend, other in rows:
            if other_backend == str(backend) and other.name == impl.name and other.dtypes == impl.dtypes:
                raise RegistryError(
                    "an implementation is registered twice",
                    asked=f"{op_id} {backend} {impl.name}",
                    seen=other.dtypes,
                )
        rows.append((str(backend), impl))

    def lookup(self, op_id: OpId, backend: BackendId | str) -> BackendImpl | None:
        """Returns the first implementation of the pair, or None."""
        return next((i for b, i in self._impls.get(op_id, ()) if b == str(backend)), None)

    def lookup_by_dtypes(
        self, op_id: OpId, backend: BackendId | str, dtypes: Sequence[DType]
    ) -> BackendImpl | None:
        """Returns the first implementation with exactly these dtypes; None sends the caller to the decomposition."""
        wanted = tuple(dtypes)
        return next(
            (i for b, i in self._impls.get(op_id, ()) if b == str(backend) and i.dtypes == wanted), None
        )

    def impls_for(self, op_id: OpId) -> tuple[tuple[str, BackendImpl], ...]:
        """Returns every (backend, implementation) of an op, in order."""
        return tuple(self._impls.get(op_id, ()))

    def canonical(self, op_id: OpId, dtypes: Sequence[DType]) -> BackendImpl | None:
        """Returns the CPU kernel for these dtypes whose bits define the canonical algorithm, or None."""
        wanted = tuple(dtypes)
        return next(
            (
                i
                for b, i in self._impls.get(op_id, ())
                if b == BackendId.CPU and i.precision.canonical and i.dtypes == wanted
            ),
            None,
        )

    def ids(self) -> tuple[OpId, ...]:
        return tuple(self._impls)

    def freeze(self) -> None:
        self._frozen = True

    def __len__(self) -> int:
        return len(self._impls)

    def __iter__(self) -> Iterator[tuple[OpId, str, BackendImpl]]:
        for op_id, rows in self._impls.items():
            for backend, impl in rows:
                yield op_id, backend, impl
