"""Cost functions: the two oracles of the specification, one case counted by hand for each function, and properties."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from fuelvk.base.dtypes import DType
from fuelvk.graph.registry import default_primitive_registry
from fuelvk.kernels import costs
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import CostEstimate

Shapes = tuple[tuple[int, ...] | None, ...]


def estimate(name: str, shapes: Shapes, params: dict[str, Any]) -> CostEstimate:
    result: CostEstimate = getattr(costs, f"cost_{name}_cpu")(shapes, params, None)
    return result


def test_oracle_conv2d() -> None:
    found = estimate("conv2d", ((2, 4, 8, 8), (6, 4, 3, 3), (6,)), {"padding": (1, 1)})
    assert found.flops == 55296 + 768


def test_oracle_linear() -> None:
    assert estimate("fused_linear", ((2, 4, 8), (2, 8, 16), (16,)), {}).flops == 2048 + 128


# Each row counted by hand: function, shapes, params, operations, bytes, overhead.
BY_HAND: tuple[tuple[str, Shapes, dict[str, Any], int, int, int], ...] = (
    # 2*1*2*3*4 + 2*4 ... B=1 M=2 K=3 N=4: 48 + 8; a 6, b 12, y 8, bias 4 elements
    ("fused_linear", ((2, 3), (3, 4), (4,)), {}, 48 + 8, 4 * (6 + 12 + 8 + 4), 50),
    ("norm_family", ((2, 3),), {}, 5 * 6, 4 * 6 * 2, 50),
    ("norm_family", ((2, 3), (3,)), {"eps": 1e-5}, 4 * 6, 4 * 6 * 3, 50),
    ("norm_family", ((2, 3), None), {"eps": 1e-5}, 4 * 6, 4 * 6 * 2, 50),
    ("norm_family", ((2, 3), (3,), (3,)), {"eps": 1e-5}, 7 * 6, 4 * 6 * 3, 50),
    ("norm_family", ((2, 3), None, None), {"eps": 1e-5}, 7 * 6, 4 * 6 * 2, 50),
    # x 2*1*3*4 = 24, cos 12
    ("rope", ((2, 1, 3, 4), (3, 4), (3, 4)), {}, 96, 4 * (48 + 24), 50),
    # 1x1x3x3 by a 2x2 kernel: four outputs of four taps, one bias
    ("conv2d", ((1, 1, 3, 3), (1, 1, 2, 2), (1,)), {}, 2 * 4 * 4 + 4, 4 * (9 + 4 + 4 + 1), 50),
    (
        "conv2d",
        ((1, 2, 5, 5), (4, 1, 3, 3), None),
        {"groups": 2, "stride": 2},
        2 * 16 * 9,
        4 * (50 + 36 + 16),
        50,
    ),
    # Ho = (2-1)*2 + 1*(2-1) + 1 = 4: sixteen outputs, one input channel, four taps
    (
        "conv_transpose2d",
        ((1, 1, 2, 2), (1, 1, 2, 2), None),
        {"stride": (2, 2)},
        2 * 16 * 4,
        4 * (4 + 4 + 16),
        50,
    ),
    # B=1 Hq=2 Sq=3 D=4, Hkv=1 Sk=5: 2*3*5 = 30 scores
    (
        "attn",
        ((1, 2, 3, 4), (1, 1, 5, 4), (1, 1, 5, 4), None, None),
        {},
        4 * 30 * 4 + 5 * 30,
        4 * (2 * 24 + 2 * 20),
        200,
    ),
    # paged: two blocks of 3 slots a row of the table: capacity 6, Hkv=1
    (
        "attn",
        ((1, 2, 3, 4), (7, 3, 1, 4), (7, 3, 1, 4), (1, 2), (1,)),
        {},
        4 * 2 * 3 * 6 * 4 + 5 * 2 * 3 * 6,
        4 * (2 * 24 + 2 * 24),
        200,
    ),
    (
        "attn_backward",
        ((1, 2, 3, 4), (1, 1, 5, 4), (1, 1, 5, 4), (1, 2, 3, 4)),
        {},
        10 * 30 * 4 + 8 * 30,
        4 * (3 * 24 + 4 * 20),
        200,
    ),
    # M=2 K=32 N=3 in Q4_0: three rows of one 18-byte block
    (
        "qmatmul",
        ((2, 32), (3, 18)),
        {"quant_type": "Q4_0", "k": 32, "n": 3},
        2 * 2 * 3 * 32,
        4 * (64 + 6) + 54,
        50,
    ),
    ("qmatmul", ((2, 32), (54,)), {"quant_type": "Q4_0"}, 2 * 2 * 3 * 32, 4 * (64 + 6) + 54, 50),
    # M=2 K=64 N=3: 32 bytes a row, one scale a row
    (
        "nf4_matmul",
        ((2, 64), (3, 32), (3, 1)),
        {"block_size": 64},
        2 * 2 * 3 * 64 + 192,
        4 * 128 + 96 + 12 + 24,
        50,
    ),
    ("reduce_max_to_backward", ((2, 3), (2, 1)), {}, 5 * 6 + 2 * 2, 4 * (30 + 6), 80),
    # ceil(log2 5) = 3
    ("powi_backward", ((7,), (7,)), {"exp": 5}, 7 * 5, 84, 60),
    ("powi_backward", ((7,), (7,)), {"exp": 0}, 7 * 3, 84, 60),
    ("inplace_affine", ((2, 3),), {"mul": 2.0}, 6, 48, 50),
    # B=1 C=2 K=3, S=4: x is 6 long
    ("causal_conv1d", ((1, 2, 6), (2, 1, 3), (2,)), {}, 8 * 6, 4 * (12 + 6 + 2 + 8), 50),
    ("causal_conv1d", ((1, 2, 6), (2, 3)), {"use_silu": True}, 8 * 16, 4 * (12 + 6 + 2 + 8), 50),
    ("fused_softmax_cross_entropy", ((3, 5), (3,)), {}, 3 * (65 + 10), 60 + 24 + 12, 50),
    # B=1 L=2 D=3 N=4
    (
        "selective_scan",
        ((1, 2, 3), (1, 2, 3), (3, 4), (1, 2, 4), (1, 2, 4)),
        {},
        16 * 24,
        8 * 6 + 8 * 8 + 4 * 12 + 4 * 6,
        50,
    ),
    # B=1 L=2 H=2 P=3, G=1 N=4
    (
        "ssd_chunk_scan",
        ((1, 2, 2, 3), (1, 2, 2), (2,), (1, 2, 1, 4), (1, 2, 1, 4)),
        {},
        8 * 48,
        8 * 12 + 4 * 4 + 8 * 8 + 4 * 2,
        50,
    ),
)


@pytest.mark.parametrize(("name", "shapes", "params", "flops", "nbytes", "overhead"), BY_HAND)
def test_by_hand(
    name: str, shapes: Shapes, params: dict[str, Any], flops: int, nbytes: int, overhead: int
) -> None:
    assert estimate(name, shapes, params) == CostEstimate(flops, nbytes, overhead)


def test_every_function_has_a_case() -> None:
    public = {n for n in vars(costs) if n.startswith("cost_") and n.endswith("_cpu")}
    assert public == {f"cost_{row[0]}_cpu" for row in BY_HAND}
    assert len(public) == 16


@pytest.mark.parametrize("name", sorted({row[0] for row in BY_HAND}))
def test_wrong_ranks_give_zero(name: str) -> None:
    for shapes in ((), (None,), ((),), ((3,), (3, 3, 3, 3, 3))):
        if (
            name
            in (
                "norm_family",
                "rope",
                "powi_backward",
                "inplace_affine",
                "reduce_max_to_backward",
                "fused_softmax_cross_entropy",
            )
            and shapes
            and shapes[0] is not None
        ):
            continue  # these take any rank
        assert estimate(name, shapes, {}) == CostEstimate()


@pytest.mark.parametrize(("name", "shapes", "params"), [row[:3] for row in BY_HAND])
def test_twice_the_batch_twice_the_work(name: str, shapes: Shapes, params: dict[str, Any]) -> None:
    """The leading axis of input 0 (and of what runs beside it) is doubled."""
    beside = {
        "attn": (1, 2, 3, 4),
        "attn_backward": (1, 2, 3),
        "reduce_max_to_backward": (1,),
        "powi_backward": (1,),
        "selective_scan": (1, 3, 4),
        "ssd_chunk_scan": (1, 3, 4),
    }.get(name, ())
    if name == "attn" and shapes[3] is not None:
        beside = (3, 4)  # the cache of a paged call is not per batch item
    doubled = tuple(
        (2 * s[0], *s[1:]) if s is not None and (i == 0 or i in beside) else s for i, s in enumerate(shapes)
    )
    before, after = estimate(name, shapes, params), estimate(name, doubled, params)
    # NF4 also dequantises its weights once, whatever the batch.
    fixed = 192 if name == "nf4_matmul" else 0
    assert after.flops - fixed == 2 * (before.flops - fixed)
    assert before.bytes_moved < after.bytes_moved <= 2 * before.bytes_moved
    assert after.kernel_overhead_ns == before.kernel_overhead_ns


@pytest.mark.parametrize(("name", "shapes", "params"), [row[:3] for row in BY_HAND])
def test_vulkan_twin(name: str, shapes: Shapes, params: dict[str, Any]) -> None:
    twin = getattr(costs, f"cost_{name}_vulkan")
    cpu, f32, f16 = (
        estimate(name, shapes, params),
        twin(shapes, params),
        twin(shapes, params, dtype=DType.F16),
    )
    assert f32 == CostEstimate(cpu.flops, cpu.bytes_moved, costs.VULKAN_LAUNCH_NS)
    assert f16.flops == cpu.flops
    assert cpu.bytes_moved / 2 <= f16.bytes_moved < cpu.bytes_moved


def test_norm_kinds_ignore_the_output_shape() -> None:
    """Routing passes the outputs' shapes behind the inputs'; a kind says where the inputs end."""
    shape = (2, 3)
    assert costs.cost_norm_family_cpu((shape, shape), {}, kind="softmax").bytes_moved == 48
    assert costs.cost_norm_family_cpu((shape, None, shape), {"eps": 1.0}, kind="rms").flops == 24
    assert costs.cost_layer_norm_vulkan((shape, (3,), None, shape), {"eps": 1.0}).bytes_moved == 72
    assert costs.cost_softmax_vulkan((shape, shape), {}, dtype=DType.F64).bytes_moved == 96


def test_integers_only() -> None:
    for row in BY_HAND:
        found = estimate(*row[:3])
        assert all(type(v) is int for v in (found.flops, found.bytes_moved, found.kernel_overhead_ns))


def test_primitive_costs() -> None:
    f16, f32, i64 = DType.F16, DType.F32, DType.I64
    add = primitive_cost_cpu("add", (f16, f16, f16))(((2, 3), (3,), (2, 3)), {}, None)
    assert add == CostEstimate(6, 2 * (6 + 3 + 6), 50)
    product = primitive_cost_vulkan("matmul", (f32, f32, f32))(((2, 3), (3, 4), (2, 4)), {}, None)
    assert product == CostEstimate(48, 4 * (6 + 12 + 8), costs.VULKAN_LAUNCH_NS)
    total = primitive_cost_cpu("sum", (f32, f32))(((5, 7), (5,)), {}, None)
    assert (total.flops, total.bytes_moved) == (35, 4 * 40)
    joined = primitive_cost_cpu("concat", (f32, f32))(((2,), (3,), (5,)), {}, None)
    assert (joined.flops, joined.bytes_moved) == (0, 40)
    picked = primitive_cost_cpu("index_select", (f32, i64, f32))(((1000, 4), (2,), (2, 4)), {}, None)
    assert picked.bytes_moved == 8 * 2 + 4 * 8 + 4 * 8


@pytest.mark.parametrize(
    "op", [e for e in default_primitive_registry() if e.view_rule is None], ids=lambda e: e.name
)
def test_primitive_cost_takes_every_sample(op: Any) -> None:
    import numpy as np

    dtypes = op.dtypes[0]
    cost = primitive_cost_cpu(op.name, dtypes)
    for sample in op.sample_inputs(dtypes, np.random.default_rng(0)):
        inputs, params = op.bind(sample.inputs, sample.params)
        shapes = tuple(None if x is None else np.shape(x) for x in inputs)
        outs = op.shape_rule(shapes, params)
        found = cost((*shapes, *outs), params, None)
        assert found.bytes_moved >= sum(int(np.prod(s, dtype=np.int64)) for s in outs) * dtypes[-1].size


def test_partials_keep_the_signature() -> None:
    bound = functools.partial(costs.cost_attn_vulkan, dtype=DType.F16)
    assert bound(((1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1)), {}, None).flops == 9
