"""Matrix products and attention beyond the registry's samples: large enough for every kernel, and strided."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout
from fuelvk.graph.registry import find_op
from fuelvk.kernels.types import BackendImpl
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.devices import VulkanDevice
from fuelvk.verify.compare import same_bits
from tests.support.launch import run_in_place

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.device


def normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    return rng.standard_normal(shape).astype(dtype.numpy)


def impls(name: str, dtype: DType) -> tuple[BackendImpl, list[BackendImpl]]:
    """Returns the C kernel and the Vulkan kernels of an op."""
    op = find_op(name)
    assert op is not None
    rows = [(b, i) for b, i in default_kernel_registry().impls_for(op.id) if i.dtypes[0] is dtype]
    on_cpu = next(i for b, i in rows if b == "cpu" and i.precision.canonical)
    return on_cpu, [i for b, i in rows if b == "vulkan"]


def check(
    gpu: VulkanDevice, name: str, dtype: DType, inputs: tuple[Array | None, ...], params: Any, y: Array
) -> None:
    """Every admitted Vulkan kernel of an op gives the C kernel's bytes."""
    on_cpu, on_vulkan = impls(name, dtype)
    shapes = (*(None if x is None else x.shape for x in inputs), y.shape)
    if reason := on_cpu.admits(shapes, params, None):
        pytest.skip(reason)
    want = np.empty_like(y)
    given = [None if x is None else np.ascontiguousarray(x) for x in inputs]
    layouts = [*(None if x is None else Layout.of(x.shape) for x in given), Layout.of(y.shape)]
    on_cpu.kernel(given, [want], layouts, params, None)
    ran = 0
    for impl in on_vulkan:
        if impl.admits(shapes, params, gpu.vk.caps) is None:
            ran += 1
            got = run_in_place(gpu.vk, impl, inputs, y, params)
            assert same_bits(got, want) is None, f"{impl.name}: {same_bits(got, want)}"
    if not ran:
        pytest.skip(f"no kernel for {dtype} here")


def products(rng: np.random.Generator, dtype: DType) -> Iterator[tuple[str, Array, Array]]:
    for left, right in (
        ((130, 200), (200, 90)), ((97, 384), (384, 96)), ((3, 50, 129), (129, 90)), ((2, 3, 90, 65), (3, 65, 81)),
        ((1, 384), (384, 130)), ((20, 100), (100, 66)), ((2, 1, 2, 1, 85, 70), (1, 2, 1, 2, 70, 80)),
    ):  # fmt: skip
        yield f"{left}-{right}", normal(rng, left, dtype), normal(rng, right, dtype)
    for m, k, n in ((7, 70, 9), (90, 70, 100)):
        yield f"{m} a turned", normal(rng, (k, m), dtype).T, normal(rng, (k, n), dtype)
        yield f"{m} b turned", normal(rng, (m, k), dtype), normal(rng, (n, k), dtype).T
        yield f"{m} reversed", normal(rng, (m, k), dtype)[::-1, ::-1], normal(rng, (k, n), dtype)[:, ::-1]
        yield (
            f"{m} spaced",
            normal(rng, (m + 1, k + 3), dtype)[1:, 1:-2],
            normal(rng, (k, 2 * n), dtype)[:, 1::2],
        )
        repeated = np.broadcast_to(normal(rng, (1, k), dtype), (m, k))
        yield f"{m} repeated", repeated, normal(rng, (k, n), dtype)
        heads = normal(rng, (2, m, 3, k), dtype).transpose(0, 2, 1, 3)
        yield f"{m} heads", heads, normal(rng, (2, n, 3, k), dtype).transpose(0, 2, 3, 1)
        a, b = normal(rng, (m, k), dtype), normal(rng, (k, n), dtype)
        a[m - 1], b[k - 1, 0], b[3, n - 1] = np.inf, np.nan, -np.inf
        yield f"{m} not finite", a, b


@pytest.mark.parametrize("dtype", FLOATS, ids=[d.key for d in FLOATS])
def test_products(dtype: DType, gpu: VulkanDevice) -> None:
    rng = np.random.default_rng(11)
    for _, a, b in products(rng, dtype):
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        y = np.empty((*batch, a.shape[-2], b.shape[-1]), dtype.numpy)
        check(gpu, "matmul", dtype, (a, b), {}, y)
        bias = normal(rng, (2 * b.shape[-1],), dtype)[::-2]
        check(gpu, "fused_linear", dtype, (a, b, bias), {}, y)


# (B, Hq, Hkv, Sq, Sk, D), params
CALLS: tuple[tuple[tuple[int, int, int, int, int, int], dict[str, Any]], ...] = (
    ((2, 4, 4, 20, 20, 32), {}),
    ((1, 2, 2, 130, 130, 64), {"causal": True}),
    ((1, 2, 1, 3, 1500, 64), {}),
    ((1, 2, 2, 9, 2100, 32), {"causal": True}),
    ((1, 1, 1, 17, 2100, 16), {"window_left": 700, "causal": True}),
    ((1, 8, 2, 1, 300, 80), {"causal": True}),
    ((1, 4, 4, 1, 1100, 96), {"softcap": 3.0}),
    ((2, 3, 3, 33, 77, 34), {"window_left": 9, "window_right": 30}),
    ((1, 1, 1, 9, 70, 256), {"causal": True, "causal_offset": 20}),
    ((1, 3, 1, 10, 70, 7), {"causal": True}),
    ((2, 8, 2, 1, 2300, 64), {"causal": True}),
    ((1, 8, 8, 40, 1100, 32), {"causal": True}),
)
DEFAULTS = dict.fromkeys(("causal_offset", "window_left", "window_right", "softcap", "k_len")) | {
    "causal": False
}


def calls(
    rng: np.random.Generator, dtype: DType
) -> Iterator[tuple[tuple[Array | None, ...], dict[str, Any]]]:
    for (batch, hq, hkv, sq, sk, d), params in CALLS:
        q = normal(rng, (batch, hq, sq, d), dtype)
        k, v = (normal(rng, (batch, hkv, sk, d), dtype) for _ in range(2))
        yield (q, k, v, None, None), params
    slopes, lens = np.array([0.5, 0.25, 0.1, 0.06], np.float32), np.array([150, 0, 77], np.uint32)
    q = normal(rng, (3, 4, 21, 32), dtype)
    k, v = (normal(rng, (3, 2, 150, 32), dtype) for _ in range(2))
    yield (q, k, v, slopes, lens), {"causal": True, "softcap": 4.0}
    yield (q, k, v, slopes, lens), {"window_left": 20, "window_right": 5, "causal_offset": 7}
    for d in (32, 33):  # projections side by side, heads apart; 33: rows begin on odd elements
        whole = normal(rng, (2, 50, 3, 4, d), dtype)
        q, k, v = (whole[:, :, i, :, d - 32 :].transpose(0, 2, 1, 3) for i in range(3))
        yield (q, k, v, None, None), {"causal": True}
    q, k, v = (normal(rng, (1, 2, 70, 32), dtype) for _ in range(3))
    v[0, 0, 10, 3], v[0, 1, 69], k[0, 0, 40, 1], q[0, 1, 5, 0] = np.inf, np.nan, np.inf, np.inf
    yield (q, k, v, None, None), {"causal": True}
    yield (q, k, v, None, None), {"window_left": 4, "window_right": 3}
    q = np.abs(normal(rng, (1, 1, 9, 16), dtype))
    k, v = (normal(rng, (1, 1, 2100, 16), dtype) for _ in range(2))
    k[0, 0, :1100] = -np.inf  # a whole piece of scores that weigh nothing
    yield (q, k, v, None, None), {}


@pytest.mark.parametrize("dtype", FLOATS, ids=[d.key for d in FLOATS])
def test_attention(dtype: DType, gpu: VulkanDevice) -> None:
    for inputs, params in calls(np.random.default_rng(12), dtype):
        assert inputs[0] is not None
        y = np.empty(inputs[0].shape, dtype.numpy)
        check(gpu, "flash_attn", dtype, inputs, {**DEFAULTS, "scale": 0.17, **params}, y)
