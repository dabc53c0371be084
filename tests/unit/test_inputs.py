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
