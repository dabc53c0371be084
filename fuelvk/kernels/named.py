"""Which kernels each named precision constant speaks of, and how a kernel's own claim stands to it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from fuelvk.base.dtypes import DType
from fuelvk.graph.types import Family, OpEntry
from fuelvk.kernels import claims
from fuelvk.kernels.types import BackendId, BackendImpl, PrecisionGuarantee

_WIDE = (DType.F32, DType.F64)
_HALF = (DType.F16, DType.BF16)


@dataclass(frozen=True, slots=True)
class Named:
    """One constant: a name in ``claims`` and its subject, kernels of a backend by op or family and by output dtype.

    ``ulps`` is the largest distance from the exact result that it leaves, where that is not its ``max_ulp``; ``note``
    says why, or why no kernel is spoken of.
    """

    name: str
    backend: BackendId
    ops: tuple[str, ...] = ()
    families: tuple[Family, ...] = ()
    dtypes: tuple[DType, ...] = ()
    implementation: str = ""
    ulps: float | None = None
    note: str = ""

    @property
    def precision(self) -> PrecisionGuarantee:
        found: PrecisionGuarantee = getattr(claims, self.name)
        return found

    @property
    def most_ulps(self) -> float | None:
        return self.ulps if self.ulps is not None else self.precision.max_ulp

    def speaks_of(self, op: OpEntry, backend: str, impl: BackendImpl) -> bool:
        """Says whether an implementation belongs to what the constant is about."""
        return (
            backend == self.backend
            and (op.name in self.ops or op.family in self.families)
            and (not self.dtypes or impl.dtypes[-1] in self.dtypes)
            and self.implementation in impl.name
        )


def _cpu(name: str, *ops: str, note: str = "") -> Named:
    return Named(f"{name}_CPU_PRECISION", BackendId.CPU, ops, implementation="cpu.c", note=note)


_LATER = "no kernel of this op is registered yet"
_ROWS = ("softmax_last_dim", "rms_norm_last_dim", "layer_norm_last_dim")

NAMED: tuple[Named, ...] = (
    _cpu("ATTN", "flash_attn", "paged_attn"),
    _cpu("ATTN_BACKWARD", "flash_attn_backward_q", "flash_attn_backward_k", "flash_attn_backward_v"),
    _cpu("CAUSAL_CONV1D", "causal_conv1d", note=_LATER),
    _cpu("CONV2D", "conv2d", note=_LATER),
    _cpu("CONV_TRANSPOSE2D", "conv_transpose2d", note=_LATER),
    _cpu("FUSED_LINEAR", "fused_linear"),
    _cpu("FUSED_SOFTMAX_CROSS_ENTROPY", "fused_softmax_cross_entropy"),
    _cpu("INPLACE_AFFINE", "inplace_affine"),
    _cpu("NF4_MATMUL", "nf4_matmul", note=_LATER),
    _cpu("NORM_FAMILY", *_ROWS, *(f"{op}_backward" for op in _ROWS)),
    _cpu("POWI_BACKWARD", "powi_backward"),
    _cpu("QMATMUL", "qmatmul", note=_LATER),
    _cpu("REDUCE_MAX_TO_BACKWARD", "reduce_max_to_backward"),
    _cpu("ROPE", "rope"),
    _cpu("SELECTIVE_SCAN", "selective_scan", note=_LATER),
    _cpu("SSD_CHUNK_SCAN", "ssd_chunk_scan", note=_LATER),
    Named("VULKAN_BYTE_LEVEL_PRECISION", BackendId.VULKAN, families=(Family.MOVEMENT,)),
    Named(
        "VULKAN_CAST_PRECISION",
        BackendId.VULKAN,
        families=(Family.CAST,),
        ulps=0.5,
        note="it counts from the correctly rounded value, as the records of casts do; the claims of 0.5 ULP count from "
        "the exact one",
    ),
    Named("VULKAN_FLOAT_POINTWISE_PRECISION", BackendId.VULKAN, (), (Family.POINTWISE,), _WIDE),
    Named("VULKAN_HALF_POINTWISE_PRECISION", BackendId.VULKAN, (), (Family.POINTWISE,), _HALF),
    Named("VULKAN_TRANSCENDENTAL_PRECISION", BackendId.VULKAN, families=(Family.TRANSCENDENTAL,)),
    Named("VULKAN_MATMUL_PRECISION", BackendId.VULKAN, ("matmul", "fused_linear")),
    Named(
        "VULKAN_MATMUL_TENSORCORE_PRECISION",
        BackendId.VULKAN,
        ("matmul", "fused_linear"),
        implementation="cooperative",
        note="no kernel uses cooperative matrices yet",
    ),
    Named("VULKAN_QMATMUL_PRECISION", BackendId.VULKAN, ("qmatmul", "nf4_matmul"), note=_LATER),
)
"""The sixteen constants of the CPU and the eight of Vulkan."""


class Standing(enum.Enum):
    """How a kernel's claim stands to a constant."""

    CARRIES = "carry it"
    MORE = "claim more"
    OTHER = "claim a bound of their own instead"
    LESS = "claim less"


def standing(named: Named, claim: PrecisionGuarantee) -> Standing:
    """Returns how a claim stands to a constant.

    A kernel carries the constant whose promises are its own, canonical bits and independence of neighbours aside,
    which constants leave open.
    """
    constant = named.precision
    bare = replace(claim, canonical=False, batch_invariant=False, notes=constant.notes)
    if bare == constant:
        return Standing.CARRIES
    if constant.bit_stable_on_same_hardware and not claim.bit_stable_on_same_hardware:
        return Standing.LESS
    most = named.most_ulps
    if most is None:
        return Standing.MORE
    if claim.max_ulp is None:
        return Standing.OTHER if claim.has_bound else Standing.LESS
    return Standing.MORE if claim.max_ulp <= most else Standing.LESS
