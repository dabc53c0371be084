"""Row ops beyond the registry's samples: very long rows, very many rows, and a row alone against a row among others."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import fuelvk as fv
from cpu_reference.numpy.fused_softmax_cross_entropy import reference as cross_entropy_oracle
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.graph.registry import find_op
from fuelvk.runtime.devices import Device, VulkanDevice
from fuelvk.verify.compare import same_bits, ulp

Array = np.ndarray[Any, Any]
Rng = np.random.Generator


def _normal(rng: Rng, shape: tuple[int, ...], dtype: DType) -> Array:
    return np.asarray(rng.standard_normal(shape)).astype(dtype.numpy)


def _rows(rng: Rng, rows: int, n: int, dtype: DType) -> tuple[Array, ...]:
    return (_normal(rng, (rows, n), dtype),)


def _pair(rng: Rng, rows: int, n: int, dtype: DType) -> tuple[Array, ...]:
    return _normal(rng, (rows, n), dtype), _normal(rng, (rows, n), dtype)


def _softmaxed(rng: Rng, rows: int, n: int, dtype: DType) -> tuple[Array, ...]:
    e = np.exp(rng.standard_normal((rows, n)))
    return (e / e.sum(axis=-1, keepdims=True)).astype(dtype.numpy), _normal(rng, (rows, n), dtype)


def _labelled(rng: Rng, rows: int, n: int, dtype: DType) -> tuple[Array, ...]:
    return _normal(rng, (rows, n), dtype), rng.integers(0, n, rows)


@dataclass(frozen=True)
class RowOp:
    """An op that works on every row by itself: its inputs of [rows, n], row after row."""

    name: str
    inputs: Callable[[Rng, int, int, DType], tuple[Array, ...]]
    params: dict[str, Any] = field(default_factory=dict)


OPS = (
    RowOp("softmax_last_dim", _rows),
    RowOp("log_softmax", _rows),
    RowOp("rms_norm_last_dim", _rows),
    RowOp("layer_norm_last_dim", _rows),
    RowOp("softmax_last_dim_backward", _softmaxed),
    RowOp("rms_norm_last_dim_backward", _pair),
    RowOp("layer_norm_last_dim_backward", _pair),
    RowOp("fused_softmax_cross_entropy", _labelled, {"reduction": "none"}),
)
PRESENT = tuple(op for op in OPS if find_op(op.name) is not None)
by_op = pytest.mark.parametrize("op", PRESENT, ids=lambda op: op.name)


def call(op: RowOp, inputs: tuple[Array, ...], device: Device | str) -> Array:
    return np.asarray(fv.call(op.name, *inputs, device=device, **op.params))


@pytest.mark.device
@by_op
@pytest.mark.parametrize(("rows", "n"), [(1, 1_000_000), (3, 65_537), (70_000, 1), (8 * 65_535 + 1, 3)])
def test_any_length_and_any_number(op: RowOp, rows: int, n: int, gpu: VulkanDevice) -> None:
    """The bytes of the C kernel, whatever the device's limit of workgroups in one direction, of a row or of 8 each."""
    if rows > 8 * 65_535 and gpu.vk.caps.addressing == "ssbo":
        pytest.skip("a workgroup a row: 70,000 of them are past the limit already")
    inputs = op.inputs(np.random.default_rng(rows), rows, n, DType.F32)
    got, want = call(op, inputs, gpu), call(op, inputs, "cpu")
    assert same_bits(got, want) is None


@pytest.mark.device
@by_op
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
def test_a_row_does_not_see_the_others(op: RowOp, dtype: DType, gpu: VulkanDevice) -> None:
    """Alone, first, last, and among others in another order: the same bytes."""
    if dtype is not DType.F32 and dtype.key not in ("f16", "bf16") and "f64" not in gpu.vk.caps.features:
        pytest.skip("the device lacks f64")
    rows, n = 9, 130
    inputs = op.inputs(np.random.default_rng(5), rows, n, dtype)
    together = call(op, inputs, gpu)
    order = np.random.default_rng(6).permutation(rows)
    shuffled = call(op, tuple(x[order] for x in inputs), gpu)
    for place, row in enumerate(order):
        alone = call(op, tuple(x[row : row + 1] for x in inputs), gpu)
        assert alone[0].tobytes() == together[row].tobytes() == shuffled[place].tobytes()


def _steep(rng: Rng, n: int) -> Array:
    """Rows whose plain sums round the same way at every step, and rows far from their maximum."""
    rows = [np.full(n, value) for value in (1.1, 0.7, 1 + 2.0**-22, 3.3e-5)]
    for gap in (1.234, 17.77, 63.9):
        row = np.full(n, -gap)
        row[n // 3] = 0.0
        rows.append(row)
    rows += [rng.standard_normal(n) * scale for scale in (1.0, 40.0)]
    return np.stack(rows).astype(np.float32)


@pytest.mark.parametrize("n", [1, 64, 1000, 4096])
@pytest.mark.parametrize("name", ["softmax_last_dim", "rms_norm_last_dim"])
def test_four_ulps(name: str, n: int) -> None:
    """At most 4 ULP per element up to 4,096 columns, on rows that defeat plain sums and rounded differences."""
    x = _steep(np.random.default_rng(n), n)
    w = x.astype(np.float64)
    if name == "softmax_last_dim":
        e = np.exp(w - w.max(axis=-1, keepdims=True))
        exact = e / e.sum(axis=-1, keepdims=True)
    else:
        exact = w / np.sqrt(np.square(w).mean(axis=-1, keepdims=True) + np.float64(np.float32(1e-5)))
    got = fv.call(name, x, device="cpu").astype(np.float64)
    assert (np.abs(got - exact) / ulp(exact.astype(np.longdouble), DType.F32)).max() <= 4


def test_cross_entropy_sums_any_number_of_rows() -> None:
    """Mean and sum over 100,000 rows in F64, in the order of the C kernel."""
    rng = np.random.default_rng(0)
    x, targets = rng.standard_normal((100_000, 3)).astype(np.float32), rng.integers(0, 3, 100_000)
    for reduction in ("mean", "sum"):
        exact = float(cross_entropy_oracle(x, targets, reduction=reduction))
        got = float(fv.call("fused_softmax_cross_entropy", x, targets, reduction=reduction))
        assert math.isclose(got, exact, rel_tol=2.0**-24)


def test_against_torch() -> None:
    """An independent implementation, where it is installed."""
    torch = pytest.importorskip("torch")
    f = torch.nn.functional
    rng = np.random.default_rng(1)
    x, targets = rng.standard_normal((6, 50)).astype(np.float32), rng.integers(0, 50, 6)
    targets[2] = -100
    weight, bias = rng.standard_normal((2, 50)).astype(np.float32)
    t, w, b = (torch.from_numpy(v) for v in (x, weight, bias))
    pairs = {
        "softmax": (fv.call("softmax_last_dim", x), torch.softmax(t, -1)),
        "layer_norm": (fv.call("layer_norm_last_dim", x, weight, bias), f.layer_norm(t, (50,), w, b, 1e-5)),
        "rms_norm": (fv.call("rms_norm_last_dim", x, weight), f.rms_norm(t, (50,), w, 1e-5)),
    }
    for reduction in ("mean", "sum", "none"):
        loss = f.cross_entropy(t, torch.from_numpy(targets), reduction=reduction)
        pairs[reduction] = (
            fv.call("fused_softmax_cross_entropy", x, targets, reduction=reduction),
            loss,
        )
    for name, (got, want) in pairs.items():
        np.testing.assert_allclose(got, want.numpy(), rtol=2e-6, atol=2e-6, err_msg=name)
