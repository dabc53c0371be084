"""The gradient of attention by q, by its definition."""

from __future__ import annotations

from typing import Any

from cpu_reference.numpy import flash_attn_backward
from cpu_reference.numpy._common import Array


def reference(q: Array, k: Array, v: Array, dy: Array, *vectors: Array | None, **params: Any) -> Array:
    return flash_attn_backward.reference(q, k, v, dy, *vectors, **params)[0]
