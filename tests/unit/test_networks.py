"""Pooling, resizing, batch norm and log_softmax against plain loops, ONNX's published examples, and PyTorch where it is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fuelvk as fv
from cpu_reference import canonical
from cpu_reference.numpy import oracle
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.graph import ir
from fuelvk.graph.autograd import gradients
from fuelvk.graph.primitives._images import pooled_extent
from fuelvk.graph.registry import builder
from fuelvk.kernels.ops.resize2d import axis_table
from tests.support.interpret import evaluate

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


def on_cpu(op: str, *inputs: Array, **params: Any) -> Array:
    return np.asarray(fv.call(op, *inputs, device="cpu", **params))


def tap_sum(values: list[tuple[int, Any]], kind: Any) -> Any:
    """Returns the sum of (tap, value) in blocks of 64 taps, written without the kernels' bookkeeping."""
    total = kind(0)
    for block in range(max((t for t, _ in values), default=0) // 64 + 1):
        s = kind(0)
        for tap, value in values:
            if tap // 64 == block:
                s = s + value
        total = total + s
    return total


def windows_of(
    x: Array, kernel: int, stride: int, padding: int
) -> list[tuple[int, int, list[tuple[int, int, int]]]]:
    """Returns (row, column, [(tap, h, w), ...]) of every window of a square kernel."""
    found = []
    for i, top in enumerate(range(-padding, x.shape[0] + padding - kernel + 1, stride)):
        for j, left in enumerate(range(-padding, x.shape[1] + padding - kernel + 1, stride)):
            taps = [
                (a * kernel + b, top + a, left + b)
                for a in range(kernel)
                for b in range(kernel)
                if 0 <= top + a < x.shape[0] and 0 <= left + b < x.shape[1]
            ]
            found.append((i, j, taps))
    return found


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 2, 1), (9, 2, 4), (2, 1, 0)])
def test_pooling_in_the_canonical_order(dtype: DType, kernel: int, stride: int, padding: int) -> None:
    kind = dtype.accumulator.numpy.type
    x = RNG.standard_normal((13, 14)).astype(dtype.numpy)
    params = {"kernel": kernel, "stride": stride, "padding": padding}
    wide = x.astype(kind)
    places = windows_of(x, kernel, stride, padding)
    average, largest = (on_cpu(op, x, **params) for op in ("avg_pool2d", "max_pool2d"))
    g = RNG.standard_normal(average.shape).astype(dtype.numpy)
    owners: dict[tuple[int, int], list[tuple[int, Any]]] = {}
    shares: dict[tuple[int, int], list[tuple[int, Any]]] = {}
    count = kind(kernel * kernel)
    for i, j, taps in places:
        total = tap_sum([(t, wide[h, w]) for t, h, w in taps], kind)
        assert average[i, j] == canonical.strict("div", total, count).astype(dtype.numpy)
        assert largest[i, j] == max(x[h, w] for _, h, w in taps)
        winner = max(taps, key=lambda tap: (float(wide[tap[1], tap[2]]), -tap[0]))
        owners.setdefault(winner[1:], []).append((winner[0], kind(g[i, j])))
        for t, h, w in taps:
            shares.setdefault((h, w), []).append((t, canonical.strict("div", kind(g[i, j]), count)))
    back = on_cpu("max_pool2d_backward", x, g, **params)
    even = on_cpu("avg_pool2d_backward", g, size=x.shape, **params)
    for h, w in np.ndindex(x.shape):
        assert back[h, w] == tap_sum(sorted(owners.get((h, w), [])), kind).astype(dtype.numpy)
        assert even[h, w] == tap_sum(sorted(shares.get((h, w), [])), kind).astype(dtype.numpy)


def test_pooling_counts_windows_as_pytorch() -> None:
    """Extents written out from PyTorch's documentation and ``pooling_output_shape``."""
    for n in range(1, 12):
        for k in range(1, 5):
            for s in range(1, 4):
                for p in range(k // 2 + 1):
                    for d in (1, 2):
                        floor = math.floor((n + 2 * p - d * (k - 1) - 1) / s + 1)
                        assert pooled_extent(n, (k, s, p, d), False) == floor
                        up = math.ceil((n + 2 * p - d * (k - 1) - 1) / s + 1)
                        if (up - 1) * s >= n + p:
                            up -= 1
                        assert pooled_extent(n, (k, s, p, d), True) == up


def test_ceil_mode_drops_what_starts_in_the_padding() -> None:
    x = np.arange(1.0, 5.0).reshape(1, 4)
    whole = on_cpu("avg_pool2d", x, kernel=(1, 3), stride=(1, 3), padding=(0, 1), ceil_mode=True)
    assert whole.tolist() == [[1.0, 7 / 3]]
    alone = on_cpu(
        "avg_pool2d", x, kernel=(1, 3), stride=(1, 2), padding=(0, 0), ceil_mode=True, count_include_pad=False
    )
    assert alone.tolist() == [[2.0, 3.5]]


def test_max_pool_leaves_padding_and_infinities_alone() -> None:
    x = np.full((2, 2), -np.inf, np.float32)
    x[0, 1] = -7.0
    assert on_cpu("max_pool2d", x, kernel=3, stride=1, padding=1).tolist() == [[-7, -7], [-7, -7]]
    x[1, 0] = np.nan
    assert np.isnan(on_cpu("max_pool2d", x, kernel=3, stride=1, padding=1)).all()
    back = on_cpu("max_pool2d_backward", x, np.ones((1, 1), np.float32), kernel=2)
    assert back.tolist() == [[0, 0], [1, 0]]
    zeros = np.array([[-0.0, 0.0], [-1.0, 0.0]], np.float32)
    assert not np.signbit(on_cpu("max_pool2d", zeros, kernel=2)).any()
    assert on_cpu("max_pool2d_backward", zeros, np.ones((1, 1), np.float32), kernel=2).tolist() == [
        [1, 0],
        [0, 0],
    ]


# The examples of ONNX's Resize, operator set 19.
_SQUARE, _STRIP = [[1, 2], [3, 4]], [[1, 2, 3, 4], [5, 6, 7, 8]]
ONNX_RESIZE = (
    (_SQUARE, (7, 8), "nearest", "half_pixel", [[1] * 4 + [2] * 4] * 4 + [[3] * 4 + [4] * 4] * 3),
    (_STRIP, (1, 3), "nearest", "half_pixel", [[1, 2, 4]]),
    (_SQUARE, (4, 4), "linear", "half_pixel",
     [[1, 1.25, 1.75, 2], [1.5, 1.75, 2.25, 2.5], [2.5, 2.75, 3.25, 3.5], [3, 3.25, 3.75, 4]]),
    (_SQUARE, (4, 4), "linear", "align_corners",
     [[1, 4 / 3, 5 / 3, 2], [5 / 3, 2, 7 / 3, 8 / 3], [7 / 3, 8 / 3, 3, 10 / 3], [3, 10 / 3, 11 / 3, 4]]),
    (_SQUARE, (4, 4), "linear", "asymmetric",
     [[1, 1.5, 2, 2], [2, 2.5, 3, 3], [3, 3.5, 4, 4], [3, 3.5, 4, 4]]),
)  # fmt: skip


@pytest.mark.parametrize(("x", "size", "mode", "coordinates", "expected"), ONNX_RESIZE)
def test_resize_gives_onnx_examples(x: Any, size: Any, mode: str, coordinates: str, expected: Any) -> None:
    params = {"size": size, "mode": mode, "coordinates": coordinates}
    got = on_cpu("resize2d", np.array(x, np.float64), **params)
    np.testing.assert_allclose(got, expected, rtol=1e-15)
    np.testing.assert_allclose(oracle("resize2d")(np.array(x, np.float64), **params), expected, rtol=1e-15)


def test_resize_reads_no_source_of_weight_zero() -> None:
    x = np.array([[1.0, np.nan, 3.0, np.inf, 5.0]], np.float32)
    got = on_cpu("resize2d", x, size=(1, 9), mode="linear", coordinates="align_corners")[0]
    assert got[[0, 4, 8]].tolist() == [1, 3, 5]
    assert np.isnan(got[[1, 2, 3]]).all()
    assert np.isinf(got[[5, 6, 7]]).all()


def test_resize_tables_span_exactly_their_readers() -> None:
    for n, m in ((1, 1), (1, 9), (5, 3), (3, 10), (7, 7), (100, 13), (2, 64)):
        for mode in ("nearest", "linear"):
            for coordinates in ("half_pixel", "align_corners", "asymmetric"):
                table = axis_table(n, m, mode, coordinates)
                assert (table.weights.sum(axis=1) == 1).all() or mode == "linear"
                for source in range(n):
                    readers = [o for o in range(m) if source in table.taps[o]]
                    assert list(range(*table.spans[source])) == readers


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
def test_log_softmax_in_the_canonical_order(dtype: DType) -> None:
    kind = dtype.accumulator.numpy.type
    x = (RNG.standard_normal((3, 150)) * 4).astype(dtype.numpy)
    got = on_cpu("log_softmax", x)
    exact = oracle("log_softmax")(x)
    for row, found, want in zip(x.astype(kind), got, exact, strict=True):
        m = canonical.row_max(row, kind)
        total = canonical.exact_sum([canonical.strict("exp_difference", v, m) for v in row], kind)
        # The library's logarithm is within 1 ULP of the real one, so what it gives is one of three numbers.
        near = kind(np.log(np.longdouble(total)))
        candidates = [
            (row - m) - v for v in (np.nextafter(near, kind(0)), near, np.nextafter(near, kind(np.inf)))
        ]
        assert any(np.array_equal(found, c.astype(dtype.numpy)) for c in candidates)
        assert abs(float(np.exp(want).sum()) - 1) < 1e-14


def test_log_softmax_keeps_a_small_logarithm() -> None:
    got = on_cpu("log_softmax", np.array([[0.0, -20.0]], np.float64))[0]
    np.testing.assert_allclose(got, [-math.log1p(math.exp(-20)), -20 - math.log1p(math.exp(-20))], atol=4e-16)


def test_batch_norm_by_hand() -> None:
    x = np.array([[[1.0, 3.0], [10.0, 20.0]]])
    got = on_cpu(
        "batch_norm", x, *(np.array(v) for v in ([2.0, 1.0], [0.5, 0.0], [1.0, 10.0], [3.0, 24.0])), eps=1.0
    )
    np.testing.assert_allclose(got, [[[0.5, 2.5], [0.0, 2.0]]], rtol=1e-15)


def test_hard_functions_at_their_ends() -> None:
    x = np.array([-np.inf, -3.0, -1.0, 0.0, 1.0, 3.0, np.inf, np.nan], np.float32)
    swish = on_cpu("hard_swish", x)
    np.testing.assert_allclose(swish[:7], [0, 0, -1 / 3, 0, 2 / 3, 3, np.inf], rtol=2e-7)
    assert np.signbit(swish[:2]).all()
    assert np.isnan(swish[7])
    sigmoid = on_cpu("hard_sigmoid", x)
    np.testing.assert_allclose(sigmoid[:7], [0, 0, 0.3, 0.5, 0.7, 1, 1], rtol=2e-7)
    assert np.isnan(sigmoid[7])


def _gradient(op: str, inputs: tuple[Array, ...], grad: Array, **params: Any) -> list[Array | None]:
    g = builder()
    leaves = [ir.constant(x) for x in inputs]
    output = getattr(g, op)(*leaves, **params)
    return evaluate(gradients([output], [ir.constant(grad)], leaves, g))


def test_against_pytorch() -> None:
    torch = pytest.importorskip("torch")
    f = torch.nn.functional

    def hold(op: str, theirs: Any, *shapes: tuple[int, ...], **params: Any) -> None:
        inputs = tuple(
            np.abs(RNG.standard_normal(s)) + 0.1 if len(s) == 1 else RNG.standard_normal(s) for s in shapes
        )
        leaves = [torch.tensor(x, requires_grad=True) for x in inputs]
        want = theirs(*leaves)
        np.testing.assert_allclose(
            on_cpu(op, *inputs, **params), want.detach().numpy(), rtol=1e-12, atol=1e-13
        )
        grad = RNG.standard_normal(tuple(want.shape))
        want.backward(torch.tensor(grad))
        for leaf, found in zip(leaves, _gradient(op, inputs, grad, **params), strict=True):
            np.testing.assert_allclose(found, leaf.grad.numpy(), rtol=1e-11, atol=1e-12)

    image = (2, 3, 11, 10)
    for k, s, p, d, c in ((3, 2, 1, 1, False), (3, 2, 1, 1, True), (2, 3, 1, 2, True), (4, 1, 2, 1, False)):
        hold(
            "max_pool2d", lambda x, a=(k, s, p, d, c): f.max_pool2d(x, *a), image,
            kernel=k, stride=s, padding=p, dilation=d, ceil_mode=c,
        )  # fmt: skip
        for include in (False, True):
            hold(
                "avg_pool2d", lambda x, a=(k, s, p, c, include): f.avg_pool2d(x, *a), image,
                kernel=k, stride=s, padding=p, ceil_mode=c, count_include_pad=include,
            )  # fmt: skip
    hold("global_avg_pool2d", lambda x: f.adaptive_avg_pool2d(x, 1), image)
    hold("log_softmax", lambda x: f.log_softmax(x, -1), (4, 33))
    hold("hard_swish", f.hardswish, (40, 3))
    # torch's own hardsigmoid multiplies its gradient by a 1/6 rounded to F32, in F64 too.
    hold("hard_sigmoid", lambda x: (x / 6 + 0.5).clamp(0, 1), (40, 3), alpha=1 / 6, beta=0.5)
    for size in ((5, 21), (11, 10), (1, 4)):
        hold(
            "resize2d", lambda x, a=size: f.interpolate(x, a, mode="bilinear", align_corners=True), image,
            size=size, mode="linear", coordinates="align_corners",
        )  # fmt: skip
        hold(
            "resize2d", lambda x, a=size: f.interpolate(x, a, mode="bilinear", align_corners=False), image,
            size=size, mode="linear",
        )  # fmt: skip
    hold(
        "batch_norm", lambda x, w, b, m, v: (x - m[:, None, None]) * torch.rsqrt(v + 1e-5)[:, None, None]
        * w[:, None, None] + b[:, None, None], image, (3,), (3,), (3,), (3,),
    )  # fmt: skip
