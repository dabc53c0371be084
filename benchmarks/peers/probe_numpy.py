"""NumPy on the CPU: the machine's own pace."""

from __future__ import annotations

import numpy as np
from timing import (
    BIG,
    COLUMNS,
    FUNCTION,
    big,
    each_row_op,
    emit,
    function_input,
    gbs,
    gflops,
    matrices,
    median,
    product_quality,
    rows,
    small,
    square,
    wants,
)

emit(version=np.__version__, device="cpu")
if wants("rt_us", "rt_up_us"):
    a, b = small()
    seconds = median(lambda: a + b, 2000)
    emit(rt_us=seconds * 1e6, rt_up_us=seconds * 1e6)
if wants("add16m_gbs", "mul16m_gbs", "relu16m_gbs", "up_gbs", "down_gbs"):
    x, y = big()
    z = np.empty_like(x)
    emit(add16m_gbs=gbs(12 * BIG, median(lambda: np.add(x, y, out=z), 9)))
    emit(mul16m_gbs=gbs(12 * BIG, median(lambda: np.multiply(x, y, out=z), 9)))
    emit(relu16m_gbs=gbs(8 * BIG, median(lambda: np.maximum(x, 0, out=z), 9)))
    copy = gbs(4 * BIG, median(lambda: np.copyto(z, x), 5))
    emit(up_gbs=copy, down_gbs=copy)
if wants("argmax_ms", "cumsum_ms"):
    t = square()
    emit(
        argmax_ms=median(lambda: t.argmax(axis=1), 5) * 1e3,
        cumsum_ms=median(lambda: t.cumsum(axis=1), 5) * 1e3,
    )
if wants("mm1024_gflops"):
    p, q = matrices()
    emit(mm1024_gflops=gflops(median(lambda: p @ q, 9)), **product_quality([p @ q for _ in range(3)], p, q))


def gelu(v: np.ndarray) -> np.ndarray:
    return v * (0.5 * (1 + np.tanh(np.float32(0.7978845608) * (v + np.float32(0.044715) * v * v * v))))


FORMULAS = {
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "tanh": np.tanh,
    "gelu": gelu,
    "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
}
for name, function in FORMULAS.items():
    if wants(f"{name}_ns"):
        values = function_input(name)
        emit(**{f"{name}_ns": median(lambda f=function, v=values: f(v), 7) / FUNCTION * 1e9})


table = rows()
ones = np.ones(COLUMNS, np.float32)
EPS = np.float32(1e-5)


def softmax() -> np.ndarray:
    e = np.exp(table - table.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def rms_norm() -> np.ndarray:
    return table / np.sqrt(np.mean(table * table, axis=-1, keepdims=True) + EPS) * ones


def layer_norm() -> np.ndarray:
    d = table - table.mean(axis=-1, keepdims=True)
    return d / np.sqrt(np.mean(d * d, axis=-1, keepdims=True) + EPS) * ones + ones


each_row_op({"softmax": softmax, "rms_norm": rms_norm, "layer_norm": layer_norm}.get)
