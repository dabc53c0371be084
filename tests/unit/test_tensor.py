"""The lazy tensor on the CPU reference: NumPy's results, one plan per signature, nothing run twice."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.base.dtypes import DType
from fuelvk.base.errors import DTypeError, IndexOutOfRangeError, ParameterError, ShapeError, UnsupportedError
from fuelvk.runtime.devices import Device

RNG = np.random.default_rng(11)
X = RNG.standard_normal((4, 5, 6)).astype(np.float32)
Y = RNG.standard_normal((5, 1)).astype(np.float32)


@pytest.fixture
def x(cpu: Device) -> Any:
    return fv.asarray(X, device=cpu)


def test_nothing_runs_until_somebody_looks(x: Any, cpu: Device) -> None:
    y = (x + 1) * 2
    assert "lazy mul" in repr(y)
    assert np.array_equal(y.numpy(), (X + 1) * 2)
    assert "realized" in repr(y)


@pytest.mark.parametrize("exponent", [2, 3, 0, -1, np.int64(2)])
def test_integer_powers(x: Any, exponent: Any) -> None:
    want = X.astype(np.float64) ** float(exponent)
    assert np.allclose((x**exponent).numpy(), want, rtol=1e-6)


def test_other_powers_are_refused(x: Any) -> None:
    for call in (lambda: x**0.5, lambda: x**True, lambda: x**x, lambda: 2**x):
        with pytest.raises(DTypeError, match="next: fv.ops.exp"):
            call()


def test_a_copy_is_itself_and_nothing_is_pickled(x: Any) -> None:
    assert copy.copy(x) is x
    assert copy.deepcopy([x])[0] is x
    with pytest.raises(UnsupportedError, match=r"not pickled.*tensor.numpy\(\)"):
        pickle.dumps(x)


def test_operators(x: Any, cpu: Device) -> None:
    y = fv.asarray(Y, device=cpu)
    for got, want in [
        (x + y, X + Y), (x - y, X - Y), (x * y, X * Y), (x / y, X / Y), (2 - x, 2 - X), (1 / x, 1 / X), (-x, -X),
        (abs(x), abs(X)), (x < y, X < Y), (x >= 0.5, X >= 0.5), (x == x, X == X), (x != y, X != Y),
    ]:  # fmt: skip
        assert np.array_equal(got.numpy(), want)


VIEWS = [
    ("transpose", lambda t: t.transpose(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    ("T", lambda t: t.T, lambda a: a.T),
    ("mT", lambda t: t.mT, lambda a: a.swapaxes(1, 2)),
    ("reshape", lambda t: t.reshape(10, 12), lambda a: a.reshape(10, 12)),
    ("reshape -1", lambda t: t.reshape(-1), lambda a: a.reshape(-1)),
    (
        "transpose, reshape",
        lambda t: t.transpose(1, 0, 2).reshape(20, 6),
        lambda a: a.transpose(1, 0, 2).reshape(20, 6),
    ),
    ("int index", lambda t: t[2], lambda a: a[2]),
    ("slice", lambda t: t[1:3, ::-1, ::2], lambda a: a[1:3, ::-1, ::2]),
    ("mixed", lambda t: t[..., -1, None, 1:4], lambda a: a[..., -1, None, 1:4]),
    ("empty", lambda t: t[2:2], lambda a: a[2:2]),
    ("broadcast", lambda t: t[:1].broadcast_to((3, 5, 6)), lambda a: np.broadcast_to(a[:1], (3, 5, 6))),
    ("negative step of a slice of a transpose", lambda t: t.T[::-2, 1:], lambda a: a.T[::-2, 1:]),
]


@pytest.mark.parametrize(("ours", "numpys"), [v[1:] for v in VIEWS], ids=[v[0] for v in VIEWS])
def test_views(ours: Any, numpys: Any, x: Any) -> None:
    assert np.array_equal(ours(x).numpy(), numpys(X))
    assert np.array_equal((ours(x) * 3).numpy(), numpys(X) * np.float32(3))


def test_reductions_over_any_axes(x: Any) -> None:
    for axis in (None, 0, 1, -1, (0, 2), (1, 2)):
        for keepdims in (False, True):
            got = x.sum(axis=axis, keepdims=keepdims).numpy()
            want = X.astype(np.float64).sum(axis=axis, keepdims=keepdims)
            assert got.shape == want.shape
            assert np.abs(got - want).max() < 1e-5
    assert np.array_equal(x.max(axis=1).numpy(), X.max(axis=1))
    assert np.array_equal(x.min().numpy(), X.min())


def test_promotion(cpu: Device) -> None:
    half, single, bf16 = (fv.asarray(np.ones(3), dtype=d, device=cpu) for d in ("f16", "f32", "bf16"))
    assert (half + single).dtype is DType.F32
    assert (half + bf16).dtype is DType.F32
    assert (half + 1.5).dtype is DType.F16
    integers = fv.asarray(np.ones(3, np.int32), device=cpu)
    with pytest.raises(DTypeError, match="i32 and f32"):
        integers + single
    with pytest.raises(DTypeError, match="float next to an integer"):
        integers + 0.5


def test_index_errors(x: Any) -> None:
    with pytest.raises(IndexOutOfRangeError, match="asked: 4"):
        x[4]
    with pytest.raises(ShapeError, match="too many"):
        x[0, 0, 0, 0]
    with pytest.raises(ParameterError, match="an index is"):
        x["a"]


def test_a_tensor_is_computed_once(x: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from fuelvk.runtime import executor

    calls = []
    real = executor.CpuProgram.run
    monkeypatch.setattr(
        executor.CpuProgram,
        "run",
        lambda self, given: calls.append(len(self.plan.steps)) or real(self, given),
    )
    a = (x * 2).realize()
    b = a + 1
    b.numpy()
    b.numpy()
    assert calls == [1, 1]


def test_shared_work_is_found_in_realized_parents(x: Any) -> None:
    a = x * 2
    b, c = a + 1, a - 1
    a.realize()
    assert np.array_equal((b * c).numpy(), (X * 2 + 1) * (X * 2 - 1))


def test_dlpack_round_trip(x: Any) -> None:
    assert np.array_equal(np.from_dlpack(x), X)
    assert np.array_equal(fv.from_dlpack(X, device="cpu").numpy(), X)
    assert np.array_equal(np.asarray(x + 0), X)


def test_compile_captures_once_per_signature(cpu: Device) -> None:
    seen = []
    weight = fv.asarray(np.full((6, 3), 0.5, np.float32), device=cpu)

    @fv.compile
    def step(a: Any, b: Any) -> Any:
        seen.append(a.shape)
        return {"out": a @ weight + b, "sum": a.sum()}

    for batch in (2, 4, 2, 4, 4):
        a = RNG.standard_normal((batch, 6)).astype(np.float32)
        out = step(fv.asarray(a, device=cpu), fv.asarray(np.float32(1), device=cpu))
        assert np.abs(out["out"].numpy() - (a @ np.full((6, 3), 0.5, np.float32) + 1)).max() < 1e-5
    assert seen == [(2, 6), (4, 6)]


def test_looking_at_an_argument_while_it_is_captured_is_refused(cpu: Device) -> None:
    step = fv.compile(lambda a: a * float(a.sum()))
    with pytest.raises(ParameterError, match="while the function is captured"):
        step(fv.asarray(X, device=cpu))


def test_operands_on_two_devices(x: Any, cpu: Device) -> None:
    class Other(type(cpu)):  # type: ignore[misc]
        pass

    other = Other()
    other.spec = "cpu:other"
    with pytest.raises(ParameterError, match="different devices"):
        x + fv.asarray(X, device=other)


def test_grad(cpu: Device) -> None:
    x = RNG.standard_normal((3, 4))
    w = RNG.standard_normal((4, 2))

    def loss(a: Any, b: Any) -> Any:
        return fv.ops.tanh(a @ b).sum()

    ga, gb = fv.grad(loss, argnums=(0, 1))(fv.asarray(x, device=cpu), fv.asarray(w, device=cpu))
    slope = 1 - np.tanh(x @ w) ** 2
    assert np.abs(ga.numpy() - slope @ w.T).max() < 1e-12
    assert np.abs(gb.numpy() - x.T @ slope).max() < 1e-12
    with pytest.raises(ShapeError, match="scalar"):
        fv.grad(lambda a: a * 2)(fv.asarray(x, device=cpu))


def test_numbers_beyond_the_dtype_are_refused(cpu: Device) -> None:
    u = fv.asarray(np.array([44, 200], np.uint8), device=cpu)
    for wrong in (300, -1):
        with pytest.raises(ParameterError, match="0 to 255"):
            u == wrong  # noqa: B015 - the comparison itself is what is refused
    with pytest.raises(ParameterError, match="more than 70 bits"):
        fv.asarray(np.ones(2, np.float32), device=cpu) + 10**400
    assert (u + 55).numpy().tolist() == [99, 255]


def test_asarray_converts_as_cast_does(cpu: Device) -> None:
    got = fv.asarray([300.0, -5, float("nan")], dtype="u8", device=cpu).numpy()
    assert got.tolist() == [255, 0, 0]
    assert fv.asarray([1.5], dtype=np.float32, device=cpu).dtype is DType.F32


def test_threads_may_look_at_one_lazy_tensor(cpu: Device) -> None:
    import threading

    for _ in range(20):
        t = fv.asarray(X, device=cpu) * 2 + 1
        seen: list[Any] = []
        threads = [threading.Thread(target=lambda t=t, seen=seen: seen.append(t.numpy())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(seen) == 8
        assert all(np.array_equal(s, X * 2 + 1) for s in seen)


WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda x: x[::0], ParameterError, "slice"),
    (lambda x: x[0:1.5], ParameterError, "slice"),
    (lambda x: float(x), ShapeError, "one element"),
    (lambda x: x.astype("f33"), DTypeError, "f33"),
    (lambda x: x.astype(3), DTypeError, "names no dtype"),
    (lambda x: fv.call("neg", X, tolerance=1e-5, device="cpu"), ParameterError, "a tolerance is a Tolerance"),
    (lambda x: fv.call(5, X), fv.FuelvkError, "named by a string"),
    (lambda x: fv.call("neg", np.ma.masked_array([1.0, 2.0], [0, 1]), device="cpu"), DTypeError, "masked"),
    (lambda x: fv.compile(3), ParameterError, "takes a function"),
    (lambda x: fv.grad(lambda a: a.sum(), argnums=9)(x), ParameterError, "no such argument"),
    (lambda x: fv.grad(lambda a: 1.0)(x), ParameterError, "differentiates a Tensor"),
    (lambda x: fv.grad(lambda a: a * float(a.sum()))(x), ParameterError, "while fv.grad differentiates"),
]


@pytest.mark.parametrize("row", WRONG, ids=[r[2] for r in WRONG])
def test_mistakes_are_named(row: tuple[Any, type[Exception], str], x: Any) -> None:
    call, error, match = row
    with pytest.raises(error, match=match):
        call(x)


def test_a_cast_that_does_not_exist_says_what_its_detour_costs(cpu: Device) -> None:
    wide = fv.asarray(np.ones(3), device=cpu)
    with pytest.raises(DTypeError, match="next: go through f32 .*rounded twice"):
        wide.astype(DType.F8E4M3)
