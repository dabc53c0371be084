"""ggml's Vulkan backend, through ctypes on the libraries in the cyllama-vulkan wheel; no model is needed.

Nothing is freed before the process ends: freeing has crashed on Mesa 22's lavapipe.
"""

from __future__ import annotations

import ctypes
import glob
import os
import time
from importlib.metadata import version

import numpy as np
from timing import (
    BIG,
    COLUMNS,
    HEAD_SIZE,
    HEADS,
    LENGTH,
    ROWS,
    SIDE,
    SMALL,
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

os.environ.setdefault("GGML_VK_VISIBLE_DEVICES", "0")
start = time.perf_counter()
FOLDER = os.path.join(os.path.dirname(os.path.dirname(np.__file__)), "cyllama_vulkan.libs")
POINTER, SIZE, INT, FLOAT, LONG = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_float,
    ctypes.c_int64,
)
F32, F16 = 0, 1


class InitParams(ctypes.Structure):
    _fields_ = (("mem_size", SIZE), ("mem_buffer", POINTER), ("no_alloc", ctypes.c_bool))


def library(stem):
    return ctypes.CDLL(glob.glob(f"{FOLDER}/{stem}*")[0], mode=ctypes.RTLD_GLOBAL)


base = library("libggml-base-")
library("libggml-cpu-")
vulkan = library("libggml-vulkan-")


def function(name, result, *arguments, owner=base):
    found = getattr(owner, f"ggml_{name}")
    found.restype, found.argtypes = result, list(arguments)
    return found


init = function("init", POINTER, InitParams)
tensors = {n: function(f"new_tensor_{n}d", POINTER, POINTER, INT, *[LONG] * n) for n in (1, 2, 3, 4)}
new_graph = function("new_graph", POINTER, POINTER)
expand = function("build_forward_expand", None, POINTER, POINTER)
allocate = function("backend_alloc_ctx_tensors", POINTER, POINTER, POINTER)
tensor_set = function("backend_tensor_set", None, POINTER, POINTER, SIZE, SIZE)
tensor_get = function("backend_tensor_get", None, POINTER, POINTER, SIZE, SIZE)
compute = function("backend_graph_compute", INT, POINTER, POINTER)
add = function("add", POINTER, POINTER, POINTER, POINTER)
mul = function("mul", POINTER, POINTER, POINTER, POINTER)
relu = function("relu", POINTER, POINTER, POINTER)
mul_mat = function("mul_mat", POINTER, POINTER, POINTER, POINTER)
soft_max = function("soft_max", POINTER, POINTER, POINTER)
rms_norm = function("rms_norm", POINTER, POINTER, POINTER, FLOAT)
norm = function("norm", POINTER, POINTER, POINTER, FLOAT)
attention = function("flash_attn_ext", POINTER, *[POINTER] * 5, FLOAT, FLOAT, FLOAT)
backend = function("backend_vk_init", POINTER, SIZE, owner=vulkan)(0)
seconds = time.perf_counter() - start
name = ctypes.create_string_buffer(128)
function("backend_vk_get_device_description", None, INT, ctypes.c_char_p, SIZE, owner=vulkan)(0, name, 128)
emit(
    init_ms=seconds * 1e3,
    version=f"ggml of cyllama-vulkan {version('cyllama-vulkan')}",
    device=name.value.decode(),
)


def tensor(context, kind, *extents):
    return tensors[len(extents)](context, kind, *extents)


def build(describe):
    """Returns inputs, output and graph of a description (context -> inputs, output), with memory."""
    context = init(InitParams(1 << 22, None, True))
    inputs, output = describe(context)
    graph = new_graph(context)
    expand(graph, output)
    if not allocate(context, backend):
        raise MemoryError("ggml could not allocate the graph's tensors")
    return inputs, output, graph


def put(target, array):
    array = np.ascontiguousarray(array)
    tensor_set(target, array.ctypes.data, 0, array.nbytes)


def get(source, *shape):
    array = np.empty(shape, np.float32)
    tensor_get(source, array.ctypes.data, 0, array.nbytes)
    return array


def pair_of(n, op):
    def describe(context):
        left, right = tensor(context, F32, n), tensor(context, F32, n)
        return (left, right), op(context, left, right)

    return build(describe)


if wants("rt_us", "rt_up_us"):
    a, b = small()
    (left, right), out, graph = pair_of(SMALL, add)
    put(left, a)
    put(right, b)

    def resident():
        compute(backend, graph)
        return get(out, SMALL)

    def uploaded():
        put(left, a)
        put(right, b)
        return resident()

    check_sum(resident(), a, b)
    emit(rt_us=median(resident, 200) * 1e6)
    emit(rt_up_us=median(uploaded, 200) * 1e6)
if wants("add16m_gbs", "up_gbs", "down_gbs"):
    x, y = big()
    (left, right), out, graph = pair_of(BIG, add)
    put(right, y)
    emit(up_gbs=gbs(4 * BIG, median(lambda: put(left, x), 5)))
    emit(add16m_gbs=gbs(12 * BIG, median(lambda: compute(backend, graph), 9)))
    emit(down_gbs=gbs(4 * BIG, median(lambda: get(out, BIG), 5)))
if wants("mul16m_gbs", "relu16m_gbs"):
    x, y = big()
    for name, count, op in (("mul", 12, mul), ("relu", 8, lambda context, left, _: relu(context, left))):
        (left, right), out, graph = pair_of(BIG, op)
        put(left, x)
        if name == "mul":
            put(right, y)
        emit(**{f"{name}16m_gbs": gbs(count * BIG, median(lambda graph=graph: compute(backend, graph), 9))})
if wants("mm1024_gflops"):
    p, q = matrices()

    def product(context):
        # ggml multiplies rows by rows: result[n, m] = second[n, k] @ first[m, k]^T
        first, second = tensor(context, F32, SIDE, SIDE), tensor(context, F32, SIDE, SIDE)
        return (first, second), mul_mat(context, first, second)

    (first, second), out, graph = build(product)
    put(first, q.T)
    put(second, p)
    emit(mm1024_gflops=gflops(median(lambda: compute(backend, graph), 5)))
    results = []
    for _ in range(3):
        compute(backend, graph)
        results.append(get(out, SIDE, SIDE))
    emit(**product_quality(results, p, q))
ROW_OPS = {
    "softmax": soft_max,
    "rms_norm": lambda context, x: rms_norm(context, x, 1e-5),
    "layer_norm": lambda context, x: norm(context, x, 1e-5),
}


def row_op(op):
    def describe(context):
        table = tensor(context, F32, COLUMNS, ROWS)
        return (table,), ROW_OPS[op](context, table)

    (table,), _, graph = build(describe)
    put(table, rows())
    return lambda: compute(backend, graph)


each_row_op(row_op)
if wants("attention_ms"):

    def describe(context):
        q = tensor(context, F32, HEAD_SIZE, LENGTH, HEADS, 1)
        k, v = (tensor(context, F16, HEAD_SIZE, LENGTH, HEADS, 1) for _ in range(2))
        mask = tensor(context, F16, LENGTH, LENGTH, 1, 1)
        return (q, k, v, mask), attention(context, q, k, v, mask, HEAD_SIZE**-0.5, 0.0, 0.0)

    (q, k, v, mask), _, graph = build(describe)
    put(q, normal(5, HEADS, LENGTH, HEAD_SIZE))
    for seed, target in ((6, k), (16, v)):
        put(target, normal(seed, HEADS, LENGTH, HEAD_SIZE).astype(np.float16))
    put(mask, np.where(np.tri(LENGTH) > 0, 0, -np.inf).astype(np.float16))
    emit(attention_ms=median(lambda: compute(backend, graph), 5) * 1e3)
os._exit(0)  # without the destructors
