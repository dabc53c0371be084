"""``fv.call``: one op on NumPy arrays, NumPy out. The second identical call only writes, submits and waits."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import UnknownNameError, closest
from fuelvk.graph import ir
from fuelvk.graph.registry import find_op, op_names
from fuelvk.graph.types import FusedOpId, OpEntry, Params, PrimitiveId, ValueCheck
from fuelvk.kernels.types import BackendId, FusedKernelRegistry
from fuelvk.optimizer import tolerance as tolerances
from fuelvk.optimizer.lower import lower
from fuelvk.optimizer.tolerance import Tolerance
from fuelvk.runtime.devices import Device
from fuelvk.runtime.devices import device as find_device
from fuelvk.runtime.executor import Program, program
from fuelvk.tensor.inputs import Array, as_array

PROGRAMS = 4096

_lock = threading.RLock()
_Prepared = tuple[Program, tuple[int, ...], ValueCheck | None, Params]
_programs: dict[Any, _Prepared] = {}


def call(
    op: str | FusedOpId | PrimitiveId | OpEntry,
    *inputs: Any,
    backend: str | BackendId | None = None,
    device: str | Device | None = None,
    tolerance: Tolerance | None = None,
    kernels: FusedKernelRegistry | None = None,
    **params: Any,
) -> Any:
    """Runs one op and returns its result as a NumPy array that owns its memory (a tuple for several outputs).

    ``inputs`` are anything NumPy or DLPack turns into a supported dtype, in the op's order, None for an optional one
    left out; they are never written to. ``backend`` ("vulkan" or "cpu") admits that backend's kernels only;
    ``device`` is a device or its name. ``kernels`` is a registry of one's own to choose among, ``op`` may then be the
    entry of an op of one's own. Raises UnknownNameError, ShapeError, DTypeError, ParameterError before
    anything runs (and IndexOutOfRangeError for an index among them), UnsupportedError when no implementation takes
    the call.
    """
    arrays = [
        x if x is None or (type(x) is np.ndarray and x.dtype.isnative) else as_array(x, f"input {i}")
        for i, x in enumerate(inputs)
    ]
    effective = tolerances.effective(tolerance)
    try:
        key = (
            op,
            tuple([None if a is None else (a.shape, a.dtype) for a in arrays]),
            tuple(params.items()),
            backend,
            device,
            effective,
            kernels,
            os.environ.get("FUELVK_DEVICE"),
            os.environ.get("FUELVK_TRUST"),
            os.getpid(),
        )
        found = _programs.get(key)
    except TypeError:
        key, found = None, None
    if found is None or not found[0].device.usable:
        found, arrays = _prepare(op, arrays, backend, device, effective, kernels, params, key)
    runner, used, value_check, checked = found
    if value_check is not None:
        value_check(arrays, checked)
    results = runner.run([_dense(arrays[i]) for i in used])
    host = [r.numpy() for r in results]
    return host[0] if len(host) == 1 else tuple(host)


def _dense(array: Any) -> Array:
    return array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(array.shape)


def _prepare(
    op: Any,
    arrays: list[Any],
    backend: Any,
    device: Any,
    tolerance: Tolerance,
    kernels: FusedKernelRegistry | None,
    params: dict[str, Any],
    key: Any,
) -> tuple[_Prepared, list[Any]]:
    entry = entry_named(op)
    chosen_backend = _backend(backend)
    bound, converted = entry.bind(arrays, params)
    bound = tuple(None if x is None else as_array(x, f"{entry.name} input {i}") for i, x in enumerate(bound))
    if chosen_backend is BackendId.CPU and device is None:
        device = "cpu"
    target_device = find_device(device)
    if chosen_backend is BackendId.VULKAN and target_device.backend is not BackendId.VULKAN:
        target_device = find_device("vulkan:0")
    values = tuple(None if x is None else ir.leaf(None, x.shape, DType.of(x)) for x in bound)
    outputs = ir.apply(entry, values, converted)
    leaves = [v for v in values if v is not None]
    plan = lower(outputs, leaves, target_device.target(chosen_backend, kernels), tolerance, fusing=False)
    used = tuple(i for i, x in enumerate(bound) if x is not None)
    found = (program(plan, target_device), used, entry.value_check, converted)
    named_inputs = any(a.name in params for a in entry.args)
    if key is not None and not named_inputs and len(arrays) == len(bound):
        if len(_programs) >= PROGRAMS:
            _programs.clear()
        _programs[key] = found
    return found, list(bound)


def entry_named(op: str | FusedOpId | PrimitiveId | OpEntry) -> OpEntry:
    """Returns the op an id or a name (any case) stands for, an entry itself; raises UnknownNameError with the closest
    names.
    """
    if isinstance(op, OpEntry):
        return op
    if not isinstance(op, str | FusedOpId | PrimitiveId):
        raise UnknownNameError(
            "an op is named by a string or an id", asked=repr(op), hint="fuelvk ops lists them"
        )
    name = op if isinstance(op, str) else op.name
    entry = find_op(name.lower())
    if entry is None:
        raise UnknownNameError(
            "unknown op" if isinstance(op, str) else "this op has no entry yet",
            asked=name,
            hint=closest(name, op_names()) or "fuelvk ops lists them",
        )
    return entry


def _backend(backend: Any) -> BackendId | None:
    if backend is None:
        return None
    try:
        return BackendId(str(backend).lower())
    except ValueError:
        known = [b.value for b in BackendId]
        raise UnknownNameError(
            "unknown backend",
            asked=backend,
            allowed=", ".join(known),
            hint=closest(str(backend), known) or None,
        ) from None
