"""Every op as a function on Tensors, generated from the registry: ``fv.ops.softmax_last_dim(x)``.

Inputs come in the order of ops.md, None for an optional one left out; parameters by name. Lazy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fuelvk.base.errors import closest
from fuelvk.graph.registry import find_op, op_names
from fuelvk.graph.types import OpEntry
from fuelvk.tensor.core import apply


def __getattr__(name: str) -> Callable[..., Any]:
    entry = None if name.startswith("_") else find_op(name)
    if entry is None:
        near = "" if name.startswith("_") else closest(name, op_names())
        raise AttributeError(f"fuelvk.ops has no op {name!r}" + (f"; {near}" if near else ""))
    function = globals()[name] = _function(entry)
    return function


def __dir__() -> list[str]:
    return sorted(op_names())


def _function(entry: OpEntry) -> Callable[..., Any]:
    inputs = {a.name for a in entry.args}

    def op(*tensors: Any, **params: Any) -> Any:
        given = list(tensors)
        if any(name in params for name in inputs):
            given += [params.pop(arg.name, None) for arg in entry.args[len(given) :]]
        return apply(entry.name, given, params)

    op.__name__ = op.__qualname__ = entry.name
    op.__doc__ = f"{entry.signature()}\n\n{entry.doc}"
    return op
