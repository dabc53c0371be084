"""Softmax, norms and reductions in C: the canonical bits, and within a bound of the float64 oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cpu_reference import c as ckernels
from cpu_reference import canonical
from cpu_reference.numpy import oracle
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.verify.compare import ulp

Array = np.ndarray[Any, Any]

WIDTHS = (1, 2, 63, 64, 65, 127, 128, 129, 200, 1000)
REDUCTIONS = ("sum", "mean", "max", "min")


def draw(shape: tuple[int, ...], dtype: DType, seed: int = 0, scale: float = 2.0) -> Array:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(dtype.numpy)


def bits(x: Array) -> Array:
    """The bytes, with every NaN made one."""
    made = np.array(x)
    made[np.isnan(made.astype(np.float64))] = np.nan
    return made.view(f"u{made.itemsize}")


def widened(x: Array) -> Array:
    return x.astype(DType.of(x).accumulator.numpy)


def softmax(x: Array) -> Array:
    y = np.empty_like(x)
    rows = x.size // x.shape[-1] if x.shape[-1] else 0
    ckernels.call(f"softmax_last_dim_{DType.of(x).key}", x, y, rows, x.shape[-1])
    return y


def norm(kind: str, x: Array, weight: Array | None, bias: Array | None, eps: float = 1e-5) -> Array:
    y = np.empty_like(x)
    vectors = (weight,) if kind == "rms_norm" else (weight, bias)
    ckernels.call(
        f"{kind}_last_dim_{DType.of(x).key}", x, *vectors, y, x.size // x.shape[-1], x.shape[-1], eps
    )
    return y


def reduce_rows(op: str, x: Array) -> Array:
    y = np.empty(x.shape[0], x.dtype)
    ckernels.call(f"{op}_{DType.of(x).key}", x, y, *x.shape)
    return y


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
@pytest.mark.parametrize("n", WIDTHS)
def test_softmax_is_canonical_and_close(dtype: DType, n: int) -> None:
    x = draw((3, n), dtype, n, 5.0)
    y = softmax(x)
    loops = np.stack([canonical.softmax(row) for row in widened(x)])
    assert np.array_equal(bits(y), bits(loops.astype(dtype.numpy)))
    exact = oracle("softmax_last_dim")(x)
    # exp amplifies the rounding of x - max by its size; sums, exp, reciprocal and product add a few u.
    spread = np.abs(x.astype(np.float64) - x.astype(np.float64).max(-1, keepdims=True)).max(-1, keepdims=True)
    u = dtype.accumulator.unit_roundoff
    allowed = np.abs(exact) * u * (spread + n / 64 + 14) + ulp(exact, dtype)
    assert (np.abs(y.astype(exact.dtype) - exact) <= allowed).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
def test_softmax_special_rows(dtype: DType) -> None:
    x = draw((5, 70), dtype)
    x[0, 3] = np.nan
    x[1, :] = -np.inf
    x[2, 9] = np.inf
    x[3, :50] = -np.inf
    y = softmax(x).astype(np.float64)
    assert np.isnan(y[:3]).all()
    assert (y[3, :50] == 0).all() and np.isfinite(y[3:]).all()
    assert np.array_equal(np.isnan(y), np.isnan(oracle("softmax_last_dim")(x)))


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
@pytest.mark.parametrize("n", WIDTHS)
@pytest.mark.parametrize("kind", ["rms_norm", "layer_norm"])
def test_norms_are_canonical_and_close(kind: str, n: int, dtype: DType) -> None:
    x, weight, bias = draw((2, n), dtype, n), draw((n,), dtype, 1), draw((n,), dtype, 2)
    for w, b in ((weight, bias), (weight, None), (None, None)):
        y = norm(kind, x, w, b)
        vectors = [None if v is None else widened(v) for v in ((w,) if kind == "rms_norm" else (w, b))]
        loop = getattr(canonical, kind)
        loops = np.stack([loop(row, *vectors, 1e-5) for row in widened(x)])
        assert np.array_equal(bits(y), bits(loops.astype(dtype.numpy)))
        exact = oracle(f"{kind}_last_dim")(x, *((w,) if kind == "rms_norm" else (w, b)), eps=1e-5)
        u = dtype.accumulator.unit_roundoff
        size = np.abs(exact) + (1 if w is None else np.abs(w.astype(np.float64))) * (4 if n > 1 else 1)
        allowed = size * u * (n / 64 + 20) + np.abs(exact) * dtype.unit_roundoff
        if kind == "rms_norm" or n > 2:
            assert (np.abs(y.astype(exact.dtype) - exact) <= allowed).all()


def test_layer_norm_bias_without_weight() -> None:
    x, bias = draw((2, 70), DType.F32), draw((70,), DType.F32, 1)
    loops = np.stack([canonical.layer_norm(row, None, bias, 1e-5) for row in x])
    assert np.array_equal(norm("layer_norm", x, None, bias), loops)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 4096, 4097, 9000])
def test_running_sums_are_canonical(n: int, dtype: DType) -> None:
    x = draw((2, n), dtype, n)
    y = np.empty_like(x)
    ckernels.call(f"cumsum_{dtype.key}", x, y, *x.shape)
    loops = [canonical.running_sum(list(row), dtype.accumulator.numpy.type) for row in widened(x)]
    assert np.array_equal(bits(y), bits(np.array(loops).astype(dtype.numpy)))


@pytest.mark.parametrize("n", [16384, 16385, 3 * 16384 - 1, 66 * 16384 + 9])
def test_long_sums_are_sums_of_blocks(n: int) -> None:
    x = draw((1, n), DType.F32, n)
    total = canonical.tree_sum(list(x[0]), np.float32)
    assert reduce_rows("sum", x)[0] == total
    exact = np.sum(x[0].astype(np.float64))
    assert abs(float(total) - exact) <= np.abs(x).sum(dtype=np.float64) * 2**-24 * (256 + 20)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions_are_canonical_and_close(op: str, dtype: DType) -> None:
    for n in WIDTHS:
        x = draw((3, n), dtype, n)
        y = reduce_rows(op, x)
        kind = dtype.accumulator.numpy.type
        loops = []
        for row in widened(x):
            if op in ("max", "min"):
                sign = kind(1 if op == "max" else -1)
                loops.append(sign * canonical.row_max([sign * v for v in row], kind))
            else:
                total = canonical.tree_sum(list(row), kind)
                loops.append(total if op == "sum" else canonical.strict("div", total, kind(n)))
        assert np.array_equal(bits(y), bits(np.array(loops).astype(dtype.numpy)))
        exact = oracle(op)(x, axes=(-1,))
        size = np.abs(x.astype(np.float64)).sum(-1) / (n if op == "mean" else 1)
        allowed = size * dtype.accumulator.unit_roundoff * (n / 64 + 8) + np.abs(exact) * dtype.unit_roundoff
        assert (np.abs(y.astype(exact.dtype) - exact) <= (0 if op in ("max", "min") else allowed)).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
def test_extremes_of_zeros_nan_and_nothing(dtype: DType) -> None:
    for n in (2, 65, 130):
        mixed = np.full((1, n), -0.0, dtype.numpy)
        mixed[0, -1] = 0.0
        assert not np.signbit(reduce_rows("max", mixed).astype(np.float64))[0]
        assert np.signbit(reduce_rows("min", mixed).astype(np.float64))[0]
        mixed[0, 0] = np.nan
        for op in REDUCTIONS:
            assert np.isnan(reduce_rows(op, mixed).astype(np.float64))[0]
            assert np.isnan(oracle(op)(mixed, axes=(-1,)))[0]
    nothing = np.empty((2, 0), dtype.numpy)
    wanted = {"sum": 0.0, "mean": np.nan, "max": -np.inf, "min": np.inf}
    for op, want in wanted.items():
        assert np.array_equal(reduce_rows(op, nothing).astype(np.float64), [want, want], equal_nan=True)
        assert np.array_equal(oracle(op)(nothing, axes=(-1,)), [want, want], equal_nan=True)


@pytest.mark.parametrize("dtype", [DType.I64, DType.I32], ids=lambda d: d.key)
def test_integer_reductions(dtype: DType) -> None:
    info = np.iinfo(dtype.numpy)
    x = np.random.default_rng(0).integers(info.min, info.max, (4, 99), dtype=dtype.numpy)
    for op in ("sum", "max", "min"):
        assert np.array_equal(reduce_rows(op, x), oracle(op)(x, axes=(-1,)))
    for op in ("max", "min"):
        with pytest.raises(IndexError):
            reduce_rows(op, x[:, :0].copy())


def test_oracle_axes() -> None:
    x = draw((2, 3, 4), DType.F32)
    for op in REDUCTIONS:
        want = getattr(np, op)
        for axes in (None, (0,), (-1, 0), (0, 1, 2)):
            for keepdims in (False, True):
                got = oracle(op)(x, axes=axes, keepdims=keepdims)
                reference = want(x.astype(np.float64), axis=axes, keepdims=keepdims)
                assert got.shape == reference.shape and np.allclose(got, reference, rtol=1e-12)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
def test_rows_do_not_know_their_neighbours(dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    x = draw((1100, 500), dtype)
    whole = softmax(x)
    assert np.array_equal(bits(whole[77:78]), bits(softmax(x[77:78].copy())))
    for threads in (1, 3, 7):
        monkeypatch.setattr(ckernels, "thread_count", lambda threads=threads: threads)
        assert np.array_equal(bits(softmax(x)), bits(whole))
