"""``fv.profile``: per-kernel times of what runs inside a ``with`` block."""

from __future__ import annotations

from fuelvk.runtime.profile import Profile


def profile() -> Profile:
    """Returns a context manager whose ``rows`` hold op, implementation, revision, claim, calls and nanoseconds."""
    return Profile()
