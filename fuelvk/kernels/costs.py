"""Cost of one call (ops.md section 6): the sixteen CPU functions, their Vulkan twins, and those of the
primitives.

A cost function takes the shapes of the inputs (None for one left out; shapes of outputs may follow), the
parameters and the device's capabilities, and returns operations, bytes and fixed cost. Shapes of the wrong
rank give the zero estimate. ``cost_*_cpu`` count 4 bytes an element; ``cost_*_vulkan`` take ``dtype`` (bind
it with functools.partial).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Shape, elements
from fuelvk.kernels.types import CostEstimate, Shapes

Params = Mapping[str, Any]
Work = tuple[int, int]  # operations, bytes
Count = Callable[[Shapes, Params, int], Work | None]  # the int is the size of an element

# One dispatch with its barrier, between two measurements: 0.2 to 1.2 us on lavapipe where the queue's own thread
# runs the shader, 5 to 15 us where worker threads have to be woken.
VULKAN_LAUNCH_NS = 2000


class DTypeAwareCost(Protocol):
    """A cost function that also takes the element type."""

    def __call__(
        self, shapes: Shapes, params: Params, capabilities: Any = None, *, dtype: DType = DType.F32
    ) -> CostEstimate: ...


def _rank(shapes: Shapes, index: int, rank: int) -> Shape | None:
    """Returns the shape at ``index`` if it is there and has that rank."""
    shape = shapes[index] if index < len(shapes) else None
    return shape if shape is not None and len(shape) == rank else None


def _all(shapes: Shapes, *ranks: int) -> tuple[Shape, ...] | None:
    """Returns the first shapes if each has its rank."""
    found = [_rank(shapes, i, r) for i, r in enumerate(ranks)]
    kept = tuple(s for s in found if s is not None)
    return kept if len(kept) == len(ranks) else None


def _first(shapes: Shapes) -> Shape | None:
    return shapes[0] if shapes else None


def _pair(value: Any) -> tuple[int, int]:
    return (int(value), int(value)) if isinstance(value, int) else (int(value[0]), int(value[1]))


# --- linear, norms, rope ----------------------------------------------------------------------------------------


def _fused_linear(shapes: Shapes, params: Params, size: int) -> Work | None:
    a, b = _first(shapes), shapes[1] if len(shapes) > 1 else None
    if a is None or b is None or len(a) < 2 or len(b) < 2:
        return None
    batch, m, k, n = elements(a[:-2]), a[-2], a[-1], b[-1]
    return 2 * batch * m * n * k + batch * m * n, size * (batch * (m * k + k * n + m * n) + n)


# Operations per element and number of inputs.
_NORMS = {"softmax": (5, 1), "rms": (4, 2), "layer": (7, 3)}


def _norm_kind(shapes: Shapes, params: Params) -> str:
    """Tells the family's members apart: softmax has no eps, rms norm at most two inputs."""
    if "eps" not in params:
        return "softmax"
    return "rms" if len(shapes) <= 2 else "layer"


def _norm(kind: str | None) -> Count:
    def count(shapes: Shapes, params: Params, size: int) -> Work | None:
        x = _first(shapes)
        if not x:
            return None
        per_element, inputs = _NORMS[kind or _norm_kind(shapes, params)]
        limit = len(shapes) if kind is None else inputs
        second = any(s is not None for s in shapes[1:limit])
        return per_element * elements(x), size * elements(x) * (3 if second else 2)

    return count


def _rope(shapes: Shapes, params: Params, size: int) -> Work | None:
    x, cos = _first(shapes), shapes[1] if len(shapes) > 1 else None
    if not x or not cos:
        return None
    return 4 * elements(x), size * (2 * elements(x) + 2 * elements(cos))


# --- convolutions -----------------------------------------------------------------------------------------------


def _conv2d(shapes: Shapes, params: Params, size: int) -> Work | None:
    found = _all(shapes, 4, 4)
    if found is None:
        return None
    (n, ci, h, w), (co, ci_g, kh, kw) = found
    (sh, sw), (ph, pw), (dh, dw) = (
        _pair(params.get(p, d)) for p, d in (("stride", 1), ("padding", 0), ("dilation", 1))
    )
    ho = max((h + 2 * ph - dh * (kh - 1) - 1) // sh + 1, 0)
    wo = max((w + 2 * pw - dw * (kw - 1) - 1) // sw + 1, 0)
    bias = _rank(shapes, 2, 1) is not None
    out = n * co * ho * wo
    flops = 2 * out * ci_g * kh * kw + (out if bias else 0)
    return flops, size * (n * ci * h * w + co * ci_g * kh * kw + out + (co if bias else 0))


def _conv_transpose2d(shapes: Shapes, params: Params, size: int) -> Work | None:
    found = _all(shapes, 4, 4)
    if found is None:
        return None
    (n, ci, h, w), (_, co_g, kh, kw) = found
    groups = int(params.get("groups", 1))
    defaults = (("stride", 1), ("padding", 0), ("output_padding", 0), ("dilation", 1))
    (sh, sw), (ph, pw), (oh, ow), (dh, dw) = (_pair(params.get(p, d)) for p, d in defaults)
    ho = max((h - 1) * sh - 2 * ph + dh * (kh - 1) + oh + 1, 0)
    wo = max((w - 1) * sw - 2 * pw + dw * (kw - 1) + ow + 1, 0)
    out = n * co_g * groups * ho * wo
    return 2 * out * (ci // max(groups, 1)) * kh * kw, size * (n * ci * h * w + ci * co_g * kh * kw + out)


def _causal_conv1d(shapes: Shapes, params: Params, size: int) -> Work | None:
    x, w = _rank(shapes, 0, 3), shapes[1] if len(shapes) > 1 else None
    if x is None or w is None or len(w) not in (2, 3):
        return None
    batch, c, padded = x
    k = w[-1]
    s = max(padded - k + 1, 0)
    silu = 10 if params.get("use_silu", False) else 0
    return batch * c * s * (2 * k + silu), size * (batch * c * padded + c * k + c + batch * c * s)


# --- attention --------------------------------------------------------------------------------------------------


def _attention_sizes(shapes: Shapes) -> tuple[int, int, int, int, int, int] | None:
    """Returns B, Hq, Hkv, Sq, Sk, D of a dense or paged call; for a paged one Sk is the capacity MB*bs."""
    found = _all(shapes, 4, 4, 4)
    if found is None:
        return None
    (batch, hq, sq, d), k, _ = found
    table = _rank(shapes, 3, 2)
    if table is not None:
        return batch, hq, k[2], sq, table[1] * k[1], d
    return batch, hq, k[1], sq, k[2], d


def _attn(shapes: Shapes, params: Params, size: int) -> Work | None:
    sizes = _attention_sizes(shapes)
    if sizes is None:
        return None
    batch, hq, hkv, sq, sk, d = sizes
    flops = 4 * batch * hq * sq * sk * d + 5 * batch * hq * sq * sk
    return flops, size * (2 * batch * hq * sq * d + 2 * batch * hkv * sk * d)


def _attn_backward(shapes: Shapes, params: Params, size: int) -> Work | None:
    sizes = _attention_sizes(shapes)
    if sizes is None:
        return None
    batch, hq, hkv, sq, sk, d = sizes
    flops = 10 * batch * hq * sq * sk * d + 8 * batch * hq * sq * sk
    return flops, size * (3 * batch * hq * sq * d + 4 * batch * hkv * sk * d)


# --- quantized products -----------------------------------------------------------------------------------------

# Values per block and bytes per block (ops.md section 5).
QUANT_BLOCKS = {
    "Q4_0": (32, 18),
    "Q4_1": (32, 20),
    "Q5_0": (32, 22),
    "Q5_1": (32, 24),
    "Q8_0": (32, 34),
    "Q2_K": (256, 84),
    "Q3_K": (256, 110),
    "Q4_K": (256, 144),
    "Q5_K": (256, 176),
    "Q6_K": (256, 210),
}


def _qmatmul(shapes: Shapes, params: Params, size: int) -> Work | None:
    a, w = _first(shapes), shapes[1] if len(shapes) > 1 else None
    if a is None or len(a) < 2 or w is None or len(w) not in (1, 2):
        return None
    batch, m, k = elements(a[:-2]), a[-2], a[-1]
    values, nbytes = QUANT_BLOCKS.get(str(params.get("quant_type")), (1, 0))
    row = k // values * nbytes
    n = int(params.get("n", w[0] if len(w) == 2 else elements(w) // row if row else 0))
    return 2 * batch * m * n * k, size * (batch * m * k + batch * m * n) + elements(w)


def _nf4_matmul(shapes: Shapes, params: Params, size: int) -> Work | None:
    a, w = _first(shapes), _rank(shapes, 1, 2)
    if a is None or len(a) < 2 or w is None:
        return None
    batch, m, k, n = elements(a[:-2]), a[-2], a[-1], w[0]
    block = int(params.get("block_size", 64))
    nbytes = size * batch * m * k + n * k // 2 + 4 * n * k // block + size * batch * m * n
    return 2 * batch * m * n * k + n * k, nbytes


# --- pointwise and row ops --------------------------------------------------------------------------------------


def _reduce_max_to_backward(shapes: Shapes, params: Params, size: int) -> Work | None:
    x, g = _first(shapes), shapes[1] if len(shapes) > 1 else None
    if x is None or g is None:
        return None
    n, out = elements(x), elements(g)
    return 5 * n + 2 * out, size * (5 * n + 3 * out)


def _powi_backward(shapes: Shapes, params: Params, size: int) -> Work | None:
    x = _first(shapes)
    if x is None:
        return None
    n = elements(x)
    steps = math.ceil(math.log2(max(2, abs(int(params.get("exp", 2))))))
    return n * (steps + 2), 3 * size * n


def _inplace_affine(shapes: Shapes, params: Params, size: int) -> Work | None:
    x = _first(shapes)
    return None if x is None else (elements(x), 2 * size * elements(x))


def _softmax_cross_entropy(shapes: Shapes, params: Params, size: int) -> Work | None:
    x = _first(shapes)
    if not x:
        return None
    rows, v = elements(x[:-1]), x[-1]
    return rows * (13 * v + 10), size * rows * v + 8 * rows + 4 * rows


# --- scans ------------------------------------------------------------------------------------------------------


def _selective_scan(shapes: Shapes, params: Params, size: int) -> Work | None:
    u, a = _rank(shapes, 0, 3), _rank(shapes, 2, 2)
    if u is None or a is None:
        return None
    batch, length, d = u
    n = a[1]
    bld, bln = batch * length * d, batch * length * n
    return 16 * bld * n, size * (2 * bld + 2 * bln + d * n + bld)


def _ssd_chunk_scan(shapes: Shapes, params: Params, size: int) -> Work | None:
    x, b = _rank(shapes, 0, 4), _rank(shapes, 3, 4)
    if x is None or b is None:
        return None
    batch, length, h, p = x
    groups, n = b[2], b[3]
    blh = batch * length * h
    return 8 * blh * p * n, size * (2 * blh * p + blh + 2 * batch * length * groups * n + h)


# --- the public functions ---------------------------------------------------------------------------------------


def _estimate(work: Work | None, overhead_ns: int) -> CostEstimate:
    return CostEstimate() if work is None else CostEstimate(work[0], work[1], overhead_ns)


def cost_fused_linear_cpu(shapes: Shapes, params: Params, capabilities: Any = None) -> CostEstimate:
    """2BMNK + BMN operations; a, b, result and N more elements."""
    return _estimate(_fused_linear(shapes, params, 4), 50)


def cost_norm_family_cpu(
    shapes: Shapes, params: Params, capabilities: Any = None, *, kind: str | None = None
) -> CostEstimate:
    """5, 4 or 7 operations an element for softmax, rms and layer norm; 2 passes of bytes, 3 with a second
    input.

    ``kind`` ("softmax", "rms", "layer") names the op and where its inputs end; without it the shapes are
    inputs only, and the op is told by its parameters and their number.
    """
    return _estimate(_norm(kind)(shapes, params, 4), 50)


def cost_rope_cpu(shapes: Shapes, params: Params, capabilities: Any = None) -> CostEstimate:
    """4E operations; x twice and both tables."""
    return _estimate(_rope(shapes, params, 4), 50)


def cost_conv2d_cpu(shapes: Shapes, params: Params, capabilities: Any = None) -> CostEstimate:
    """2 N Co Ho Wo (Ci/g) Kh Kw operations, one more per output with a bias."""
    return _estimate(_conv2d(shapes, params, 4), 50)


def cost_conv_transpose2d_cpu(shapes: Shapes, params: Params, capabilities: Any = None) -> CostEstimate:
    """2 N Co Ho Wo (Ci/g) Kh Kw operations."""
    return _estimate(_conv_transpose2d(shapes, params, 4), 50)


def cost_attn_cpu(shapes: Shapes, params: Params, capabilities: Any = None) -> CostEstimate:
    """4 B Hq Sq Sk D + 5 B Hq Sq Sk operations; q, result, k and v once. Paged: Sk is the capacity MB*bs."""
    return _estimate(_attn(shapes, params, 4), 200)


def cost_attn_backward_cpu(shapes: Shapes, params: Params, capabilities: Any = None) -> CostEstimate:
    """10 B Hq Sq Sk D + 8 B Hq Sq Sk operations."""
    return _estimate(_attn_backward(shapes, params, 4), 200)


def cost_qmatmul_cpu(shapes: Shapes, params: Params, capabilities: Any = None) -> CostEstimate:
    """2BMNK operations; activations, result, and the weights in bytes."""
    return _estimate(_qmatmul(shapes, params, 4), 50)


def cost_nf4_matmul_cpu(shapes: Shapes, params: Params, capabilities: Any = None) -> CostEstimate:
    """2BMNK + NK operations; half a byte a weight and one F32 scale a block."""
    return _estimate(_nf4_matmul(shapes, params, 4), 50)


def cost_reduce_max_to_backward_cpu(shapes: Shapes, params: Params, capabilities: Any = None) -> CostEstimate:
    """5 in + 2 out operations."""
    return _estimate(_reduce_max_to_backward(shapes, params, 4), 80)


def cost_powi_backward_cpu(shapes: Shapes, params: Params, capabilities: Any = None) -> CostEstimate:
    """ceil(log2(max(2, abs(exp)))) + 2 operations an element."""
    return _estimate(_powi_backward(shapes, params, 4), 60)


def cost_inplace_affine_cpu(shapes: Shapes, params: Params, capabilities: Any = None) -> CostEstimate:
    """One multiply-add an element, read and written in place."""
    return _estimate(_inplace_affine(shapes, params, 4), 50)


def cost_causal_conv1d_cpu(shapes: Shapes, params: Params, capabilities: Any = None) -> CostEstimate:
    """2K operations an output, 10 more with SiLU."""
    return _estimate(_causal_conv1d(shapes, params, 4), 50)


def cost_fused_softmax_cross_entropy_cpu(
    shapes: Shapes, params: Params, capabilities: Any = None
) -> CostEstimate:
    """13V + 10 operations a row; logits, I64 targets, one F32 a row."""
    return _estimate(_softmax_cross_entropy(shapes, params, 4), 50)


def cost_selective_scan_cpu(shapes: Shapes, params: Params, capabilities: Any = None) -> CostEstimate:
    """16 BLDN operations; u, delta, B, C, A and y."""
    return _estimate(_selective_scan(shapes, params, 4), 50)


def cost_ssd_chunk_scan_cpu(shapes: Shapes, params: Params, capabilities: Any = None) -> CostEstimate:
    """8 BLHPN operations; x, y, dt, b, c and a."""
    return _estimate(_ssd_chunk_scan(shapes, params, 4), 50)


def _on_vulkan(count: Count, doc: str) -> DTypeAwareCost:
    def cost(
        shapes: Shapes, params: Params, capabilities: Any = None, *, dtype: DType = DType.F32
    ) -> CostEstimate:
        return _estimate(count(shapes, params, dtype.size), VULKAN_LAUNCH_NS)

    cost.__doc__ = doc
    return cost


cost_fused_linear_vulkan = _on_vulkan(_fused_linear, "The linear layer's work in elements of ``dtype``.")
cost_softmax_vulkan = _on_vulkan(_norm("softmax"), "The softmax's work in elements of ``dtype``.")
cost_rms_norm_vulkan = _on_vulkan(_norm("rms"), "The rms norm's work in elements of ``dtype``.")
cost_layer_norm_vulkan = _on_vulkan(_norm("layer"), "The layer norm's work in elements of ``dtype``.")
cost_norm_family_vulkan = _on_vulkan(_norm(None), "A norm's work, told apart as cost_norm_family_cpu does.")
cost_rope_vulkan = _on_vulkan(_rope, "RoPE's work in elements of ``dtype``.")
cost_conv2d_vulkan = _on_vulkan(_conv2d, "The convolution's work in elements of ``dtype``.")
cost_conv_transpose2d_vulkan = _on_vulkan(_conv_transpose2d, "The transposed convolution's work.")
cost_attn_vulkan = _on_vulkan(_attn, "Attention's work in elements of ``dtype``.")
cost_attn_backward_vulkan = _on_vulkan(_attn_backward, "Attention's backward work in elements of ``dtype``.")
cost_qmatmul_vulkan = _on_vulkan(_qmatmul, "The quantized product's work; weights stay bytes.")
cost_nf4_matmul_vulkan = _on_vulkan(
    _nf4_matmul, "The NF4 product's work; weights and scales keep their sizes."
)
cost_reduce_max_to_backward_vulkan = _on_vulkan(_reduce_max_to_backward, "The work in elements of ``dtype``.")
cost_powi_backward_vulkan = _on_vulkan(_powi_backward, "The work in elements of ``dtype``.")
cost_inplace_affine_vulkan = _on_vulkan(_inplace_affine, "The work in elements of ``dtype``.")
cost_causal_conv1d_vulkan = _on_vulkan(_causal_conv1d, "The work in elements of ``dtype``.")
cost_fused_softmax_cross_entropy_vulkan = _on_vulkan(
    _softmax_cross_entropy, "Logits in elements of ``dtype``; targets I64, losses F32."
)
cost_selective_scan_vulkan = _on_vulkan(_selective_scan, "The work in elements of ``dtype``.")
cost_ssd_chunk_scan_vulkan = _on_vulkan(_ssd_chunk_scan, "The work in elements of ``dtype``.")
