"""What fv.call and fv.asarray take as arrays, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.base.errors import DTypeError, ParameterError, ShapeError, UnknownNameError, UnsupportedError
from fuelvk.runtime.devices import Device

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7


class Elsewhere:
    """An array on a GPU of another framework, as DLPack shows it."""

    dtype = np.dtype(np.float32)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 1

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("not on the host")


ODD_ARRAYS = {
    "transposed": X.transpose(2, 0, 1),
    "reversed": X[::-1, :, ::-1],
    "every second": X[:, :, ::2],
    "repeated": np.broadcast_to(X[:, :1], X.shape),
    "fortran": np.asfortranarray(X),
    "big endian": X.astype(">f4"),
    "0-d": np.float32(3.5),
    "empty": X[:0],
    "a list": [[1.0, 2.0], [3.0, 4.5]],
}


def read_only() -> np.ndarray[Any, Any]:
    x = X.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("name", [*ODD_ARRAYS, "read-only"])
def test_any_array_works_and_is_left_alone(name: str, cpu: Device) -> None:
    x = ODD_ARRAYS.get(name)
    x = read_only() if x is None else x
    before = np.array(x)
    for _ in range(2):  # the second call finds the program of the first
        got = fv.call("neg", x, device=cpu)
        assert got.shape == before.shape
        assert np.array_equal(got, -before)
    assert np.array_equal(before, np.array(x))
    assert got.flags.owndata or got.base.flags.owndata
    assert got.flags.writeable


REFUSED = [
    ("object array", np.array([1, "a"], dtype=object), DTypeError, "object"),
    ("strings", np.array(["a", "b"]), DTypeError, "<U1"),
    ("complex", np.array([1j]), DTypeError, "complex128"),
    ("structured", np.zeros(2, [("a", "f4")]), DTypeError, "dtype that is not taken"),
    ("another DLPack device", Elsewhere(), UnsupportedError, "DLPack device type 2, index 1.*host memory"),
    ("ragged", [[1, 2], [3]], ParameterError, "regular nesting"),
]


@pytest.mark.parametrize(("value", "error", "match"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_refused_arrays(value: Any, error: type[Exception], match: str, cpu: Device) -> None:
    with pytest.raises(error, match=match):
        fv.call("neg", value, device=cpu)
    with pytest.raises(error, match=match):
        fv.asarray(value, device=cpu)
    assert fv.call("neg", X, device=cpu).sum() == -X.sum()


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: fv.call("sofmax_last_dim", X), UnknownNameError, "softmax_last_dim"),
        (lambda: fv.call("softmax_last_dim", X, ep=1), UnknownNameError, "no parameter ep"),
        (lambda: fv.call("rms_norm_last_dim", X, esp=1e-5), UnknownNameError, "did you mean 'eps'"),
        (
            lambda: fv.call("softmax_last_dim", X, device="vulcan:0"),
            UnknownNameError,
            "(unknown|no Vulkan) device.*asked: vulcan:0",
        ),
        (lambda: fv.call("softmax_last_dim", X, backend="cuda"), UnknownNameError, "unknown backend"),
        (lambda: fv.call("softmax_last_dim", np.float32(1)), ShapeError, "softmax_last_dim"),
        (lambda: fv.call("softmax_last_dim", X.astype(np.int32)), DTypeError, "i32"),
        (lambda: fv.call("add", X, X.astype(np.float64)), DTypeError, "f32.*f64"),
        (lambda: fv.call("add", X, X[:, :2]), ShapeError, "broadcast"),
        (lambda: fv.call("add", X), ParameterError, "needs input b"),
        (lambda: fv.call("add", X, X, X), ParameterError, "takes 2 inputs"),
    ],
)
def test_wrong_calls_say_what_would_be_right(call: Any, error: type[Exception], match: str) -> None:
    with fv_env_cpu(), pytest.raises(error, match=match):
        call()


def fv_env_cpu() -> Any:
    from fuelvk.base import env

    return env.scoped(FUELVK_DEVICE="cpu")


def test_the_result_is_not_shared_between_calls(cpu: Device) -> None:
    first = fv.call("neg", X, device=cpu)
    kept = first.copy()
    fv.call("neg", X * 5, device=cpu)
    assert np.array_equal(first, kept)


MOVED: dict[str, tuple[dict[str, Any], Any]] = {
    "copy": ({}, np.array),
    "flip": ({"axes": -1}, lambda x: np.flip(x, -1)),
    "roll": ({"shifts": 2, "axes": 0}, lambda x: np.roll(x, 2, 0)),
    "triu": ({"k": 1}, lambda x: np.triu(x, 1)),
    "cast": ({"dtype": "i32"}, lambda x: x.astype(np.int32)),
    "clamp": ({"min": -1.0, "max": 2.0}, lambda x: np.clip(x, -1, 2)),
    "concat": ({"axis": 0}, lambda x: np.concatenate([x, x])),
    "add": ({}, lambda x: x + x),
    "less": ({}, lambda x: np.less(x, x)),
    "pad": ({}, lambda x: np.pad(x, 1)),
}
TWICE = ("concat", "add", "less")


@pytest.mark.parametrize("name", MOVED)
@pytest.mark.parametrize("given", [*ODD_ARRAYS, "read-only"])
def test_any_array_through_movement(given: str, name: str, cpu: Device) -> None:
    """Reversed, repeated, big-endian, read-only, 0-d and empty arrays, twice: the second call replays the first."""
    value = read_only() if given == "read-only" else ODD_ARRAYS[given]
    x = np.asarray(value).astype(np.asarray(value).dtype.newbyteorder("="))
    params, expected = MOVED[name]
    if x.ndim < {"triu": 2, "copy": 0, "cast": 0, "clamp": 0, "add": 0, "less": 0, "pad": 0}.get(name, 1):
        pytest.skip("has no such axis")
    if name == "pad":
        params = {"pads": ((1, 1),) * x.ndim}
    for _ in range(2):
        got = fv.call(name, *(value,) * (2 if name in TWICE else 1), device=cpu, **params)
        want = expected(x)
        assert got.shape == want.shape and np.array_equal(got, want)
