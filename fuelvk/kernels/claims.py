"""The named precision claims (ops.md section 7) and the bounds that go with the strict kernels.

Each constant says, in this order: which ops and backends, the algorithm, the accumulator, the order of
summation, what is claimed, what is left out. The sixteen CPU claims promise the same bytes on a re-run and no
static bound; kernels that do better say so with a claim of their own, made of these and of the functions in
``bounds``.
"""

from __future__ import annotations

from fuelvk.kernels import attention_bounds, network_bounds
from fuelvk.kernels.bounds import (
    accumulation,
    affine,
    attention,
    blocked_product,
    dot_product,
    power,
    power_backward,
    running_sum,
    tree_mean,
    tree_product,
    tree_sum,
    within_ulps,
)
from fuelvk.kernels.types import Audit, Bound, PrecisionGuarantee

__all__ = [
    "ATTN_BACKWARD_CPU_PRECISION",
    "ATTN_CPU_PRECISION",
    "CAUSAL_CONV1D_CPU_PRECISION",
    "CONV2D_CPU_PRECISION",
    "CONV_TRANSPOSE2D_CPU_PRECISION",
    "FUSED_LINEAR_CPU_PRECISION",
    "FUSED_SOFTMAX_CROSS_ENTROPY_CPU_PRECISION",
    "INPLACE_AFFINE_CPU_PRECISION",
    "NF4_MATMUL_CPU_PRECISION",
    "NORM_FAMILY_CPU_PRECISION",
    "POWI_BACKWARD_CPU_PRECISION",
    "QMATMUL_CPU_PRECISION",
    "REDUCE_MAX_TO_BACKWARD_CPU_PRECISION",
    "ROPE_CPU_PRECISION",
    "SELECTIVE_SCAN_CPU_PRECISION",
    "SSD_CHUNK_SCAN_CPU_PRECISION",
    "STRICT_ACCUMULATION",
    "STRICT_AFFINE",
    "STRICT_ATTN",
    "STRICT_ATTN_BACKWARD_K",
    "STRICT_ATTN_BACKWARD_Q",
    "STRICT_ATTN_BACKWARD_V",
    "STRICT_ATTN_GRADIENTS",
    "STRICT_AVG_POOL",
    "STRICT_AVG_POOL_BACKWARD",
    "STRICT_BATCH_NORM",
    "STRICT_CORRECTLY_ROUNDED",
    "STRICT_EXACT",
    "STRICT_GLOBAL_MEAN",
    "STRICT_HARD_SIGMOID",
    "STRICT_HARD_SWISH",
    "STRICT_LOG_SOFTMAX",
    "STRICT_MAX_BACKWARD",
    "STRICT_MAX_POOL_BACKWARD",
    "STRICT_MEAN",
    "STRICT_ONE_ULP",
    "STRICT_PAGED_ATTN",
    "STRICT_POWI",
    "STRICT_POWI_BACKWARD",
    "STRICT_PROD",
    "STRICT_PRODUCT",
    "STRICT_RESIZE",
    "STRICT_RESIZE_BACKWARD",
    "STRICT_RUNNING_SUM",
    "STRICT_SUM",
    "VULKAN_BYTE_LEVEL_PRECISION",
    "VULKAN_CAST_PRECISION",
    "VULKAN_FLOAT_POINTWISE_PRECISION",
    "VULKAN_HALF_POINTWISE_PRECISION",
    "VULKAN_MATMUL_PRECISION",
    "VULKAN_MATMUL_TENSORCORE_PRECISION",
    "VULKAN_QMATMUL_PRECISION",
    "VULKAN_TRANSCENDENTAL_PRECISION",
    "dot_product",
    "within_ulps",
]


def _stable(notes: str) -> PrecisionGuarantee:
    return PrecisionGuarantee(True, notes=notes, audit=Audit.NO_STATIC_BOUND)


def _bounded(bound: Bound, notes: str, domain: str = "") -> PrecisionGuarantee:
    return PrecisionGuarantee(True, bound=bound, notes=notes, domain=domain).strict()


# --- sixteen of the CPU -----------------------------------------------------------------------------------------

ATTN_CPU_PRECISION = _stable(
    "Attention in C, keys in blocks of 64 with a running maximum and denominator; F32 (F64 for F64) scores, sums and "
    "output; blocks and pieces of 16 blocks in key order on whatever thread owns the row, so a re-run repeats every "
    "rounding."
)
"""FLASH_ATTN and PAGED_ATTN on the CPU. Online softmax over blocks of 64 keys. F32, or F64 for F64,
throughout. Keys in increasing order within a block, blocks in order, pieces of 16 blocks combined in order.
Same bytes on a re-run. Left out: a static bound, since it depends on the spread of the scores.
"""

ATTN_BACKWARD_CPU_PRECISION = _stable(
    "Probabilities recomputed by the forward's rules; products of the gradients accumulate in F32 (F64 for F64) over "
    "keys or rows in increasing order, one thread to a gradient row, so no sum depends on scheduling."
)
"""FLASH_ATTN_BACKWARD_Q, _K and _V on the CPU. P recomputed, then four products. F32, or F64 for F64. Rows
and keys in increasing order, grouped heads added in head order. Same bytes on a re-run. Left out: a static
bound.
"""

CAUSAL_CONV1D_CPU_PRECISION = _stable(
    "Each output adds its K taps in increasing k in F32 (F64 for F64), then bias, then SiLU; outputs are independent, "
    "so threads cannot reorder a sum."
)
"""CAUSAL_CONV1D on the CPU. Direct sum over K taps, optional SiLU. F32, or F64 for F64. Increasing k. Same
bytes on a re-run. Left out: a static bound under cancellation among the taps.
"""

CONV2D_CPU_PRECISION = _stable(
    "Each output adds its taps in (channel, row, column) order, blocks of 64 in F32 (F64 for F64), bias last; taps "
    "outside the image are skipped, and outputs are independent."
)
"""CONV2D on the CPU. Direct convolution. F32, or F64 for F64. Flattened taps in blocks of 64, blocks in
order, bias last. Same bytes on a re-run. Left out: a static bound, which depends on the data's sums.
"""

CONV_TRANSPOSE2D_CPU_PRECISION = _stable(
    "Each output gathers its contributions in (channel, row, column) order of the taps in F32 (F64 for F64) instead of "
    "scattering, so two inputs never race for one sum."
)
"""CONV_TRANSPOSE2D on the CPU. Gather form. F32, or F64 for F64. Flattened taps in blocks of 64, bias last.
Same bytes on a re-run. Left out: a static bound.
"""

FUSED_LINEAR_CPU_PRECISION = _stable(
    "Every output is its own dot product: blocks of 64 k accumulated in F32 (F64 for F64), block sums added in order, "
    "bias last, multiply and add rounded apart (no contraction); tiling moves whole outputs, never a sum."
)
"""FUSED_LINEAR on the CPU. Blocked product, then bias. F32, or F64 for F64. k in blocks of 64, blocks in
order. Same bytes on a re-run. Left out: a static bound; the bound as a function of the data is
``bounds.blocked_product``.
"""

FUSED_SOFTMAX_CROSS_ENTROPY_CPU_PRECISION = _stable(
    "Log-sum-exp and the mean over rows are computed in F64 on one thread, columns and rows in increasing order, and "
    "rounded to F32 once at the end."
)
"""FUSED_SOFTMAX_CROSS_ENTROPY on the CPU. Two passes a row. F64. Columns, then rows, in increasing order.
Same bytes on a re-run. Left out: a static bound when the loss cancels to near zero.
"""

INPLACE_AFFINE_CPU_PRECISION = _stable(
    "A multiplication and an addition, each rounded once in F32 (F64 for F64); no element sees another, so nothing can "
    "be reordered."
)
"""INPLACE_AFFINE on the CPU. mul*x, then + add. F32, or F64 for F64. No sum. Same bytes on a re-run. Left
out: a static relative bound, which cancellation in the addition defeats.
"""

NF4_MATMUL_CPU_PRECISION = _stable(
    "Weights are table values times their block's absmax in F32; products accumulate in F32 in blocks of 64 k, block "
    "sums in order, one thread to an output."
)
"""NF4_MATMUL on the CPU. Dequantise, then blocked product. F32. k in blocks of 64, blocks in order. Same
bytes on a re-run. Left out: the error of quantisation, and a static bound of the product.
"""

NORM_FAMILY_CPU_PRECISION = _stable(
    "Sums go to 64 partials by column modulo 64 in F32 (F64 for F64) that are then added pairwise in a fixed tree; a "
    "row is one thread's, so neither threads nor the batch change a bit."
)
"""SOFTMAX_LAST_DIM, RMS_NORM_LAST_DIM, LAYER_NORM_LAST_DIM and their backwards on the CPU. Row passes:
maximum or mean, sum, scale. F32, or F64 for F64. 64 partials in increasing column, then a tree. Same bytes on
a re-run. Left out: a static bound; ``bounds`` has one as a function of the row.
"""

POWI_BACKWARD_CPU_PRECISION = _stable(
    "Repeated squaring in F32 (F64 for F64) whose chain depends on the exponent alone, then two products; elements are "
    "independent."
)
"""POWI_BACKWARD on the CPU. Square-and-multiply. F32, or F64 for F64. No sum. Same bytes on a re-run. Left
out: a bound free of the exponent; each of the ceil(log2(exp)) steps may double the relative error.
"""

QMATMUL_CPU_PRECISION = _stable(
    "Weights are dequantised by the F32 operations of gguf.quants, in its order; products accumulate in F32 in blocks "
    "of 64 k, block sums in order, one thread to an output."
)
"""QMATMUL on the CPU. Dequantise a row, then blocked product. F32. k in blocks of 64, blocks in order. Same
bytes on a re-run. Left out: the error of quantisation, and a static bound of the product.
"""

REDUCE_MAX_TO_BACKWARD_CPU_PRECISION = _stable(
    "Ties are counted in integers and the gradient is divided by the count, one rounding; windows are walked in memory "
    "order on one thread."
)
"""REDUCE_MAX_TO_BACKWARD on the CPU. Compare, count, divide. F32, or F64 for F64; counts are integers. Memory
order. Same bytes on a re-run. Left out: a static bound where gradients broadcast before they are shared.
"""

ROPE_CPU_PRECISION = _stable(
    "Two products and one addition an element in F32 (F64 for F64), multiply and add rounded apart, tables as given; "
    "pairs are independent."
)
"""ROPE on the CPU. Rotation of pairs. F32, or F64 for F64. One addition of two products. Same bytes on a
re-run. Left out: a relative bound, which cancellation between the products defeats.
"""

SELECTIVE_SCAN_CPU_PRECISION = _stable(
    "The state is kept in F64 and advanced one time step after another for each (batch, channel); y sums over the "
    "state in increasing n; the order of time is the recurrence's own, so nothing can be reordered."
)
"""SELECTIVE_SCAN on the CPU. Sequential recurrence. F64 state, F64 sums, rounded on store. Time order, then
increasing n. Same bytes on a re-run. Left out: a static bound; the state feeds errors forward at a rate set
by delta and A.
"""

SSD_CHUNK_SCAN_CPU_PRECISION = _stable(
    "The plain recurrence, whatever chunk_size says: F64 state per (batch, head), one step after another, y summed by "
    "increasing n of the state."
)
"""SSD_CHUNK_SCAN on the CPU. Sequential recurrence. F64 state, rounded on store. Time order, then increasing
n. Same bytes on a re-run, and for every chunk_size. Left out: a static bound.
"""

# --- eight of Vulkan --------------------------------------------------------------------------------------------

VULKAN_BYTE_LEVEL_PRECISION = PrecisionGuarantee(
    True, max_ulp=0, max_relative=0.0, max_absolute=0.0, notes="Moves bytes; arithmetic never touches them."
)
"""Copies, selections, joins and other movement on Vulkan. Loads and stores by element size. No accumulator,
no sum. Every byte exact, NaN payloads included. Nothing is left out.
"""

VULKAN_CAST_PRECISION = PrecisionGuarantee(
    True,
    max_ulp=0,
    notes="The exact value rounded once to nearest, ties to even, by integer operations: the one right answer, not "
    "within a distance of it.",
)
"""Casts on Vulkan. Integer arithmetic on the bits, or conversions that Vulkan requires to be exact. No
accumulator. No sum. The correctly rounded result itself. Left out: payloads of NaN.
"""

VULKAN_FLOAT_POINTWISE_PRECISION = PrecisionGuarantee(
    True,
    max_ulp=1,
    notes="One or two operations that Vulkan rounds correctly, or the strict library's division and square root.",
)
"""Pointwise arithmetic in F32 and F64 on Vulkan. A few IEEE operations. The type itself. No sum. At most 1
ULP. Left out: subnormals on a device that flushes them.
"""

VULKAN_HALF_POINTWISE_PRECISION = PrecisionGuarantee(
    True,
    max_ulp=1,
    notes="Computed in F32 and rounded to the half type once, so the F32 error can at most move a tie.",
)
"""Pointwise arithmetic in F16 and BF16 on Vulkan. Widen, compute, round. F32. No sum. At most 1 ULP of the
half type. Left out: subnormals of F32 on a device that flushes them.
"""

VULKAN_TRANSCENDENTAL_PRECISION = PrecisionGuarantee(
    True,
    max_ulp=4,
    notes="Own polynomials on correctly rounded operations; the driver's exp and tanh promise less. F64 about 1e-12 "
    "relative. A ceiling: kernels that do better claim better.",
)
"""exp, tanh, gelu and their like on Vulkan. Range reduction and polynomial. F32, or F64 for F64. Horner's
order. At most 4 ULP of the output type. Left out: subnormals on a device that flushes them; F64 may stop near
1e-12 relative.
"""

VULKAN_MATMUL_PRECISION = _stable(
    "Each output is accumulated in F32 (F64 for F64) by one invocation, k in a fixed order, multiply and add rounded "
    "apart; tiles decide who computes an output, never how."
)
"""Matrix products on Vulkan outside the matrix units. Tiled product. F32, or F64 for F64. k in a fixed order.
Same bytes on a re-run. Left out: a static bound; ``bounds.dot_product`` and ``bounds.blocked_product`` bound
it by the data.
"""

VULKAN_MATMUL_TENSORCORE_PRECISION = _stable(
    "Cooperative-matrix units with 16-bit operands and F32 accumulators; how the unit rounds inside is the vendor's, "
    "but it is the same on every run of one device."
)
"""Matrix products on Vulkan cooperative matrices. 16-bit tiles. F32, with the unit's own internal width. k
tiles in order, inside a tile unspecified. Same bytes on a re-run on one device. Left out: a static bound, and
other devices.
"""

VULKAN_QMATMUL_PRECISION = _stable(
    "Weights are dequantised as on the CPU; products accumulate in F32 by one invocation, k in a fixed order."
)
"""QMATMUL and NF4_MATMUL on Vulkan. Dequantise in registers, then product. F32. k in a fixed order. Same
bytes on a re-run. Left out: the error of quantisation, and a static bound of the product.
"""

# --- strict kernels, CPU and Vulkan alike -----------------------------------------------------------------------

STRICT_EXACT = VULKAN_BYTE_LEVEL_PRECISION.strict()
"""Movement and comparisons on any backend: one right answer, and these are its bytes."""

STRICT_CORRECTLY_ROUNDED = PrecisionGuarantee(
    True, max_ulp=0.5, notes="The exact result rounded once to nearest even; no other answer is right."
).strict()
"""Pointwise ops with one rounding, exp in F32, division, square root, on any backend. Left out: subnormals on
a device that flushes them, NaN payloads.
"""

STRICT_ONE_ULP = PrecisionGuarantee(
    True, max_ulp=1, notes="The strict library's function: own polynomials on + - * and integers."
).strict()
"""tanh, gelu_erf, F64 exp and their like on any backend. At most 1 ULP, canonical bits. Left out: subnormals
on a device that flushes them.
"""

STRICT_AFFINE = _bounded(
    affine, "A product and a sum, each rounded in F32 (F64 for F64), then the output type."
)
"""affine on any backend. Bound: ``bounds.affine``. Left out: products that overflow."""

STRICT_POWI = _bounded(
    power, "Binary exponentiation from the lowest bit, then a reciprocal; F32 (F64 for F64)."
)
"""powi on any backend. Bound: ``bounds.power``. Left out: negative exponents whose power overflows or is
subnormal.
"""

STRICT_POWI_BACKWARD = _bounded(
    power_backward, "The power as powi makes it, then two products; F32 (F64 for F64)."
)
"""POWI_BACKWARD on any backend. Bound: ``bounds.power_backward``. Left out: what powi leaves out."""

STRICT_MAX_BACKWARD = PrecisionGuarantee(
    True,
    max_ulp=1,
    notes="Ties are counted in integers; the gradient is divided by the count in F32 (F64 for F64), then rounded to "
    "the output type. Holds up to 2^24 ties.",
).strict()
"""REDUCE_MAX_TO_BACKWARD on any backend. At most 1 ULP, canonical bits; 0.5 in F32 and F64, more only where a 16-bit
result is rounded twice. Left out: more than 2^24 ties, a count that F32 rounds.
"""

STRICT_SUM = _bounded(
    tree_sum,
    "Blocks of 16384, each by 64 partials (index modulo 64) and a fixed tree, block results by the same rule; "
    "accumulated in F32 (F64 for F64).",
)
"""sum over any axes, any backend. Bound: ``bounds.tree_sum``. Left out: sums that overflow the
accumulator.
"""

STRICT_ACCUMULATION = _bounded(
    accumulation,
    "The updates of an element one after another in index order; in F32 (F64 for F64), rounded once.",
)
"""scatter_add and index_add, any backend. Bound: ``bounds.accumulation``. Left out: sums that overflow the
accumulator.
"""

STRICT_RUNNING_SUM = _bounded(
    running_sum,
    "Blocks of 64 in order, after the running sums of the blocks' totals by the same rule; F32 (F64 for F64).",
)
"""cumsum, any backend. Bound: ``bounds.running_sum``. Left out: sums that overflow the accumulator."""

STRICT_MEAN = _bounded(tree_mean, "The canonical sum divided by the count.")
"""mean over any axes, any backend. Bound: ``bounds.tree_mean``. Left out: sums that overflow the
accumulator.
"""

STRICT_PROD = _bounded(tree_product, "The order of the canonical sum, with products.")
"""prod over any axes, any backend. Bound: ``bounds.tree_product``. Left out: partial products that overflow
or underflow.
"""

STRICT_PRODUCT = _bounded(
    blocked_product,
    "Blocks of 64 k, multiply and add rounded apart, blocks in order, bias last; F32 (F64 for F64).",
)
"""matmul and fused_linear on any backend. Bound: ``bounds.blocked_product``. Left out: products that
overflow.
"""

STRICT_ATTN = _bounded(
    attention, "Keys in blocks of 64, pieces of 16 blocks, strict exp, rescaled in key order."
)
"""FLASH_ATTN on any backend. Bound: ``bounds.attention``. Left out: scores that overflow."""

_BACKWARD_NOTES = (
    "Rows in two passes with the canonical sums, strict exp; products over D, keys and query rows in blocks of 64, "
    "heads of a group in order; F32 (F64 for F64)."
)

STRICT_ATTN_BACKWARD_Q = _bounded(attention_bounds.gradient_q, _BACKWARD_NOTES)
"""FLASH_ATTN_BACKWARD_Q on any backend. Bound: ``attention_bounds.gradient_q``. Left out: scores and sums that
overflow, subnormals on a device that flushes them.
"""

STRICT_ATTN_BACKWARD_K = _bounded(attention_bounds.gradient_k, _BACKWARD_NOTES)
"""FLASH_ATTN_BACKWARD_K on any backend. Bound: ``attention_bounds.gradient_k``. Left out as for Q."""

STRICT_ATTN_BACKWARD_V = _bounded(attention_bounds.gradient_v, _BACKWARD_NOTES)
"""FLASH_ATTN_BACKWARD_V on any backend. Bound: ``attention_bounds.gradient_v``. Left out as for Q."""

STRICT_ATTN_GRADIENTS = _bounded(attention_bounds.gradients, _BACKWARD_NOTES)
"""All three at once, the same bits. Bound: ``attention_bounds.gradients``."""

STRICT_PAGED_ATTN = _bounded(
    attention_bounds.paged_attention,
    "FLASH_ATTN's canonical algorithm on the gathered context, the same bits.",
)
"""PAGED_ATTN on any backend. Bound: ``attention_bounds.paged_attention``. Left out: scores that overflow."""

# --- networks ---------------------------------------------------------------------------------------------------

STRICT_LOG_SOFTMAX = _bounded(
    network_bounds.log_softmax,
    "Maximum, strict exp of the unrounded difference, compensated sum, strict log, two differences.",
)
"""log_softmax on any backend. Bound: ``network_bounds.log_softmax``. Left out: subnormals on a device that
flushes them.
"""

_TAPS = "Taps in row-major order in blocks of 64, blocks in order; F32 (F64 for F64)."

STRICT_AVG_POOL = _bounded(network_bounds.avg_pool, _TAPS + " One division.")
"""avg_pool2d on any backend. Bound: ``network_bounds.avg_pool``. Left out: sums that overflow."""

STRICT_MAX_POOL_BACKWARD = _bounded(network_bounds.max_pool_backward, _TAPS)
"""max_pool2d_backward on any backend. Bound: ``network_bounds.max_pool_backward``. Left out: sums that overflow."""

STRICT_AVG_POOL_BACKWARD = _bounded(network_bounds.avg_pool_backward, _TAPS + " A division a term.")
"""avg_pool2d_backward on any backend. Bound: ``network_bounds.avg_pool_backward``. Left out: sums that overflow."""

STRICT_GLOBAL_MEAN = _bounded(network_bounds.global_mean, "The canonical sum divided by the count.")
"""global_avg_pool2d on any backend. Bound: ``network_bounds.global_mean``. Left out: sums that overflow."""

STRICT_BATCH_NORM = _bounded(
    network_bounds.batch_norm,
    "A difference, a strict reciprocal root, two products and a sum, each rounded in F32 (F64 for F64).",
)
"""batch_norm on any backend. Bound: ``network_bounds.batch_norm``. Left out: steps that overflow."""

STRICT_HARD_SIGMOID = _bounded(
    network_bounds.hard_sigmoid,
    "A product and a sum, each rounded in F32 (F64 for F64), held between 0 and 1.",
)
"""hard_sigmoid on any backend. Bound: ``network_bounds.hard_sigmoid``. Nothing is left out."""

STRICT_HARD_SWISH = _bounded(
    network_bounds.hard_swish, "A sum, a strict quotient and a product, each rounded in F32 (F64 for F64)."
)
"""hard_swish on any backend. Bound: ``network_bounds.hard_swish``. Nothing is left out."""

STRICT_RESIZE = _bounded(
    network_bounds.resize,
    "Exact places, weights rounded once; columns, then rows: two products and a sum, each rounded; F32 (F64 for F64).",
)
"""resize2d on any backend. Bound: ``network_bounds.resize``. Left out: results at the edge of overflow."""

STRICT_RESIZE_BACKWARD = _bounded(
    network_bounds.resize_backward,
    "Columns in blocks of 64, then rows in blocks of 64, products and sums rounded apart; F32 (F64 for F64).",
)
"""resize2d_backward on any backend. Bound: ``network_bounds.resize_backward``. Left out: sums that overflow."""
