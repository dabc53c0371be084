"""Bits do not depend on the run, on recycled memory, on the batch, nor on the width of a subgroup."""

from __future__ import annotations

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.graph.types import OpEntry, Sample
from fuelvk.kernels.types import BackendImpl
from fuelvk.runtime.devices import VulkanDevice
from fuelvk.verify.compare import same_bits
from tests.support.cases import impl_id, implementations, samples
from tests.support.harness import RefusedError, run_impl

ON_VULKAN = [
    row for row in implementations() if row[1] == "vulkan" and row[2].precision.bit_stable_on_same_hardware
]


def biggest(op: OpEntry, impl: BackendImpl) -> Sample:
    return max(samples(op, impl), key=lambda s: sum(x.size for x in s.inputs if x is not None))


@pytest.mark.device
@pytest.mark.parametrize("row", ON_VULKAN, ids=impl_id)
def test_the_same_bits_on_recycled_memory(row: tuple[OpEntry, str, BackendImpl], gpu: VulkanDevice) -> None:
    op, backend, impl = row
    sample = biggest(op, impl)
    try:
        first = run_impl(op, backend, impl, sample.inputs, sample.params, gpu)
    except RefusedError as reason:
        pytest.skip(f"refused: {reason}")
    for pattern in (0xFF, 0x00, 0x7F):
        dirt = [
            gpu.vk.alloc(max(x.nbytes, 1)) for x in (*first, *(i for i in sample.inputs if i is not None))
        ]
        for buffer in dirt:
            gpu.vk.write(buffer, np.full(buffer.nbytes, pattern, np.uint8))
        del dirt, buffer
        again = run_impl(op, backend, impl, sample.inputs, sample.params, gpu)
        for a, b in zip(first, again, strict=True):
            assert (difference := same_bits(b, a)) is None, difference


ROW_OPS = [
    ("softmax_last_dim", {}), ("rms_norm_last_dim", {}), ("layer_norm_last_dim", {}), ("exp", {}), ("tanh", {}),
    ("gelu_erf", {}), ("sum", {"axes": (-1,)}), ("mean", {"axes": (-1,)}), ("max", {"axes": (-1,)}),
]  # fmt: skip


@pytest.mark.device
@pytest.mark.parametrize("dtype", ["f4", "f2"])
@pytest.mark.parametrize(("op", "params"), ROW_OPS, ids=[name for name, _ in ROW_OPS])
@pytest.mark.parametrize("columns", [1, 63, 64, 129, 1000])
def test_a_row_alone_is_a_row_in_a_batch(
    op: str, params: dict[str, object], dtype: str, columns: int, gpu: VulkanDevice
) -> None:
    if dtype == "f2" and "storage16" not in gpu.capabilities.features:
        pytest.skip("refused: the device lacks storage16")
    x = np.random.default_rng(7).standard_normal((37, columns)).astype(dtype) * 3
    batch = fv.call(op, x, device=gpu, **params)
    for i in (0, 1, 17, 36):
        alone = fv.call(op, x[i : i + 1], device=gpu, **params)
        assert (difference := same_bits(alone[0:1], batch[i : i + 1])) is None, difference


@pytest.mark.device
@pytest.mark.parametrize("shape", [(1, 64, 32), (5, 384, 48), (9, 100, 65), (130, 33, 17)])
def test_a_row_of_a_product_does_not_see_its_neighbours(
    shape: tuple[int, int, int], gpu: VulkanDevice
) -> None:
    m, k, n = shape
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    whole = fv.call("matmul", a, b, device=gpu)
    for i in {0, m // 2, m - 1}:
        row = fv.call("matmul", a[i : i + 1], b, device=gpu)
        assert (difference := same_bits(row, whole[i : i + 1])) is None, difference
    column = fv.call("matmul", a, b[:, n // 2 : n // 2 + 1], device=gpu)
    assert (difference := same_bits(column, whole[:, n // 2 : n // 2 + 1])) is None, difference


@pytest.mark.device
def test_a_query_row_is_the_same_in_prefill_and_decode(gpu: VulkanDevice) -> None:
    rng = np.random.default_rng(5)
    q, k, v = (rng.standard_normal((2, h, 150, 32), dtype=np.float32) for h in (4, 2, 2))
    params = {"scale": 32**-0.5, "causal": True}
    whole = fv.call("flash_attn", q, k, v, device=gpu, **params)
    for i in (0, 63, 64, 149):
        row = fv.call(
            "flash_attn", q[:, :, i : i + 1], k[:, :, : i + 1], v[:, :, : i + 1], device=gpu, **params
        )
        assert (difference := same_bits(row, whole[:, :, i : i + 1])) is None, difference
        longer = fv.call("flash_attn", q[:, :, i : i + 1], k, v, device=gpu, k_len=i + 1, **params)
        assert (difference := same_bits(longer, whole[:, :, i : i + 1])) is None, difference
