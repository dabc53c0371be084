"""Signatures, shape and dtype rules, views and samples of every op, found through the registries."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from fuelvk.base.dtypes import FLOATS, INTEGERS, DType
from fuelvk.base.errors import DTypeError, IndexOutOfRangeError, ParameterError, ShapeError, UnknownNameError
from fuelvk.base.shapes import Layout
from fuelvk.graph import ir
from fuelvk.graph.ops.flash_attn import resolve
from fuelvk.graph.registry import (
    builder,
    default_fused_op_registry,
    default_primitive_registry,
    find_op,
    op_names,
)
from fuelvk.graph.types import DECOMPOSE, NOT_DIFFERENTIABLE, Family, OpEntry, PrimitiveEntry, Sample
from tests.support.interpret import evaluate

ENTRIES: list[OpEntry] = [*default_fused_op_registry(), *default_primitive_registry()]
FLAGS_OR_F32 = (DType.F32, DType.BOOL)
MOST_SAMPLES, MOST_BYTES = 30, 1 << 20
g = builder()


def apply(op: OpEntry, inputs: tuple[Any, ...], params: dict[str, Any]) -> tuple[ir.Value, ...]:
    bound, converted = op.bind(inputs, params)
    return ir.apply(op, tuple(None if x is None else ir.constant(x) for x in bound), converted)


def samples(op: OpEntry, row: tuple[DType, ...]) -> list[Sample]:
    assert op.sample_inputs is not None
    return list(op.sample_inputs(row, np.random.default_rng(0)))


@pytest.mark.parametrize("op", ENTRIES, ids=lambda e: e.name)
def test_entry_is_complete(op: OpEntry) -> None:
    assert op.doc
    assert op.sample_inputs is not None
    assert op.dtypes
    assert len(set(op.dtypes)) == len(op.dtypes)
    assert all(len(row) > len(op.args) for row in op.dtypes)
    if op.backward is NOT_DIFFERENTIABLE:
        # A gradient op may end the chain: its own gradient is then refused by name.
        assert op.family is Family.BACKWARD or all(not row[-1].is_float for row in op.dtypes)
    assert op.backward is DECOMPOSE or op.backward is NOT_DIFFERENTIABLE or callable(op.backward)
    assert op.name in op_names()
    assert find_op(op.name) is op


@pytest.mark.parametrize("op", ENTRIES, ids=lambda e: e.name)
def test_samples_fit_the_rules(op: OpEntry) -> None:
    for row in op.dtypes:
        found = samples(op, row)
        labels = [s.label for s in found]
        assert len(set(labels)) == len(labels), "labels are unique"
        assert all(re.fullmatch(r"[\w.\-]+", text) for text in labels)
        assert 1 <= len(found) <= MOST_SAMPLES
        total = 0
        for sample in found:
            assert all(x is None or isinstance(x, np.ndarray) for x in sample.inputs)
            outputs = apply(op, sample.inputs, sample.params)
            seen = tuple(None if x is None else DType.of(x) for x in sample.inputs)
            assert op.dtype_row(seen, tuple(v.dtype for v in outputs)) == row
            total += sum(x.nbytes for x in sample.inputs if x is not None)
            total += sum(int(np.prod(v.shape, dtype=np.int64)) * v.dtype.size for v in outputs)
        assert total <= MOST_BYTES


@pytest.mark.parametrize("op", ENTRIES, ids=lambda e: e.name)
def test_samples_are_the_same_twice(op: OpEntry) -> None:
    first, second = samples(op, op.dtypes[0]), samples(op, op.dtypes[0])
    for a, b in zip(first, second, strict=True):
        assert a.label == b.label
        for x, y in zip(a.inputs, b.inputs, strict=True):
            assert (x is None) == (y is None)
            if x is not None and y is not None:
                assert x.tobytes() == y.tobytes()


ERRORS = [
    (op, e)
    for op in ENTRIES
    if op.error_inputs is not None
    for e in op.error_inputs()
    if e.error is not IndexOutOfRangeError  # seen in the data, by a kernel
]


@pytest.mark.parametrize(("op", "sample"), ERRORS, ids=[f"{o.name}-{e.label}" for o, e in ERRORS])
def test_refusals(op: OpEntry, sample: Any) -> None:
    with pytest.raises(sample.error, match=sample.match):
        apply(op, sample.inputs, sample.params)


@pytest.mark.parametrize("op", ENTRIES, ids=lambda e: e.name)
def test_every_op_refuses_something(op: OpEntry) -> None:
    assert op.name == "copy" or any(o is op for o, _ in ERRORS)


@pytest.mark.parametrize("op", ENTRIES, ids=lambda e: e.name)
def test_shapes_agree_with_the_oracle(op: OpEntry) -> None:
    """The interpreter asserts that each oracle's result has the shape that the rule gave."""
    row = next((r for r in op.dtypes if r[0] is DType.F32), op.dtypes[0])
    for sample in samples(op, row):
        evaluate(apply(op, sample.inputs, sample.params))


@pytest.mark.parametrize("op", [e for e in default_primitive_registry() if e.view_rule], ids=lambda e: e.name)
def test_views_relabel_the_same_elements(op: PrimitiveEntry) -> None:
    for sample in samples(op, (DType.F32, DType.F32)):
        (x,) = sample.inputs
        assert x is not None
        (output,) = apply(op, sample.inputs, sample.params)
        assert op.view_rule is not None
        layout = op.view_rule(Layout.of(x.shape), output.node.params)
        assert layout is not None
        assert layout.shape == output.shape
        expected = evaluate([output])[0]
        assert expected is not None
        got = [
            x.reshape(-1)[layout.offset + int(np.dot(at, layout.strides))] for at in np.ndindex(*layout.shape)
        ]
        np.testing.assert_array_equal(np.asarray(got, np.float32).reshape(layout.shape), expected)


def test_dtypes_of_the_specification() -> None:
    rows = {e.name: {r[0] for r in e.dtypes} for e in ENTRIES}
    floats, numbers = set(FLOATS), {*FLOATS, *INTEGERS}
    for name in (
        "div",
        "sqr",
        "sqrt",
        "rsqrt",
        "recip",
        "step",
        "affine",
        "clamp",
        "powi",
        "relu",
        "erf",
        "exp",
        "tanh",
        "gelu_erf",
        "mean",
        "matmul",
    ):
        assert rows[name] == floats, name
    for name in ("add", "sub", "mul", "maximum", "minimum", "neg", "abs", "sign", "equal", "greater_equal"):
        assert rows[name] == numbers, name
    for name in ("sum", "max", "min"):
        assert rows[name] == {*floats, DType.I32, DType.I64}, name
    movement = ("copy", "concat", "index_select", "triu", "tril", "flip", "masked_fill", "gather")
    for name in (*movement, "roll", "pad", "write_slice"):
        assert rows[name] == set(DType), name
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        entry = find_op(name)
        assert entry is not None
        assert {r[-1] for r in entry.dtypes} == {DType.BOOL}
    cast = find_op("cast")
    assert cast is not None
    assert len(cast.dtypes) == 11 * 11 + 6


def test_names_and_signatures_of_the_specification() -> None:
    wanted = {
        "softmax_last_dim": "softmax_last_dim(x)",
        "fused_linear": "fused_linear(a, b, [bias])",
        "rms_norm_last_dim": "rms_norm_last_dim(x, [weight], *, eps=1e-05)",
        "layer_norm_last_dim": "layer_norm_last_dim(x, [weight], [bias], *, eps=1e-05)",
        "flash_attn": (
            "flash_attn(q, k, v, [alibi_slopes], [k_lens], *, scale, causal=False, causal_offset=None, "
            "window_left=None, window_right=None, softcap=None, k_len=None)"
        ),
        "sum": "sum(x, *, axes=None, keepdims=False)",
        "index_select": "index_select(x, indices, *, axis)",
        "concat": "concat(*xs, axis)",
        "affine": "affine(x, *, mul, add)",
        "clamp": "clamp(x, *, min=None, max=None)",
        "powi": "powi(x, *, exp)",
        "triu": "triu(x, *, k=0)",
        "flip": "flip(x, *, axes)",
        "masked_fill": "masked_fill(x, mask, *, value)",
        "gather": "gather(x, indices, *, axis)",
        "roll": "roll(x, *, shifts, axes)",
        "pad": "pad(x, *, pads, mode=constant, value=0)",
        "write_slice": "write_slice(x, update, [position], *, axis, start=None, wrap=False)",
        "where": "where(cond, a, b)",
        "cast": "cast(x, *, dtype)",
        "matmul": "matmul(a, b)",
    }
    for name, text in wanted.items():
        entry = find_op(name)
        assert entry is not None
        assert entry.signature() == text


def test_binding() -> None:
    norm = find_op("rms_norm_last_dim")
    assert norm is not None
    x = np.ones((2, 3), np.float32)
    assert norm.bind((x,), {})[0] == (x, None)
    assert norm.bind((x,), {"eps": 1})[1] == {"eps": 1.0}
    with pytest.raises(UnknownNameError, match="no parameter epsi.*'eps'"):
        norm.bind((x,), {"epsi": 1.0})
    with pytest.raises(ParameterError, match="takes 2 inputs"):
        norm.bind((x, x, x), {})
    with pytest.raises(ParameterError, match="input x may not be None"):
        norm.bind((None,), {})
    with pytest.raises(ParameterError, match="needs input x"):
        norm.bind((), {})
    with pytest.raises(UnknownNameError, match="softmax"):
        g.softmax_last_dmi(x)
    transpose = find_op("transpose")
    assert transpose is not None
    assert transpose.bind((x,), {"axes": np.array([1, 0])})[1] == {"axes": (1, 0)}
    assert transpose.bind((x,), {"axes": [np.int64(-1), 0]})[1] == {"axes": (-1, 0)}


@pytest.mark.parametrize(
    "op", [e for e in ENTRIES if len(e.args) > 1 or e.args[0].variadic], ids=lambda e: e.name
)
def test_mixed_dtypes_name_both(op: OpEntry) -> None:
    if not any(r[0] in FLAGS_OR_F32 and r[1] is DType.F32 for r in op.dtypes):
        return  # its inputs have dtypes of their own
    row = next(r for r in op.dtypes if r[0] in FLAGS_OR_F32 and r[-1] in FLAGS_OR_F32 and r[1] is DType.F32)
    sample = next(s for s in samples(op, row) if len([x for x in s.inputs if x is not None]) > 1)
    inputs = list(sample.inputs)
    last = next(i for i in (1, 2) if inputs[i] is not None and (i == 2 or row[0] is DType.F32))
    replaced = inputs[last]
    assert replaced is not None
    inputs[last] = replaced.astype(np.float64)
    with pytest.raises(DTypeError, match=f"{op.name}.*one dtype.*f32.*f64"):
        apply(op, tuple(inputs), sample.params)


def _attn(params: dict[str, Any], *, lens: bool = False, sq: int = 3, sk: int = 5) -> Any:
    q, k = (2, 4, sq, 8), (2, 2, sk, 8)
    return resolve((q, k, k, None, (2,) if lens else None), {"scale": 0.5, **params}, has_k_lens=lens)


def test_attention_numbers() -> None:
    plain = _attn({})
    assert (plain.B, plain.Hq, plain.Hkv, plain.Sq, plain.Sk, plain.D) == (2, 4, 2, 3, 5, 8)
    assert (plain.scale, plain.causal, plain.k_len, plain.softcap, plain.group) == (0.5, False, 5, 0.0, 2)
    assert plain.causal_offset == 2
    assert _attn({"k_len": 4}).causal_offset == 1
    assert _attn({"causal_offset": -7}).causal_offset == -7
    assert _attn({}, lens=True).causal_offset is None
    assert _attn({"causal_offset": 0}, lens=True).causal_offset == 0
    assert _attn({"window_left": 0}).masked_by_position
    assert not plain.masked_by_position
    with pytest.raises(ParameterError, match="window_left is negative"):
        _attn({"window_left": -1})
    with pytest.raises(ParameterError, match="softcap is negative or NaN"):
        _attn({"softcap": float("nan")})
    with pytest.raises(ParameterError, match="k_len lies outside"):
        _attn({"k_len": -1})


def test_integer_extremum_over_nothing() -> None:
    x = ir.constant(np.zeros((2, 0), np.int32))
    with pytest.raises(ShapeError, match="nothing"):
        g.max(x, axes=(-1,))
    assert g.max(x, axes=(0,)).shape == (0,)
    assert g.max(ir.constant(np.zeros((2, 0), np.float32)), axes=(-1,)).shape == (2,)


def test_graph_values() -> None:
    x = ir.constant(np.ones((2, 3), np.float32))
    y = g.exp(x)
    assert (y.shape, y.dtype, y.ndim) == ((2, 3), DType.F32, 2)
    assert y == ir.Value(y.node)
    assert len({y, ir.Value(y.node), x}) == 2
    assert [n.op.name for n in ir.topological([g.add(y, x)])] == ["leaf", "exp", "add"]
    deep = x
    for _ in range(5000):
        deep = g.neg(deep)
    assert len(ir.topological([deep])) == 5001


def test_rewrite_replaces_and_keeps() -> None:
    x = ir.constant(np.ones(3, np.float32))
    y = g.add(g.exp(x), x)
    (same,) = ir.rewrite([y], lambda node, inputs: None)
    assert same == y
    (swapped,) = ir.rewrite([y], lambda node, inputs: (inputs[0],) if node.op.name == "exp" else None)
    assert swapped.node.inputs == (x, x)
