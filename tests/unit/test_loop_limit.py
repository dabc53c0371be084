"""Drivers that end an invocation's loops: told by their version, and kept away from kernels that would be cut."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fuelvk.base.dtypes import DType
from fuelvk.graph.registry import FusedOpId, FusedOps
from fuelvk.kernels.ops._attention import block_steps, enough_workers
from fuelvk.registry import default_kernel_registry
from fuelvk.vulkan.capabilities import Capabilities, loop_limit
from tests.matrix.test_portable import bare


@pytest.mark.parametrize(
    ("driver", "info", "limit"),
    [
        (13, "Mesa 22.3.6 (LLVM 15.0.6)", 65535),
        (13, "Mesa 24.2.8-1 (LLVM 19.1.7)", 65535),
        (13, "Mesa 25.0.7-2~bpo12+1 (LLVM 15.0.6)", 0),
        (13, "something else", 65535),
        (3, "Mesa 22.3.6", 0),
    ],
)
def test_limit_of_a_driver(driver: int, info: str, limit: int) -> None:
    seen: Any = SimpleNamespace(driver_id=driver, driver_info=info)
    assert loop_limit(seen) == limit


def test_long_rows_are_refused_where_they_would_be_cut() -> None:
    kernel = default_kernel_registry().lookup_by_dtypes(FusedOps.SOFTMAX_LAST_DIM, "vulkan", (DType.F32,) * 2)
    assert kernel is not None
    cut: Capabilities = replace(bare("ssbo"), loop_iterations=65535)
    assert kernel.admits(((1, 1_000_000), (1, 1_000_000)), {}, cut) is None
    assert "ends them after 65535" in str(kernel.admits(((1, 2_000_000), (1, 2_000_000)), {}, cut))
    assert kernel.admits(((1, 2_000_000), (1, 2_000_000)), {}, bare("ssbo")) is None


@pytest.mark.parametrize("op", [FusedOps.FLASH_ATTN, FusedOps.PAGED_ATTN, FusedOps.FLASH_ATTN_BACKWARD_K])
def test_long_caches_are_refused_where_they_would_be_cut(op: FusedOpId) -> None:
    """A million keys by every kernel of attention."""
    shapes = {
        FusedOps.FLASH_ATTN: (
            (1, 1, 1, 64),
            (1, 1, 1 << 20, 64),
            (1, 1, 1 << 20, 64),
            None,
            None,
            (1, 1, 1, 64),
        ),
        FusedOps.PAGED_ATTN: (
            (1, 1, 1, 64),
            (4, 16, 1, 64),
            (4, 16, 1, 64),
            (1, 1 << 16),
            (1,),
            None,
            (1, 1, 1, 64),
        ),
    }.get(
        op,
        (
            (1, 1, 1, 64),
            (1, 1, 1 << 20, 64),
            (1, 1, 1 << 20, 64),
            (1, 1, 1, 64),
            None,
            None,
            (1, 1, 1 << 20, 64),
        ),
    )
    params = {"causal_offset": None}
    on_vulkan = [
        i for b, i in default_kernel_registry().impls_for(op) if b == "vulkan" and i.dtypes[0] is DType.F32
    ]
    portable = on_vulkan[-1]
    cut = replace(bare("bda"), loop_iterations=65535)
    assert portable.admits(shapes, params, bare("bda")) is None
    assert "ends them after 65535" in str(portable.admits(shapes, params, cut))


def test_attention_shares_its_tiles_among_more_workers() -> None:
    cut, steps = replace(bare("ssbo"), loop_iterations=65535), 33 * block_steps(32)
    workers = enough_workers(cut, 32, 2100, steps)
    assert -(-2100 // workers) * steps <= 65535
    assert enough_workers(bare("ssbo"), 32, 2100, steps) == 32
