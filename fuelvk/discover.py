"""How op files become table rows: a file in the right folder is found, not listed."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import Any

from fuelvk.base.errors import RegistryError


def collect(package: ModuleType, attribute: str) -> list[Any]:
    """Returns ``attribute`` of each module of ``package`` in name order; tuples are flattened.

    Modules whose name starts with "_" are helpers and are skipped. A public module without the attribute is an
    error, so that a typo cannot hide an op.
    """
    found: list[Any] = []
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        if not hasattr(module, attribute):
            raise RegistryError(
                f"{module.__name__} defines no {attribute}",
                hint=f"add it, or name the file _{info.name}.py if it is a helper",
            )
        value = getattr(module, attribute)
        found.extend(value if isinstance(value, tuple) else (value,))
    return found
