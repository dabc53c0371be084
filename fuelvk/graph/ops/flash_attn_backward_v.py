"""FLASH_ATTN_BACKWARD_V: the gradient of attention by v (ops.md section 3)."""

from __future__ import annotations

from fuelvk.graph.ops._attention_backward import gradient_entry
from fuelvk.graph.registry import FusedOps

OP = gradient_entry(FusedOps.FLASH_ATTN_BACKWARD_V)
