"""Holds kernels to their claims: comparison, oracles, inputs, protocols, reports. ``fv.verify(...)`` runs it.

The package is itself the function: ``fv.verify("exp")`` is ``fuelvk.verify.runner.verify("exp")``, and
``fuelvk.verify.compare`` and its other modules are reached as usual.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuelvk.evidence import Record


class _Callable(ModuleType):
    """A module that can be called."""

    def __call__(self, *arguments: Any, **options: Any) -> tuple[Record, ...]:
        """Returns a record for every claim tried; see ``fuelvk.verify.runner.verify``."""
        from fuelvk.verify.runner import verify

        return verify(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
