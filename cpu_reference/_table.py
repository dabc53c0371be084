"""The C kernels as a table: names, dtypes, arguments, and how each splits into independent units.

The C declarations, the Python call wrapper and the revision of each kernel are all derived from these rows. Imports
the standard library only, so that the build can use it before anything is installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

STORAGE = {
    "f64": "double", "f32": "float", "f16": "uint16_t", "bf16": "uint16_t", "f8e4m3": "uint8_t",
    "i64": "int64_t", "i32": "int32_t", "i16": "int16_t", "i8": "int8_t", "u32": "uint32_t", "u8": "uint8_t",
    "bool": "uint8_t", "b1": "uint8_t", "b2": "uint16_t", "b4": "uint32_t", "b8": "uint64_t",
}  # fmt: skip
POINTEE_SIZE = {
    "void": 0, "double": 8, "float": 4, "int64_t": 8, "uint64_t": 8, "int32_t": 4, "uint32_t": 4, "int16_t": 2,
    "uint16_t": 2, "int8_t": 1, "uint8_t": 1,
}  # fmt: skip

FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i64", "i32", "i16", "i8", "u32", "u8")
SIZES = ("b1", "b2", "b4", "b8")
PLAIN = (*FLOATS, *INTEGERS, "bool")
EIGHT_BIT_PAIRS = tuple(
    pair for half in ("f32", "f16", "bf16") for pair in ((half, "f8e4m3"), ("f8e4m3", half))
)

Measure = Callable[[Mapping[str, Any]], int]


@dataclass(frozen=True, slots=True)
class Argument:
    """One C argument; ``pointee`` is the C type pointed to, None for a number."""

    name: str
    ctype: str
    pointee: str | None
    written: bool

    @property
    def itemsize(self) -> int:
        """Bytes per element of an array passed here; 0 takes any."""
        return POINTEE_SIZE[self.pointee] if self.pointee else 0


@dataclass(frozen=True, slots=True)
class Kernel:
    """One C function. ``arguments`` leaves out the range of units, which the caller's thread split supplies."""

    name: str
    source: str
    arguments: tuple[Argument, ...]
    units: Measure
    work: Measure

    @property
    def declaration(self) -> str:
        """The C prototype."""
        inner = ", ".join(f"{a.ctype} {a.name}" for a in self.arguments)
        return f"int {self.name}({inner}, int64_t begin, int64_t end);"


def tiles(count: int, size: int) -> int:
    """Returns how many tiles of ``size`` cover ``count``."""
    return -(-count // size)


def _rows(a: Mapping[str, Any]) -> int:
    return int(a["rows"])


def _elements(a: Mapping[str, Any]) -> int:
    return int(a["n"])


def _row_work(a: Mapping[str, Any]) -> int:
    return 4 * int(a["rows"] * a["n"])


def _one(a: Mapping[str, Any]) -> int:
    return 1


def _rope_work(a: Mapping[str, Any]) -> int:
    return int(a["rows"] * a["d"])


def _outer(a: Mapping[str, Any]) -> int:
    return int(a["outer"])


def _product_units(a: Mapping[str, Any]) -> int:
    return int(a["batch"]) * tiles(int(a["m"]), 64)


def _product_work(a: Mapping[str, Any]) -> int:
    return int(a["batch"] * a["m"] * a["k"] * a["n"])


def _attention_units(a: Mapping[str, Any]) -> int:
    group = a["q_heads"] // a["kv_heads"] if a["kv_heads"] else 0
    return int(a["batch"] * a["kv_heads"]) * tiles(int(group * a["sq"]), 64)


def _attention_work(a: Mapping[str, Any]) -> int:
    return int(2 * a["batch"] * a["q_heads"] * a["sq"] * a["sk"] * a["d"])


def _kv_heads(a: Mapping[str, Any]) -> int:
    return int(a["batch"] * a["kv_heads"])


def _paged_work(a: Mapping[str, Any]) -> int:
    return int(2 * a["batch"] * a["q_heads"] * a["sq"] * a["table_width"] * a["block_size"] * a["d"])


def _function_work(a: Mapping[str, Any]) -> int:
    return 16 * int(a["n"])


def _gather_work(a: Mapping[str, Any]) -> int:
    return int(a["outer"] * a["count"] * a["inner_bytes"]) // 16


def _row_bytes(a: Mapping[str, Any]) -> int:
    return int(a["outer"] * a["axis"] * a["inner_bytes"]) // 16


def _triangle_work(a: Mapping[str, Any]) -> int:
    return int(a["outer"] * a["rows"] * a["columns"])


def _picks_work(a: Mapping[str, Any]) -> int:
    return int(a["outer"] * a["count"] * a["inner"])


def _planes(a: Mapping[str, Any]) -> int:
    return int(a["planes"])


def _plane_work(a: Mapping[str, Any]) -> int:
    return int(a["planes"] * a["inner"])


def _result(a: Mapping[str, Any]) -> int:
    return int(a["planes"] * a["ho"] * a["wo"])


def _source(a: Mapping[str, Any]) -> int:
    return int(a["planes"] * a["h"] * a["w"])


def _result_work(a: Mapping[str, Any]) -> int:
    return 4 * _result(a)


def _window_work(a: Mapping[str, Any]) -> int:
    return _result(a) * int(a["kh"] * a["kw"])


def _square_work(a: Mapping[str, Any]) -> int:
    return _window_work(a) * int(a["kh"] * a["kw"])


@dataclass(frozen=True, slots=True)
class _Family:
    source: str
    ops: tuple[str, ...]
    dtypes: tuple[str, ...]
    prototype: str
    units: Measure
    work: Measure


_UNARY = "const T *x, T *y, int64_t n"
_BINARY = "const T *a, const T *b, T *y, int64_t n"
_COMPARE = "const T *a, const T *b, uint8_t *y, int64_t n"
_REDUCE = "const T *x, T *y, int64_t rows, int64_t n"
_PRODUCT = (
    "const int64_t *a_index, const int64_t *b_index, T *y, int64_t batch, int64_t m, int64_t k, int64_t n"
)
_FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tanh", "sigmoid", "silu", "softplus", "erf", "gelu",
    "gelu_erf", "rsqrt", "recip",
)  # fmt: skip
_RESIZED = "int64_t planes, int64_t h, int64_t w, int64_t ho, int64_t wo"
_POOL = (
    _RESIZED + ", int64_t kh, int64_t kw, int64_t sh, int64_t sw, int64_t ph, int64_t pw"
)  # kernel, stride, padding
_DILATED = _POOL + ", int64_t dh, int64_t dw"
_POOLED = _POOL + ", int32_t padded"
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")

_FAMILIES = (
    _Family("rows.c", ("softmax_last_dim",), FLOATS, "const T *x, T *y, int64_t rows, int64_t n", _rows, _row_work),
    _Family("rows.c", ("log_softmax",), FLOATS, "const T *x, T *y, int64_t rows, int64_t n", _rows, _row_work),
    _Family("rows.c", ("rms_norm_last_dim",), FLOATS,
            "const T *x, const T *weight, T *y, int64_t rows, int64_t n, double eps", _rows, _row_work),
    _Family("rows.c", ("layer_norm_last_dim",), FLOATS,
            "const T *x, const T *weight, const T *bias, T *y, int64_t rows, int64_t n, double eps", _rows, _row_work),
    _Family("rows.c", ("softmax_last_dim_backward",), FLOATS,
            "const T *y, const T *g, T *dx, int64_t rows, int64_t n", _rows, _row_work),
    _Family("rows.c", ("rms_norm_last_dim_backward", "layer_norm_last_dim_backward"), FLOATS,
            "const T *x, const T *g, T *dx, int64_t rows, int64_t n, double eps", _rows, _row_work),
    _Family("product.c", ("fused_linear",), FLOATS, "const T *a, const T *b, const T *bias, " + _PRODUCT,
            _product_units, _product_work),
    _Family("product.c", ("matmul",), FLOATS, "const T *a, const T *b, " + _PRODUCT, _product_units, _product_work),
    _Family("attention.c", ("flash_attn",), FLOATS,
            "const T *q, const T *k, const T *v, const float *alibi_slopes, const uint32_t *k_lens, T *y, "
            "int64_t batch, int64_t q_heads, int64_t kv_heads, int64_t sq, int64_t sk, int64_t d, double scale, "
            "double softcap, int64_t k_len, int32_t causal, int32_t has_offset, int64_t causal_offset, "
            "int64_t window_left, int64_t window_right", _attention_units, _attention_work),
    _Family("attention.c", ("flash_attn_backward",), FLOATS,
            "const T *q, const T *k, const T *v, const T *dy, const float *alibi_slopes, const uint32_t *k_lens, "
            "T *dq, T *dk, T *dv, int64_t batch, int64_t q_heads, int64_t kv_heads, int64_t sq, int64_t sk, int64_t d, "
            "double scale, double softcap, int64_t k_len, int32_t causal, int32_t has_offset, int64_t causal_offset, "
            "int64_t window_left, int64_t window_right", _kv_heads, _attention_work),
    _Family("attention.c", ("paged_attn",), FLOATS,
            "const T *q, const T *k_cache, const T *v_cache, const uint32_t *block_table, "
            "const uint32_t *context_lens, const float *alibi_slopes, T *y, int64_t batch, int64_t q_heads, "
            "int64_t kv_heads, int64_t sq, int64_t d, int64_t blocks, int64_t block_size, int64_t table_width, "
            "double scale, double softcap", _kv_heads, _paged_work),
    _Family("pointwise.c", ("neg", "abs", "sqr", "sqrt", "relu", "sign", "step"), FLOATS, _UNARY, _elements,
            _elements),
    _Family("function.c", _FUNCTIONS, FLOATS, _UNARY, _elements, _function_work),
    _Family("pointwise.c", ("affine",), FLOATS, _UNARY + ", double mul, double add", _elements, _elements),
    _Family("pointwise.c", ("clamp",), FLOATS, _UNARY + ", double low, double high", _elements, _elements),
    _Family("pointwise.c", ("powi",), FLOATS, _UNARY + ", int64_t exponent", _elements, _elements),
    _Family("pointwise.c", ("powi_backward",), FLOATS, "const T *x, const T *g, T *y, int64_t n, int64_t exponent",
            _elements, _elements),
    _Family("loss.c", ("cross_entropy",), FLOATS,
            "const T *x, const int64_t *targets, double *z, int64_t rows, int64_t n, int64_t ignore", _rows, _row_work),
    _Family("loss.c", ("cross_entropy_backward",), FLOATS,
            "const T *x, const int64_t *targets, const A *factors, T *dx, int64_t rows, int64_t n, int64_t ignore",
            _rows, _row_work),
    _Family("pointwise.c", ("hard_sigmoid",), FLOATS, _UNARY + ", double alpha, double beta", _elements, _elements),
    _Family("pointwise.c", ("hard_swish",), FLOATS, _UNARY, _elements, _elements),
    _Family("networks.c", ("max_pool2d",), FLOATS, "const T *x, T *y, " + _DILATED, _result, _window_work),
    _Family("networks.c", ("avg_pool2d",), FLOATS, "const T *x, T *y, " + _POOLED, _result, _window_work),
    _Family("networks.c", ("max_pool2d_backward",), FLOATS, "const T *x, const T *g, T *dx, " + _DILATED, _source,
            _square_work),
    _Family("networks.c", ("avg_pool2d_backward",), FLOATS, "const T *g, T *dx, " + _POOLED, _source, _window_work),
    _Family("networks.c", ("resize2d",), FLOATS, "const T *x, const int32_t *taps, const double *weights, T *y, "
            + _RESIZED, _result, _result_work),
    _Family("networks.c", ("resize2d_backward",), FLOATS, "const T *g, const int32_t *taps, const double *weights, "
            "const int32_t *spans, T *dx, " + _RESIZED, _source, _result_work),
    _Family("networks.c", ("batch_norm",), FLOATS, "const T *x, const T *scale, const T *bias, const T *mean, "
            "const T *var, T *y, int64_t planes, int64_t channels, int64_t inner, double eps", _planes, _plane_work),
    _Family("rope.c", ("rope",), FLOATS,
            "const T *x, const T *cos, const T *sin, T *y, int64_t rows, int64_t length, int64_t d, int64_t columns, "
            "int32_t interleaved", _rows, _rope_work),
    _Family("pointwise.c", ("add", "sub", "mul", "div", "maximum", "minimum"), FLOATS, _BINARY, _elements, _elements),
    _Family("pointwise.c", _COMPARISONS, (*FLOATS, *INTEGERS), _COMPARE, _elements, _elements),
    _Family("pointwise.c", ("neg", "abs", "sign"), INTEGERS, _UNARY, _elements, _elements),
    _Family("pointwise.c", ("add", "sub", "mul", "maximum", "minimum"), INTEGERS, _BINARY, _elements, _elements),
    _Family("pointwise.c", ("where",), SIZES, "const uint8_t *cond, const T *a, const T *b, T *y, int64_t n", _elements,
            _elements),
    _Family("reduce.c", ("sum", "prod", "max", "min"), (*FLOATS, "i64", "i32"), _REDUCE, _rows, _row_work),
    _Family("reduce.c", ("mean", "cumsum"), FLOATS, _REDUCE, _rows, _row_work),
    _Family("reduce.c", ("argmax", "argmin"), FLOATS, "const T *x, int64_t *y, int64_t rows, int64_t n", _rows,
            _row_work),
    _Family("reduce.c", ("reduce_max_to_backward",), FLOATS,
            "const T *x, const T *g, T *dx, int64_t rows, int64_t n", _rows, _row_work),
    _Family("accumulate.c", ("scatter_add", "index_add"), FLOATS,
            "const T *x, const int64_t *indices, const T *updates, T *y, int64_t outer, int64_t axis, int64_t count, "
            "int64_t inner", _outer, _picks_work),
    _Family("movement.c", ("copy",), SIZES,
            "const T *x, T *y, const int64_t *shape, const int64_t *strides, int64_t rank, int64_t offset, "
            "int64_t x_count, int64_t n", _elements, _elements),
    _Family("movement.c", ("triangle",), SIZES,
            "const T *x, T *y, int64_t outer, int64_t rows, int64_t columns, int64_t k, int32_t upper", _outer,
            _triangle_work),
    _Family("movement.c", ("masked_fill",), SIZES, "const T *x, const uint8_t *mask, const T *value, T *y, int64_t n",
            _elements, _elements),
    _Family("movement.c", ("gather",), SIZES,
            "const T *x, const int64_t *indices, T *y, int64_t outer, int64_t axis, int64_t count, int64_t inner",
            _outer, _picks_work),
    _Family("strict.c", tuple(f"strict_{f}" for f in ("exp", "rcp", "sqrt", "rsqrt", "tanh", "erf", "gelu_erf")),
            ("f32", "f64"), _UNARY, _elements, _elements),
    _Family("strict.c", ("strict_div", "strict_exp_difference"), ("f32", "f64"), _BINARY, _elements, _elements),
)  # fmt: skip

_SINGLES = (
    ("loss.c", "loss_total", "const double *losses, float *result, int64_t rows, int64_t count", _one, _one),
    ("loss.c", "loss_each", "const double *losses, float *result, int64_t rows", _rows, _rows),
    ("movement.c", "index_select", "const void *x, const int64_t *indices, void *y, int64_t outer, int64_t axis, "
     "int64_t count, int64_t inner_bytes", _outer, _gather_work),
    ("movement.c", "concat", "const void *x, void *y, int64_t outer, int64_t x_bytes, int64_t y_bytes, "
     "int64_t offset_bytes", _outer, _outer),
    ("placement.c", "roll", "const void *x, void *y, int64_t outer, int64_t axis, int64_t inner_bytes, int64_t shift",
     _outer, _row_bytes),
    ("placement.c", "pad", "const void *x, void *y, const void *value, int64_t outer, int64_t axis, "
     "int64_t inner_bytes, int64_t before, int64_t after, int32_t mode, int64_t item_bytes", _outer, _row_bytes),
    ("placement.c", "write_slice", "const void *x, const void *update, void *y, int64_t outer, int64_t axis, "
     "int64_t inner_bytes, int64_t count, int64_t start", _outer, _row_bytes),
)  # fmt: skip


def _arguments(prototype: str, storage: Mapping[str, str]) -> tuple[Argument, ...]:
    """Reads a prototype's arguments; ``storage`` gives the C types that T, S and D stand for."""
    found = []
    for text in prototype.split(", "):
        match = re.fullmatch(r"(const )?(\w+) (\*?)(\w+)", text)
        assert match is not None, text
        const, ctype, star, name = match.groups()
        ctype = storage.get(ctype, ctype)
        full = f"{const or ''}{ctype} {star}".rstrip()
        found.append(Argument(name, full, ctype if star else None, bool(star) and not const))
    return tuple(found)


def _kernels() -> dict[str, Kernel]:
    rows: list[Kernel] = []
    for f in _FAMILIES:
        for key in f.dtypes:
            arguments = _arguments(
                f.prototype, {"T": STORAGE[key], "A": "double" if key == "f64" else "float"}
            )
            rows += [Kernel(f"{op}_{key}", f.source, arguments, f.units, f.work) for op in f.ops]
    for source, name, prototype, units, work in _SINGLES:
        rows.append(Kernel(name, source, _arguments(prototype, {}), units, work))
    for source_key, target_key in [(s, t) for s in PLAIN for t in PLAIN] + list(EIGHT_BIT_PAIRS):
        arguments = _arguments(
            "const S *x, D *y, int64_t n", {"S": STORAGE[source_key], "D": STORAGE[target_key]}
        )
        rows.append(Kernel(f"cast_{source_key}_{target_key}", "cast.c", arguments, _elements, _elements))
    table = {row.name: row for row in rows}
    assert len(table) == len(rows), "two rows give one kernel name"
    return table


KERNELS: Mapping[str, Kernel] = _kernels()
SOURCES: tuple[str, ...] = tuple(dict.fromkeys(kernel.source for kernel in KERNELS.values()))

FLAGS: tuple[str, ...] = ("-O3", "-ffp-contract=off", "-fno-trapping-math", "-fwrapv")
MSVC_FLAGS: tuple[str, ...] = ("/O2", "/fp:precise", "/std:c11")
