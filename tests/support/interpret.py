"""Evaluates a graph of values with the NumPy oracles, one op at a time, rounding to each value's dtype."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fuelvk.graph.ir import Node, Value, topological

Array = np.ndarray[Any, Any]


def evaluate(
    outputs: Sequence[Value | None], given: Mapping[Value, Array] | None = None
) -> list[Array | None]:
    """Returns the arrays of ``outputs`` (None stays None); ``given`` replaces the data of leaves."""
    arrays: dict[Value, Array] = dict(given or {})
    wanted = [v for v in outputs if v is not None]
    for node in topological(wanted):
        results = node.outputs()
        if all(v in arrays for v in results):
            continue
        for value, array in zip(results, _run(node, arrays), strict=True):
            with np.errstate(all="ignore"):
                arrays[value] = np.asarray(array).astype(value.dtype.numpy)
            assert arrays[value].shape == value.shape, (node, arrays[value].shape)
    return [None if v is None else arrays[v] for v in outputs]


def _run(node: Node, arrays: Mapping[Value, Array]) -> tuple[Array, ...]:
    if node.is_leaf:
        assert node.data is not None, "a leaf without data needs a row in `given`"
        return (np.asarray(node.data),)
    inputs = [None if v is None else arrays[v] for v in node.inputs]
    view = _VIEWS.get(node.op.name)
    if view is not None:
        return (view(inputs[0], node.params),)
    module = importlib.import_module(f"cpu_reference.numpy.{node.op.name}")
    with np.errstate(all="ignore"):
        result = module.reference(*inputs, **node.params)
    return result if isinstance(result, tuple) else (result,)


def _slice(x: Any, params: Mapping[str, Any]) -> Array:
    steps = params["steps"] if params["steps"] is not None else (1,) * x.ndim
    picks = [np.arange(*bounds) for bounds in zip(params["starts"], params["stops"], steps, strict=True)]
    return np.asarray(x[np.ix_(*picks)] if picks else x)


_VIEWS: dict[str, Any] = {
    "reshape": lambda x, p: np.reshape(x, p["shape"]),
    "transpose": lambda x, p: np.transpose(x, p["axes"]),
    "broadcast_to": lambda x, p: np.broadcast_to(x, p["shape"]),
    "slice": _slice,
}
