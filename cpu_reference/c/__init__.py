"""The deterministic C kernels: the executable form of the canonical algorithms (ops.md section 9).

``call(name, *args)`` runs one. Arrays are C-contiguous NumPy arrays of the type in the name (f16, bf16 and f8e4m3
included), ``None`` where a pointer is optional (marked ?). Shapes are the caller's business: nothing is broadcast, and
outputs are allocated by the caller. Names and arguments, T in f32 f64 f16 bf16 unless said otherwise:

    softmax_last_dim_T     x, y, rows, n
    log_softmax_T          x, y, rows, n
    rms_norm_last_dim_T    x, weight?, y, rows, n, eps
    layer_norm_last_dim_T  x, weight?, bias?, y, rows, n, eps
    fused_linear_T         a, b, bias?, a_index i64, b_index i64, y, batch, m, k, n
    matmul_T               a, b, a_index i64, b_index i64, y, batch, m, k, n
                           a is [.., m, k], b [.., k, n], y [batch, m, n]; output i reads matrix a_index[i] of a and
                           b_index[i] of b: ``batch_indices`` makes both from the batch shapes
    flash_attn_T           q, k, v, alibi_slopes? f32, k_lens? u32, y, batch, q_heads, kv_heads, sq, sk, d, scale,
                           softcap (0 off), k_len (read where k_lens is None), causal (0 1), has_offset (0 1),
                           causal_offset (read where has_offset; else k_len - sq), window_left, window_right (-1 off)
    flash_attn_backward_T  q, k, v, dy, alibi_slopes?, k_lens?, dq?, dk?, dv?, then as flash_attn
    paged_attn_T           q, k_cache, v_cache, block_table u32, context_lens u32, alibi_slopes? f32, y, batch, q_heads,
                           kv_heads, sq, d, blocks, block_size, table_width, scale, softcap (0 off)
    neg abs sqr sqrt relu exp tanh gelu_erf _T          x, y, n            (neg abs also i64 i32 i16 i8 u32 u8)
    rsqrt recip sign step erf _T                        x, y, n            (sign also the integers)
    hard_sigmoid_T hard_swish_T                         x, y, n, then alpha, beta; nothing
    max_pool2d_T           x, y, planes, h, w, ho, wo, kh, kw, sh, sw, ph, pw, dh, dw
    max_pool2d_backward_T  x, g, dx, then the same
    avg_pool2d_T           x, y, planes, h, w, ho, wo, kh, kw, sh, sw, ph, pw, padded (1: divide by the padding too)
    avg_pool2d_backward_T  g, dx, then the same
    resize2d_T             x, taps i32, weights f64, y, planes, h, w, ho, wo       (tables: networks.inc)
    resize2d_backward_T    g, taps i32, weights f64, spans i32, dx, planes, h, w, ho, wo
    batch_norm_T           x, scale, bias, mean, var, y, planes, channels, inner, eps
    affine_T clamp_T powi_T                             x, y, n, then mul, add; low, high (inf: none); exponent
    add sub mul div maximum minimum _T                  a, b, y, n         (all but div also the integers)
    equal not_equal less less_equal greater greater_equal _T   a, b, y u8/bool, n   (also the integers)
    where_b1 _b2 _b4 _b8   cond bool, a, b, y, n                           (by element size)
    sum max min mean _T    x [rows, n], y [rows], rows, n                  (sum max min also i64 i32)
    copy_b1 _b2 _b4 _b8    x (the whole buffer), y, shape i64, strides i64, rank, offset, x_count, n
                           the view (shape, strides, offset in elements) of a buffer of x_count elements; n = its size
    index_select           x, indices i64, y, outer, axis, count, inner_bytes         (any dtype)
    concat                 x, y, outer, x_bytes, y_bytes, offset_bytes                (any dtype, once per input)
    roll                   x, y, outer, axis, inner_bytes, shift                      (any dtype, once per axis)
    pad                    x, y, value, outer, axis, inner_bytes, before, after, mode (0 value, 1 reflect, 2 replicate),
                           item_bytes                                                 (any dtype, once per axis)
    write_slice            x, update, y, outer, axis, inner_bytes, count, start       (any dtype; wraps)
    triangle_b1 _b2 _b4 _b8     x, y, outer, rows, columns, k, upper (0 1)   zeros off the triangle's side of diagonal k
    masked_fill_b1 _b2 _b4 _b8  x, mask bool, value (one element), y, n
    gather_b1 _b2 _b4 _b8       x [outer, axis, inner], indices i64 [outer, count, inner], y, outer, axis, count, inner
    strict_exp strict_rcp strict_sqrt strict_rsqrt strict_tanh strict_erf strict_gelu_erf _f32 _f64   x, y, n
    strict_div_f32 _f64    a, b, y, n   the strict library's inner functions, for tests and probes
    cast_S_D               x, y, n      S, D in f64 f32 f16 bf16 i64 i32 i16 i8 u32 u8 bool; f8e4m3 with f32 f16 bf16

Large calls are spread over the cores by independent units; the bits do not depend on how.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from cpu_reference._sources import (
    build_digest,
    in_source_tree,
    revision_sources,
    revision_sources_of,
    source_of,
)
from cpu_reference._table import KERNELS, Argument
from fuelvk.base.errors import (
    DTypeError,
    IndexOutOfRangeError,
    ParameterError,
    ShapeError,
    UnknownNameError,
    UnsupportedError,
    closest,
)

__all__ = [
    "available",
    "batch_indices",
    "call",
    "names",
    "revision_sources",
    "revision_sources_of",
    "source_of",
    "why_missing",
]

_NO_MEMORY, _OUT_OF_RANGE = 1, 2
# Below this much work (about a millisecond's) a second thread costs more than it brings.
_THREADED_WORK = 1 << 19


@cache
def _load() -> tuple[Any, Any, str]:
    """Returns (ffi, lib, "") or (None, None, the reason why there is no usable module)."""
    try:
        from cpu_reference import _ckernels  # type: ignore[attr-defined]
    except ImportError as error:
        return None, None, f"the C kernels are not built ({error}); run `python cpu_reference/c/_build.py`"
    ffi, lib = _ckernels.ffi, _ckernels.lib
    if in_source_tree():
        built = ffi.string(lib.fv_build_digest).decode()
        if built != build_digest():
            return (
                None,
                None,
                "the C kernels were built from other sources; run `python cpu_reference/c/_build.py`",
            )
    return ffi, lib, ""


def available() -> bool:
    """Returns whether the compiled kernels can be called."""
    return not _load()[2]


def why_missing() -> str:
    """Returns why they cannot be called and what to do; empty when they can."""
    return _load()[2]


def names() -> tuple[str, ...]:
    """Returns the names of all kernels, built or not."""
    return tuple(KERNELS)


def batch_indices(
    a_batch: Sequence[int], b_batch: Sequence[int]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], tuple[int, ...]]:
    """Returns (a_index, b_index, batch shape) for matrix products whose batch dims broadcast.

    Each index array has one i64 per output matrix: which matrix of the contiguous operand it reads.
    """
    shape = np.broadcast_shapes(tuple(a_batch), tuple(b_batch))
    made = []
    for batch in (tuple(a_batch), tuple(b_batch)):
        index = np.arange(math.prod(batch), dtype=np.int64).reshape(batch)
        made.append(np.ascontiguousarray(np.broadcast_to(index, shape)).reshape(-1))
    return made[0], made[1], shape


def _pointer(ffi: Any, name: str, argument: Argument, value: Any) -> Any:
    if value is None:
        return ffi.NULL
    if not isinstance(value, np.ndarray):
        raise DTypeError(
            f"{name}: {argument.name} is an array", seen=type(value).__name__, allowed="ndarray or None"
        )
    if argument.itemsize not in (0, value.dtype.itemsize):
        raise DTypeError(
            f"{name}: {argument.name} has another element size", seen=value.dtype, allowed=argument.pointee
        )
    if not value.flags.c_contiguous:
        raise ShapeError(
            f"{name}: {argument.name} is not C-contiguous", seen=value.strides, hint="copy it first"
        )
    if argument.written and not value.flags.writeable:
        raise ParameterError(f"{name}: {argument.name} is written to but read-only")
    return ffi.cast("void *", value.__array_interface__["data"][0])


@cache
def thread_count() -> int:
    """Returns how many threads large calls use: one per core this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


class _Pool:
    """The threads of large calls, started with the first one; a forked child starts its own."""

    def __init__(self) -> None:
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        # A lock made before the fork may be held by a thread that the child does not have.
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None

    def get(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(thread_count(), thread_name_prefix="fuelvk-cpu")
            return self._executor


_pool = _Pool()


def call(name: str, *args: Any) -> None:
    """Runs kernel ``name``; arrays stay alive and untouched by others until it returns. The GIL is released.

    Raises UnsupportedError when the kernels are not built, UnknownNameError, DTypeError or ShapeError for arguments
    that do not fit the declaration, IndexOutOfRangeError when the kernel met an index, length or view outside its
    array, MemoryError when scratch memory ran out.
    """
    kernel = KERNELS.get(name)
    if kernel is None:
        raise UnknownNameError("unknown C kernel", asked=name, hint=closest(name, KERNELS) or None)
    ffi, lib, why = _load()
    if why:
        raise UnsupportedError(f"C kernel {name} cannot run", seen=why)
    if len(args) != len(kernel.arguments):
        wanted = ", ".join(a.name for a in kernel.arguments)
        raise ParameterError(
            f"{name} takes {len(kernel.arguments)} arguments", seen=len(args), allowed=wanted
        )
    numbers = {a.name: v for a, v in zip(kernel.arguments, args, strict=True) if a.pointee is None}
    native = [
        _pointer(ffi, name, a, v) if a.pointee is not None else v
        for a, v in zip(kernel.arguments, args, strict=True)
    ]
    function = getattr(lib, name)
    units = kernel.units(numbers)
    parts = min(thread_count(), units) if kernel.work(numbers) >= _THREADED_WORK else 1
    if parts > 1:
        cuts = [units * i // parts for i in range(parts + 1)]
        later = itertools.pairwise(cuts[1:])
        pending = [_pool.get().submit(function, *[*native, low, high]) for low, high in later]
        results = [function(*native, cuts[0], cuts[1])] + [p.result() for p in pending]
    else:
        results = [function(*native, 0, units)]
    if _NO_MEMORY in results:
        raise MemoryError(f"C kernel {name}: no scratch memory")
    if _OUT_OF_RANGE in results:
        raise IndexOutOfRangeError(
            f"C kernel {name} met an index, length or view outside its array", asked=numbers
        )
