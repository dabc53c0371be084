"""Computes tensors: one plan per graph structure, shapes, device and tolerance."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fuelvk.base.errors import ParameterError
from fuelvk.graph import ir
from fuelvk.optimizer import tolerance as tolerances
from fuelvk.optimizer.lower import lower
from fuelvk.optimizer.tolerance import Tolerance
from fuelvk.runtime.devices import Device
from fuelvk.runtime.executor import Program, program
from fuelvk.runtime.storage import Source

if TYPE_CHECKING:
    from fuelvk.tensor.core import Tensor

SMALL_CONSTANT = 1024
PLANS = 512

_lock = threading.RLock()
_plans: dict[Any, Program] = {}


def realize(tensors: Sequence[Tensor]) -> None:
    """Computes all tensors (of one device) with one plan; each becomes a leaf."""
    pending = [t for t in tensors if not t._value.node.is_leaf]
    if not pending:
        for t in tensors:
            _settle(t)
        return
    devices = {id(t.device): t.device for t in pending}
    if len(devices) > 1:
        raise ParameterError(
            "tensors of several devices in one call", seen=[d.spec for d in devices.values()]
        )
    device = pending[0].device
    before = [t._value for t in pending]
    if any(v.node.is_leaf for v in before):  # another thread was quicker
        realize(tensors)
        return
    values = [resolved(v) for v in before]
    chosen = tolerances.effective(None)
    key, inputs = signature(values)
    trust = os.environ.get("FUELVK_TRUST")
    found = plan_for((device.spec, id(device), chosen, trust, key), values, inputs, device, chosen)
    results = found.run([_input(v, device) for v in inputs])
    with _lock:
        for t, was, storage in zip(pending, before, results, strict=True):
            source = Source(storage=storage)
            sources = was.node.data or [None] * len(was.node.shapes)
            sources[was.index] = source
            was.node.data = sources
            if t._value is was:  # else another thread computed the tensor meanwhile
                t._value = ir.leaf(source, source.shape, source.dtype)


def _differentiating() -> ParameterError:
    return ParameterError(
        "the elements of an argument were asked for while fv.grad differentiates the function",
        hint="compute with fv.ops inside; a compiled function cannot be called there, compile the gradient instead",
    )


def _settle(t: Tensor) -> None:
    node = t._value.node
    if node.data is None:
        raise _differentiating()
    if not isinstance(node.data, Source):
        t._value = ir.leaf(Source(np.asarray(node.data)), t.shape, t.dtype)


def resolved(value: ir.Value) -> ir.Value:
    """Returns the value with everything that was computed before standing as a leaf."""

    def change(node: ir.Node, inputs: tuple[ir.Value | None, ...]) -> tuple[ir.Value, ...] | None:
        if node.is_leaf or not isinstance(node.data, list) or None in node.data:
            return None
        return tuple(ir.leaf(s, s.shape, s.dtype) for s in node.data)

    return ir.rewrite((value,), change)[0] if _any_computed(value) else value


def _any_computed(value: ir.Value) -> bool:
    return any(not n.is_leaf and n.data is not None for n in ir.topological((value,)))


def signature(outputs: Sequence[ir.Value]) -> tuple[Any, list[ir.Value]]:
    """Returns what a plan depends on (structure, shapes, dtypes, small constants) and the leaves that vary."""
    rows: list[Any] = []
    inputs: list[ir.Value] = []
    numbers: dict[int, int] = {}
    sources: dict[int, int] = {}
    for node in ir.topological(outputs):
        if node.is_leaf:
            data = node.data
            if isinstance(data, np.ndarray) and data.nbytes <= SMALL_CONSTANT:
                row: Any = ("constant", node.shapes[0], node.dtypes[0], data.tobytes())
            else:
                row = ("input", node.shapes[0], node.dtypes[0], sources.setdefault(id(data), len(sources)))
                inputs.append(ir.Value(node, 0))
        else:
            row = (
                node.op.id,
                tuple(node.params.items()),
                tuple(None if v is None else (numbers[id(v.node)], v.index) for v in node.inputs),
            )
        numbers[id(node)] = len(rows)
        rows.append(row)
    return (tuple(rows), tuple((numbers[id(v.node)], v.index) for v in outputs)), inputs


def plan_for(
    key: Any, outputs: Sequence[ir.Value], inputs: Sequence[ir.Value], device: Device, tolerance: Tolerance
) -> Program:
    """Returns the program of a signature, planned on first use."""
    with _lock:
        found = _plans.get(key)
        if found is None:
            found = program(lower(outputs, inputs, device.target(), tolerance), device)
            if len(_plans) >= PLANS:
                _plans.pop(next(iter(_plans)))
            _plans[key] = found
        return found


def _input(value: ir.Value, device: Device) -> Any:
    data = value.node.data
    if data is None:
        raise _differentiating()
    return data.on(device) if isinstance(data, Source) else np.ascontiguousarray(data)
