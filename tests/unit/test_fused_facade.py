"""The facade's names, compared with the specification's list."""

from __future__ import annotations

import pytest

import fuelvk.fused as facade
from fuelvk.graph.registry import FusedOps

TYPES = (
    "BackendImpl",
    "CostEstimate",
    "FusedKernelRegistry",
    "KernelRevisionHash",
    "PrecisionGuarantee",
    "default_kernel_registry",
    "register_default_kernels",
)
CPU_CONSTANTS = (
    "ATTN",
    "ATTN_BACKWARD",
    "CAUSAL_CONV1D",
    "CONV2D",
    "CONV_TRANSPOSE2D",
    "FUSED_LINEAR",
    "FUSED_SOFTMAX_CROSS_ENTROPY",
    "INPLACE_AFFINE",
    "NF4_MATMUL",
    "NORM_FAMILY",
    "POWI_BACKWARD",
    "QMATMUL",
    "REDUCE_MAX_TO_BACKWARD",
    "ROPE",
    "SELECTIVE_SCAN",
    "SSD_CHUNK_SCAN",
)
VULKAN_CONSTANTS = (
    "VULKAN_BYTE_LEVEL_PRECISION",
    "VULKAN_CAST_PRECISION",
    "VULKAN_FLOAT_POINTWISE_PRECISION",
    "VULKAN_HALF_POINTWISE_PRECISION",
    "VULKAN_MATMUL_PRECISION",
    "VULKAN_MATMUL_TENSORCORE_PRECISION",
    "VULKAN_QMATMUL_PRECISION",
    "VULKAN_TRANSCENDENTAL_PRECISION",
)
COSTS = (
    "cost_attn_backward_cpu",
    "cost_attn_cpu",
    "cost_causal_conv1d_cpu",
    "cost_conv2d_cpu",
    "cost_conv_transpose2d_cpu",
    "cost_fused_linear_cpu",
    "cost_fused_softmax_cross_entropy_cpu",
    "cost_inplace_affine_cpu",
    "cost_nf4_matmul_cpu",
    "cost_norm_family_cpu",
    "cost_powi_backward_cpu",
    "cost_qmatmul_cpu",
    "cost_reduce_max_to_backward_cpu",
    "cost_rope_cpu",
    "cost_selective_scan_cpu",
    "cost_ssd_chunk_scan_cpu",
)


def test_names() -> None:
    wanted = {*TYPES, *VULKAN_CONSTANTS, *COSTS, *(f"{n}_CPU_PRECISION" for n in CPU_CONSTANTS)}
    assert set(facade.__all__) == wanted
    assert len(facade.__all__) == 7 + 24 + 16
    for name in wanted:
        assert getattr(facade, name) is not None


@pytest.mark.parametrize("name", TYPES + COSTS)
def test_documented(name: str) -> None:
    assert (getattr(facade, name).__doc__ or "").strip()


def test_ids_of_the_specification() -> None:
    names = [
        "SOFTMAX_LAST_DIM",
        "FUSED_LINEAR",
        "RMS_NORM_LAST_DIM",
        "LAYER_NORM_LAST_DIM",
        "ROPE",
        "CONV2D",
        "SOFTMAX_LAST_DIM_BACKWARD",
        "LAYER_NORM_LAST_DIM_BACKWARD",
        "RMS_NORM_LAST_DIM_BACKWARD",
        "REDUCE_MAX_TO_BACKWARD",
        "CONV_TRANSPOSE2D",
        "FLASH_ATTN",
        "PAGED_ATTN",
        "QMATMUL",
        "POWI_BACKWARD",
        "INPLACE_AFFINE",
        "FUSED_SOFTMAX_CROSS_ENTROPY",
        "CAUSAL_CONV1D",
        "SELECTIVE_SCAN",
        "SSD_CHUNK_SCAN",
        "NF4_MATMUL",
        "FLASH_ATTN_BACKWARD_Q",
        "FLASH_ATTN_BACKWARD_K",
        "FLASH_ATTN_BACKWARD_V",
    ]
    assert [i.name for i in FusedOps.all()] == names
    assert [i.number for i in FusedOps.all()] == list(range(1, 25))
    assert FusedOps.FLASH_ATTN.number == 12


def test_default_registry_is_one_and_frozen() -> None:
    first = facade.default_kernel_registry()
    assert facade.default_kernel_registry() is first
    own = facade.FusedKernelRegistry()
    facade.register_default_kernels(own)
    assert own.ids() == first.ids()
