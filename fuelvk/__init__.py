"""fuelvk: a Vulkan-first GPU compute runtime whose kernels state how exact they are.

The public names are loaded on first use, so that ``import fuelvk`` needs no Vulkan loader, does no device work
and stays quick.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "devices": "fuelvk.runtime.devices",
    "device": "fuelvk.runtime.devices",
    "call": "fuelvk.tensor",
    "ops": "fuelvk.ops",
    "Tensor": "fuelvk.tensor",
    "asarray": "fuelvk.tensor",
    "from_dlpack": "fuelvk.tensor",
    "compile": "fuelvk.tensor",
    "grad": "fuelvk.tensor",
    "Tolerance": "fuelvk.optimizer.tolerance",
    "explain": "fuelvk.tensor",
    "profile": "fuelvk.tensor",
    "verify": "fuelvk.verify",
    "DType": "fuelvk.base.dtypes",
    "FuelvkError": "fuelvk.base.errors",
}

__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'fuelvk' has no attribute {name!r}")
    module = importlib.import_module(home)
    value = module if name in ("ops", "verify") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
