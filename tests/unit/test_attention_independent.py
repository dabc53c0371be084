"""Attention against what shares nothing with it: formulas with the softmax's whole Jacobian, and PyTorch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.runtime.devices import Device

Array = np.ndarray[Any, Any]
# (B, Hq, Hkv, Sq, Sk, D), parameters
CALLS: tuple[tuple[tuple[int, int, int, int, int, int], dict[str, Any]], ...] = (
    ((1, 2, 1, 4, 6, 3), {}),
    ((2, 4, 2, 5, 9, 4), {"causal": True}),
    ((1, 1, 1, 7, 5, 4), {"causal": True}),
    ((1, 2, 2, 6, 8, 3), {"window_left": 2, "window_right": 1, "causal_offset": 1}),
    ((1, 2, 1, 4, 8, 4), {"softcap": 1.5, "k_len": 6, "causal": True}),
)


def draw(sizes: tuple[int, int, int, int, int, int]) -> tuple[Array, Array, Array, Array]:
    batch, hq, hkv, sq, sk, d = sizes
    rng = np.random.default_rng(sum(sizes))
    q, dy = rng.standard_normal((2, batch, hq, sq, d))
    k, v = rng.standard_normal((2, batch, hkv, sk, d))
    return q, k, v, dy


def by_numbers(
    q: Array, k: Array, v: Array, dy: Array, slopes: list[float], scale: float, p: dict[str, Any]
) -> tuple[Array, ...]:
    """Output and gradients one number at a time, from ops.md's words; the softmax's Jacobian written out."""
    y, dq, dk, dv = np.zeros_like(q), np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    (batch, hq, sq, d), hkv, sk = q.shape, k.shape[1], k.shape[2]
    length, cap = p.get("k_len", sk), p.get("softcap")
    offset = p.get("causal_offset", length - sq)
    for b in range(batch):
        for h in range(hq):
            kv = h // (hq // hkv)
            for i in range(sq):
                at = i + offset
                seen = [
                    j
                    for j in range(length)
                    if not (p.get("causal") and j > at)
                    and not ("window_left" in p and j < at - p["window_left"])
                    and not ("window_right" in p and j > at + p["window_right"])
                ]
                raw = {j: scale * sum(q[b, h, i, x] * k[b, kv, j, x] for x in range(d)) for j in seen}
                s = {
                    j: (cap * math.tanh(raw[j] / cap) if cap else raw[j]) + slopes[h] * (j - at) for j in seen
                }
                total = sum(math.exp(s[j]) for j in seen)
                weight = {j: math.exp(s[j]) / total for j in seen}
                slope = {j: 1 - math.tanh(raw[j] / cap) ** 2 if cap else 1.0 for j in seen}
                back = {j: sum(dy[b, h, i, x] * v[b, kv, j, x] for x in range(d)) for j in seen}
                for j in seen:
                    jacobian = {n: weight[j] * ((n == j) - weight[n]) for n in seen}
                    ds = scale * slope[j] * sum(jacobian[n] * back[n] for n in seen)
                    for x in range(d):
                        y[b, h, i, x] += weight[j] * v[b, kv, j, x]
                        dv[b, kv, j, x] += weight[j] * dy[b, h, i, x]
                        dq[b, h, i, x] += ds * k[b, kv, j, x]
                        dk[b, kv, j, x] += ds * q[b, h, i, x]
    return y, dq, dk, dv


@pytest.mark.parametrize("sloped", [False, True])
@pytest.mark.parametrize(("sizes", "params"), CALLS)
def test_by_numbers(
    sizes: tuple[int, int, int, int, int, int], params: dict[str, Any], sloped: bool, cpu: Device
) -> None:
    q, k, v, dy = draw(sizes)
    slopes = [0.5, -0.25, 0.125, 0.0625][: sizes[1]] if sloped else [0.0] * sizes[1]
    given = np.array(slopes, np.float32) if sloped else None
    exact = by_numbers(q, k, v, dy, slopes, 0.4, params)
    got = (
        fv.call("flash_attn", q, k, v, given, scale=0.4, device=cpu, **params),
        *fv.call("flash_attn_backward", q, k, v, dy, given, scale=0.4, device=cpu, **params),
    )
    for mine, want in zip(got, exact, strict=True):
        np.testing.assert_allclose(mine, want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("causal", [False, True])
def test_against_torch(causal: bool, cpu: Device) -> None:
    torch = pytest.importorskip("torch")
    q, k, v, dy = draw((2, 6, 2, 40, 40, 16))
    leaves = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    wide = [leaves[0], *(x.repeat_interleave(3, dim=1) for x in leaves[1:])]
    y = torch.nn.functional.scaled_dot_product_attention(*wide, is_causal=causal, scale=0.3)
    y.backward(torch.tensor(dy))
    np.testing.assert_allclose(
        fv.call("flash_attn", q, k, v, scale=0.3, causal=causal, device=cpu),
        y.detach().numpy(),
        rtol=1e-11,
        atol=1e-12,
    )
    found = fv.call("flash_attn_backward", q, k, v, dy, scale=0.3, causal=causal, device=cpu)
    for mine, leaf in zip(found, leaves, strict=True):
        np.testing.assert_allclose(mine, leaf.grad.numpy(), rtol=1e-10, atol=1e-12)
