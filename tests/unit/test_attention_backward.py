"""Attention's gradients: one computation for all of them, and what a graph makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.graph import ir
from fuelvk.graph.autograd import gradients
from fuelvk.graph.fuse import fuse
from fuelvk.graph.registry import builder
from fuelvk.kernels.ops import flash_attn_backward as kernels
from fuelvk.runtime.devices import Device
from fuelvk.verify.compare import same_bits

Array = np.ndarray[Any, Any]
PARAMS: dict[str, Any] = {"scale": 0.3, "causal": True, "softcap": 4.0}


def draw(seed: int = 0) -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(seed)
    q, dy = (rng.standard_normal((2, 4, 70, 16), dtype=np.float32) for _ in range(2))
    k, v = (rng.standard_normal((2, 2, 90, 16), dtype=np.float32) for _ in range(2))
    return q, k, v, dy


def names(outputs: tuple[ir.Value, ...]) -> list[str]:
    return [n.op.name for n in ir.topological(outputs) if not n.is_leaf]


def test_a_graph_that_asks_for_several_gradients_computes_them_together() -> None:
    g = builder()
    q, k, v, dy = (ir.constant(x) for x in draw())
    y = g.flash_attn(q, k, v, **PARAMS)
    dq, dk, dv = gradients([y], [dy], [q, k, v], g)
    assert dq is not None
    assert dk is not None
    assert dv is not None
    assert names(fuse((dq, dk, dv))) == ["flash_attn_backward"]
    assert names(fuse((dk, dv))) == ["flash_attn_backward"]
    assert names(fuse((dq,))) == ["flash_attn_backward_q"]
    assert names(fuse((y, dv))) == ["flash_attn", "flash_attn_backward_v"]


def test_gradients_of_different_calls_stay_apart() -> None:
    g = builder()
    q, k, v, dy = (ir.constant(x) for x in draw())
    dq = g.flash_attn_backward_q(q, k, v, dy, **PARAMS)
    dk = g.flash_attn_backward_k(q, k, v, dy, **{**PARAMS, "scale": 0.5})
    dv = g.flash_attn_backward_v(q, k, dy, dy, **PARAMS) if dy.shape == v.shape else None
    assert dv is None
    assert sorted(names(fuse((dq, dk)))) == ["flash_attn_backward_k", "flash_attn_backward_q"]


@pytest.mark.parametrize(
    "params", [{}, {"causal": True}, {"window_left": 5, "window_right": 9, "softcap": 3.0}]
)
def test_the_bits_of_each_gradient_alone(params: dict[str, Any], cpu: Device) -> None:
    inputs = draw()
    together = fv.call("flash_attn_backward", *inputs, scale=0.3, device=cpu, **params)
    for letter, joint in zip("qkv", together, strict=True):
        alone = fv.call(f"flash_attn_backward_{letter}", *inputs, scale=0.3, device=cpu, **params)
        assert (difference := same_bits(alone, joint)) is None, difference


@pytest.mark.device
def test_a_query_row_has_the_same_gradient_in_any_call(gpu: Device) -> None:
    q, k, v, dy = draw(3)
    params = {"scale": 0.25, "causal": True, "causal_offset": 20}
    whole = fv.call("flash_attn_backward_q", q, k, v, dy, device=gpu, **params)
    for i in (0, 1, 63, 64, 69):
        one = {**params, "causal_offset": 20 + i}
        row = fv.call(
            "flash_attn_backward_q",
            q[1:, :, i : i + 1],
            k[1:],
            v[1:],
            dy[1:, :, i : i + 1],
            device=gpu,
            **one,
        )
        assert (difference := same_bits(row, whole[1:, :, i : i + 1])) is None, difference
    both = fv.call("flash_attn_backward", q, k, v, dy, device=gpu, **params)
    item = fv.call("flash_attn_backward", q[1:, 2:], k[1:, 1:], v[1:, 1:], dy[1:, 2:], device=gpu, **params)
    assert same_bits(item[1], both[1][1:, 1:]) is None
    assert same_bits(item[2], both[2][1:, 1:]) is None


@pytest.mark.device
def test_gradients_through_a_plan(gpu: Device, cpu: Device) -> None:
    """fv.grad on a device gives the bytes that the C kernel gives."""
    q, k, v, _ = draw(4)

    def loss(q: Any, k: Any, v: Any) -> Any:
        return fv.ops.sum(fv.ops.sqr(fv.ops.flash_attn(q, k, v, **PARAMS)))

    found = {}
    for device in (gpu, cpu):
        given = [fv.asarray(x, device=device) for x in (q, k, v)]
        found[device] = [x.numpy() for x in fv.compile(fv.grad(loss, argnums=(0, 1, 2)))(*given)]
    for a, b in zip(found[gpu], found[cpu], strict=True):
        assert (difference := same_bits(a, b)) is None, difference


@pytest.mark.device
@pytest.mark.parametrize(("limit", "d"), [(1, 18), (1, 9), (200_000, 20)])
def test_chunks_do_not_show(
    limit: int, d: int, gpu: Device, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Query rows block by block, or kv heads one after the other: the bytes of the C kernel."""
    for name in ("_CHUNK_CPU", "_CHUNK_MANY", "_CHUNK_GPU"):
        monkeypatch.setattr(kernels, name, limit)
    rng = np.random.default_rng(9)
    q, dy = (rng.standard_normal((2, 4, 150, d), dtype=np.float32) for _ in range(2))
    k, v = (rng.standard_normal((2, 2, 131, d), dtype=np.float32) for _ in range(2))
    lens = np.array([131, 77], np.uint32)
    for params in ({"causal": True}, {"window_left": 30, "softcap": 2.0}):
        found = [
            fv.call("flash_attn_backward", q, k, v, dy, None, lens, scale=0.3, device=x, **params)
            for x in (gpu, cpu)
        ]
        for a, b in zip(*found, strict=True):
            assert (difference := same_bits(a, b)) is None, difference
