"""computeml: NumPy-like arrays on Vulkan."""

from __future__ import annotations

import time
from importlib.metadata import version

import numpy as np
from timing import (
    BIG,
    COLUMNS,
    HEAD_SIZE,
    HEADS,
    LENGTH,
    SIDE,
    big,
    check_sum,
    each_row_op,
    emit,
    gbs,
    gflops,
    matrices,
    median,
    normal,
    product_quality,
    rows,
    small,
    wants,
)

start = time.perf_counter()
import computeml as cml  # noqa: E402

context = cml.Context()
emit(init_ms=(time.perf_counter() - start) * 1e3, version=version("computeml"), device=context.device_name)


def waited(call):
    def run():
        call()
        context.flush()

    return run


if wants("rt_us", "rt_up_us"):
    a, b = small()
    left, right = context.asarray(a), context.asarray(b)

    def resident():
        return (left + right).numpy()

    def uploaded():
        return (context.asarray(a) + context.asarray(b)).numpy()

    check_sum(resident(), a, b)
    emit(rt_us=median(resident, 200) * 1e6)
    emit(rt_up_us=median(uploaded, 200) * 1e6)
if wants("add16m_gbs", "mul16m_gbs", "relu16m_gbs", "up_gbs", "down_gbs"):
    x, y = big()
    emit(up_gbs=gbs(4 * BIG, median(lambda: context.asarray(x), 5)))
    left, right, out = context.asarray(x), context.asarray(y), context.empty((BIG,))
    emit(add16m_gbs=gbs(12 * BIG, median(waited(lambda: cml.ops.add(left, right, out=out)), 9)))
    emit(down_gbs=gbs(4 * BIG, median(out.numpy, 5)))
    emit(mul16m_gbs=gbs(12 * BIG, median(waited(lambda: cml.ops.mul(left, right, out=out)), 9)))
    emit(relu16m_gbs=gbs(8 * BIG, median(waited(lambda: cml.ops.relu(left, out=out)), 9)))
if wants("mm1024_gflops"):
    p, q = matrices()
    left, right, out = context.asarray(p), context.asarray(q), context.empty((SIDE, SIDE))
    product = waited(lambda: cml.ops.matmul(left, right, out=out))
    emit(mm1024_gflops=gflops(median(product, 5)))
    results = []
    for _ in range(3):
        product()
        results.append(out.numpy().copy())
    emit(**product_quality(results, p, q))
if wants("softmax_ms", "rms_norm_ms", "layer_norm_ms"):
    table, ones = context.asarray(rows()), context.asarray(np.ones(COLUMNS, np.float32))
    calls = {
        "softmax": waited(lambda: cml.ops.softmax(table)),
        "rms_norm": waited(lambda: cml.ops.rms_norm(table, ones)),
    }
    each_row_op(calls.get)
if wants("attention_ms"):
    packed = context.asarray(normal(5, LENGTH, HEADS * HEAD_SIZE))
    attention = waited(lambda: cml.ops.attention(packed, packed, packed, num_heads=HEADS, causal=True))
    emit(attention_ms=median(attention, 5) * 1e3)
