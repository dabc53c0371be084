"""Drivers that end the loops of an invocation after so many iterations, all its loops together.

Results are then left unwritten, without an error, so that a kernel shares its work among more invocations there, cuts
it into more dispatches, or is refused with the reason, whereupon another kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fuelvk.kernels.types import Admits, Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Capabilities

# Of what a driver grants, for the loops a caller does not count (a tree's, a prologue's).
_SPARE = 8


def most_iterations(caps: Capabilities, wanted: int) -> int:
    """Returns ``wanted`` iterations, or as many as a driver that ends loops safely grants an invocation."""
    limit = caps.loop_iterations
    return min(wanted, limit - limit // _SPARE) if limit else wanted


def enough_groups(caps: Capabilities, wanted: int, units: int, steps: int) -> int:
    """Returns ``wanted`` workers, or more where a driver would end the loops of those that take ``steps`` a unit."""
    return max(wanted, -(-units * steps // most_iterations(caps, max(units * steps, 1))))


def too_many_iterations(capabilities: Any, iterations: int) -> str | None:
    """Returns why a device that ends long loops refuses ``iterations`` of one invocation, None where it does not."""
    limit = capabilities.loop_iterations
    if not limit or iterations < limit:
        return None
    return f"{iterations} loop iterations of an invocation; this driver ends them after {limit}"


def within_loops(iterations: Callable[[Shapes, Mapping[str, Any]], int]) -> Admits:
    """Returns the ``admits`` of a kernel of which an invocation loops so often, from the shapes and parameters."""

    def admits(shapes: Shapes, params: Mapping[str, Any], capabilities: Any) -> str | None:
        if not capabilities.loop_iterations:
            return None
        return too_many_iterations(capabilities, iterations(shapes, params))

    return admits
