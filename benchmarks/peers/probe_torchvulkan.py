"""torchvulkan: a Vulkan backend for PyTorch."""

from __future__ import annotations

import time
from importlib.metadata import version

import torch  # counted apart: it is not the backend's own import
from timing import (
    BIG,
    COLUMNS,
    HEAD_SIZE,
    HEADS,
    LENGTH,
    big,
    check_sum,
    each_row_op,
    emit,
    gbs,
    gflops,
    matrices,
    median,
    product_quality,
    rows,
    small,
    wants,
)

start = time.perf_counter()
import torchvulkan  # noqa: E402

torch.zeros(4).to("vulkan").cpu()
emit(init_ms=(time.perf_counter() - start) * 1e3, version=version("torchvulkan"), torch=torch.__version__)
synchronize = getattr(torchvulkan, "synchronize", None) or torch.vulkan.synchronize


def waited(call):
    def run():
        result = call()
        synchronize()
        return result

    return run


if wants("rt_us", "rt_up_us"):
    a, b = small()
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    left, right = ta.to("vulkan"), tb.to("vulkan")
    check_sum((left + right).cpu().numpy(), a, b)
    emit(rt_us=median(lambda: (left + right).cpu().numpy(), 200) * 1e6)
    emit(rt_up_us=median(lambda: (ta.to("vulkan") + tb.to("vulkan")).cpu().numpy(), 200) * 1e6)
if wants("add16m_gbs", "mul16m_gbs", "relu16m_gbs", "up_gbs", "down_gbs"):
    x, y = (torch.from_numpy(v) for v in big())
    emit(up_gbs=gbs(4 * BIG, median(waited(lambda: x.to("vulkan")), 5)))
    left, right = x.to("vulkan"), y.to("vulkan")
    out = torch.empty_like(left)
    emit(add16m_gbs=gbs(12 * BIG, median(waited(lambda: torch.add(left, right, out=out)), 9)))
    emit(down_gbs=gbs(4 * BIG, median(out.cpu, 5)))
    emit(mul16m_gbs=gbs(12 * BIG, median(waited(lambda: torch.mul(left, right, out=out)), 9)))
    emit(relu16m_gbs=gbs(8 * BIG, median(waited(lambda: torch.relu(left)), 9)))
if wants("mm1024_gflops"):
    p, q = matrices()
    left, right = torch.from_numpy(p).to("vulkan"), torch.from_numpy(q).to("vulkan")
    product = waited(lambda: left @ right)
    emit(mm1024_gflops=gflops(median(product, 5)))
    emit(**product_quality([product().cpu().numpy() for _ in range(3)], p, q))
if wants("softmax_ms", "rms_norm_ms", "layer_norm_ms"):
    table, ones = torch.from_numpy(rows()).to("vulkan"), torch.ones(COLUMNS).to("vulkan")
    calls = {
        "softmax": waited(lambda: torch.softmax(table, -1)),
        "layer_norm": waited(lambda: torch.nn.functional.layer_norm(table, (COLUMNS,), ones, ones)),
    }
    each_row_op(calls.get)
if wants("attention_ms"):
    heads = torch.randn(1, HEADS, LENGTH, HEAD_SIZE).to("vulkan")
    attention = waited(
        lambda: torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
    )
    emit(attention_ms=median(attention, 5) * 1e3)
