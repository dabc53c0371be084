"""Gradients by name: ``<op>_backward_<input>``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.base.errors import DTypeError, ParameterError, ShapeError, UnknownNameError

Array = np.ndarray[Any, Any]


def normal(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape)


def test_linear() -> None:
    a, b, bias, g = normal(3, 4), normal(4, 5), normal(5), normal(3, 5) + 1
    inputs = (a, b, bias, g)
    np.testing.assert_allclose(fv.call("fused_linear_backward_a", *inputs), g @ b.T, rtol=1e-12)
    np.testing.assert_allclose(fv.call("fused_linear_backward_b", *inputs), a.T @ g, rtol=1e-12)
    np.testing.assert_allclose(fv.call("fused_linear_backward_bias", *inputs), g.sum(0), rtol=1e-12)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rope_is_the_adjoint(interleaved: bool) -> None:
    """<rope(x), g> = <x, rope_backward_x(g)> for any tables, since rope is linear in x."""
    x, cos, sin, g = normal(2, 5, 8), normal(7, 8), normal(7, 8) + 0.5, normal(2, 5, 8) * 2
    y = fv.call("rope", x, cos, sin, interleaved=interleaved)
    dx = fv.call("rope_backward_x", x, cos, sin, g, interleaved=interleaved)
    assert abs((y * g).sum() - (x * dx).sum()) < 1e-12 * np.abs(y * g).sum()


def test_same_bits_as_grad() -> None:
    x, weight = normal(3, 70).astype("f4"), normal(70).astype("f4")
    g = np.ones((3, 70), "f4")
    by_name = fv.call("rms_norm_last_dim_backward_x", x, weight, g)
    by_grad = fv.grad(lambda t: fv.ops.rms_norm_last_dim(t, fv.asarray(weight)).sum())(fv.asarray(x))
    assert by_name.tobytes() == by_grad.numpy().tobytes()


def test_refusals() -> None:
    a, b, g = normal(3, 4), normal(4, 5), normal(3, 5)
    with pytest.raises(UnknownNameError):
        fv.call("fused_linear_backward_c", a, b, None, g)
    with pytest.raises(ParameterError, match="no bias to differentiate by"):
        fv.call("fused_linear_backward_bias", a, b, None, g)
    with pytest.raises(ShapeError, match=r"g\(3, 4\)"):
        fv.call("fused_linear_backward_a", a, b, None, a)
    with pytest.raises(DTypeError, match="g is f32"):
        fv.call("fused_linear_backward_a", a, b, None, g.astype("f4"))
