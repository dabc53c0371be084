"""Matrix products in C: the canonical bits, the error theorem, every shape of batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cpu_reference import c as ckernels
from cpu_reference import canonical
from cpu_reference.numpy import oracle
from fuelvk.base.dtypes import FLOATS, DType

Array = np.ndarray[Any, Any]

SHAPES = ((1, 1, 1), (3, 63, 5), (4, 64, 7), (5, 65, 3), (2, 130, 129), (67, 3, 2), (9, 129, 130))


def draw(shape: tuple[int, ...], dtype: DType, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype.numpy)


def linear(a: Array, b: Array, bias: Array | None) -> Array:
    a_index, b_index, batch = ckernels.batch_indices(a.shape[:-2], b.shape[:-2])
    y = np.empty((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    sizes = (a_index.size, a.shape[-2], a.shape[-1], b.shape[-1])
    ckernels.call(f"fused_linear_{DType.of(a).key}", a, b, bias, a_index, b_index, y, *sizes)
    plain = np.empty_like(y)
    ckernels.call(f"matmul_{DType.of(a).key}", a, b, a_index, b_index, plain, *sizes)
    if bias is None:
        assert plain.tobytes() == y.tobytes()
    return y


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_linear_is_canonical_and_within_the_theorem(shape: tuple[int, int, int], dtype: DType) -> None:
    m, k, n = shape
    a, b, bias = draw((m, k), dtype), draw((k, n), dtype, 1), draw((n,), dtype, 2)
    acc = dtype.accumulator.numpy
    for vector in (None, bias):
        y = linear(a, b, vector)
        loops = canonical.matmul(a.astype(acc), b.astype(acc), None if vector is None else vector.astype(acc))
        assert y.tobytes() == loops.astype(dtype.numpy).tobytes()
        exact = oracle("fused_linear")(a, b, vector)
        # A product, at most 63 + k/64 additions and the bias: |err| <= gamma * sum |a||b|.
        steps = min(k, 64) + k // 64 + 2
        size = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)) + (
            0 if vector is None else np.abs(exact)
        )
        u = dtype.accumulator.unit_roundoff
        allowed = steps * u / (1 - steps * u) * size + dtype.unit_roundoff * np.abs(exact)
        assert (np.abs(y.astype(exact.dtype) - exact) <= allowed).all()


def test_batches_broadcast() -> None:
    cases = (((2, 3), (2, 3)), ((2, 1), (3,)), ((), (2,)), ((4,), ()), ((1, 3), (2, 1)), ((0,), (1,)))
    for a_batch, b_batch in cases:
        a, b = draw((*a_batch, 5, 70), DType.F32), draw((*b_batch, 70, 6), DType.F32, 1)
        y = linear(a, b, None)
        want = np.empty_like(y)
        whole_a = np.broadcast_to(a, (*y.shape[:-2], 5, 70))
        whole_b = np.broadcast_to(b, (*y.shape[:-2], 70, 6))
        for i in np.ndindex(y.shape[:-2]):
            want[i] = linear(whole_a[i].copy(), whole_b[i].copy(), None)
        assert y.tobytes() == want.tobytes()
        assert np.allclose(y, oracle("matmul")(a, b), rtol=1e-5, atol=1e-5)


def test_empty_products() -> None:
    bias = draw((3,), DType.F32)
    assert np.array_equal(
        linear(draw((2, 0), DType.F32), draw((0, 3), DType.F32), bias), np.stack([bias, bias])
    )
    assert (linear(draw((2, 0), DType.F32), draw((0, 3), DType.F32), None) == 0).all()
    assert linear(draw((0, 4), DType.F32), draw((4, 3), DType.F32), None).shape == (0, 3)
    assert linear(draw((2, 4), DType.F32), draw((4, 0), DType.F32), None).shape == (2, 0)


def test_rows_columns_and_threads_leave_the_bits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = draw((150, 200), DType.F32), draw((200, 300), DType.F32, 1)
    whole = linear(a, b, None)
    assert whole[7:8].tobytes() == linear(a[7:8].copy(), b, None).tobytes()
    assert whole[:, 131:133].tobytes() == linear(a, b[:, 131:133].copy(), None).tobytes()
    for threads in (1, 2, 5):
        monkeypatch.setattr(ckernels, "thread_count", lambda threads=threads: threads)
        assert linear(a, b, None).tobytes() == whole.tobytes()


def test_zeros_appended_to_k_change_nothing() -> None:
    a, b = draw((3, 70), DType.F32), draw((70, 4), DType.F32, 1)
    longer_a, longer_b = np.zeros((3, 200), np.float32), np.zeros((200, 4), np.float32)
    longer_a[:, :70], longer_b[:70] = a, b
    assert linear(a, b, None).tobytes() == linear(longer_a, longer_b, None).tobytes()


def test_special_values_travel() -> None:
    a, b = np.ones((1, 66), np.float32), np.ones((66, 3), np.float32)
    b[0, 0], b[65, 1], b[3, 2], b[4, 2] = np.nan, np.inf, np.inf, -np.inf
    y = linear(a, b, None)
    assert np.isnan(y[0, 0]) and np.isposinf(y[0, 1]) and np.isnan(y[0, 2])
    # Magnitudes above the half type's range are legal inside the sum.
    big = np.full((1, 4), 60000, np.float16)
    assert np.isinf(linear(big, np.array([[1], [1], [0], [0]], np.float16), None)[0, 0])
    assert linear(big, np.array([[1], [1], [-1], [0]], np.float16), None)[0, 0] == np.float16(60000)
