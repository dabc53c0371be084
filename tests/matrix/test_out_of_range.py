"""Indices that only the device can see: the error word is raised, and no byte outside the output changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import IndexOutOfRangeError
from fuelvk.graph.registry import FusedOps, find_op
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.devices import VulkanDevice
from tests.support.harness import RefusedError, run_impl

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.device
SIZED = (DType.U8, DType.F16, DType.F32, DType.F64)
ENDS = (-1, 5, 2**31 - 1, 2**31, 2**32, 2**32 + 1, -(2**63), 2**63 - 1)


def calls(dtype: DType) -> Iterator[tuple[str, tuple[DType, ...], tuple[Array, ...], dict[str, Any]]]:
    """Yields calls with one index beyond an axis of 5, alone or among good ones."""
    x = np.arange(5 * 77).reshape(5, 77).astype(dtype.numpy)
    for index in (DType.I64, DType.I32, DType.U32):
        low, high = np.iinfo(index.numpy).min, np.iinfo(index.numpy).max
        for bad in (b for b in ENDS if low <= b <= high):
            picks = np.array([0, 4, bad, 1], index.numpy)
            rows = np.broadcast_to(picks[:, None], (4, 77)).copy()
            rows[:, 1:] = 3
            yield "index_select", (dtype, index, dtype), (x, picks), {"axis": 0}
            yield "gather", (dtype, index, dtype), (x, rows), {"axis": 0}
            long = (x.repeat(81, 1), rows.repeat(81, 1))  # by whole rows, eight elements and more at once
            yield "gather", (dtype, index, dtype), long, {"axis": 0}
    dtypes = (dtype, dtype, DType.I64, dtype)
    for bad in (*ENDS, 3):
        for wrap in (False, True) if bad < 0 else (False,):
            yield "write_slice", dtypes, (x, x[:3], np.array([bad])), {"axis": 0, "wrap": wrap}


@pytest.mark.parametrize("dtype", SIZED, ids=lambda d: d.key)
@pytest.mark.parametrize("name", ["index_select", "gather", "write_slice"])
def test_the_error_word_is_raised_and_memory_stays(name: str, dtype: DType, gpu: VulkanDevice) -> None:
    tried = 0
    for op_name, dtypes, inputs, params in calls(dtype):
        if op_name != name:
            continue
        op = find_op(name)
        assert op is not None
        impl = default_kernel_registry().lookup_by_dtypes(op.id, "vulkan", dtypes)
        assert impl is not None
        try:
            with pytest.raises(IndexOutOfRangeError, match=f"{name}: an index .* only the device could see"):
                run_impl(op, "vulkan", impl, inputs, params, gpu)
        except RefusedError as reason:
            pytest.skip(f"refused: {reason}")
        tried += 1
    assert tried


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
@pytest.mark.parametrize("name", ["fused_softmax_cross_entropy", "fused_softmax_cross_entropy_backward"])
def test_a_target_that_is_no_column_raises_the_error_word(name: str, dtype: DType, gpu: VulkanDevice) -> None:
    """Beyond either end of 5 columns, or equal to a column in its low word alone; an ignored target is none of them."""
    backward = name.endswith("backward")
    op = find_op(name)
    assert op is not None
    dtypes = (dtype, DType.I64, DType.F32, *(dtype,) * backward)
    logits = np.arange(4 * 5).reshape(4, 5).astype(dtype.numpy)
    for impl in (
        i for b, i in default_kernel_registry().impls_for(op.id) if b == "vulkan" and i.dtypes == dtypes
    ):
        for reduction in ("mean", "sum", "none"):
            g = np.ones((4,) if reduction == "none" else (), np.float32)
            for bad in (None, *ENDS):
                targets = np.array([0, 4 if bad is None else bad, -100, 1])
                inputs, params = (
                    (logits, targets, *(g,) * backward),
                    {"reduction": reduction, "ignore_index": -100},
                )
                try:
                    if bad is None:
                        run_impl(op, "vulkan", impl, inputs, params, gpu)
                    else:
                        with pytest.raises(
                            IndexOutOfRangeError, match=f"{name}: an index .* only the device could see"
                        ):
                            run_impl(op, "vulkan", impl, inputs, params, gpu)
                except RefusedError as reason:
                    pytest.skip(f"refused: {reason}")


def test_a_start_out_of_range_changes_nothing_else(gpu: VulkanDevice) -> None:
    """The result is void and says so on every read; x, update and later calls are as they were."""
    x, update = fv.asarray(np.zeros((6, 5), np.float32)), fv.asarray(np.ones((2, 5), np.float32))
    step = fv.compile(lambda a, b, at: fv.ops.write_slice(a, b, at, axis=0), device=gpu)
    for _ in range(2):
        void = step(x, update, fv.asarray(np.array([5])))
        for _ in range(2):
            with pytest.raises(IndexOutOfRangeError, match="write_slice"):
                void.numpy()
        want = np.zeros((6, 5), np.float32)
        assert np.array_equal(x.numpy(), want)
        want[4:] = 1
        assert np.array_equal(step(x, update, fv.asarray(np.array([4]))).numpy(), want)


def test_a_rotating_cache_replays_one_recording(gpu: VulkanDevice) -> None:
    """Positions that only grow land at their remainder; each step replays the program of the first."""
    step = fv.compile(lambda a, b, at: fv.ops.write_slice(a, b, at, axis=1, wrap=True), device=gpu)
    cache = fv.asarray(np.zeros((2, 7, 4), np.float32), device=gpu)
    want, rng = np.zeros((2, 7, 4), np.float32), np.random.default_rng(5)
    for start in (0, 3, 6, 9, 12, 7 * 10**12 + 5):
        update = rng.standard_normal((2, 3, 4), dtype=np.float32)
        want[:, (start + np.arange(3)) % 7] = update
        cache = step(cache, update, np.array([start]))
        assert np.array_equal(cache.numpy(), want)
    assert len(step._captured) == 1


def test_the_c_kernels_name_op_axis_index_and_bound(cpu: Any) -> None:
    """The same mistakes in a lazy tensor on the CPU: nothing of the C call shows."""
    x = fv.asarray(np.ones((4, 3), np.float32), device=cpu)
    for result, match in (
        (lambda: fv.ops.index_select(x, fv.asarray(np.array([1, 9]), device=cpu), axis=-1),
         r"index_select: an index is out of range of axis 1; seen: indices\[1\] is 9; allowed: 0 to 2"),
        (lambda: fv.ops.gather(x, fv.asarray(np.full((2, 3), -2), device=cpu), axis=0),
         r"gather: an index is out of range of axis 0; seen: indices\[0, 0\] is -2; allowed: 0 to 3"),
        (lambda: fv.ops.write_slice(x, x[:2], fv.asarray(np.array([3]), device=cpu), axis=0),
         r"write_slice: position is out of range of axis 0; seen: position 3; allowed: 0 to 2"),
        (lambda: fv.ops.fused_softmax_cross_entropy(x, fv.asarray(np.array([0, 1, 3, 2]), device=cpu)),
         r"fused_softmax_cross_entropy: a target is no column; seen: targets\[2\] is 3; allowed: 0 to 2, or ignore_index"),
    ):  # fmt: skip
        with pytest.raises(IndexOutOfRangeError, match=match):
            result().numpy()


@pytest.mark.parametrize(("block", "named"), [(6, "6"), (2**32 - 2, "4294967294"), (2**32 - 1, "4294967295")])
def test_a_block_id_is_named_as_it_was_given(block: int, named: str, gpu: VulkanDevice) -> None:
    q, cache = np.ones((1, 1, 1, 4), np.float32), np.ones((2, 4, 1, 4), np.float32)
    table, lens = np.array([[block]], np.uint32), np.array([3], np.uint32)
    impl = default_kernel_registry().lookup_by_dtypes(
        FusedOps.PAGED_ATTN, "vulkan", (*(DType.F32,) * 3, DType.U32, DType.U32, DType.F32, DType.F32)
    )
    op = find_op("paged_attn")
    assert impl is not None
    assert op is not None
    try:
        with pytest.raises(IndexOutOfRangeError, match=rf"number .*\b{named}\b"):
            run_impl(op, "vulkan", impl, (q, cache, cache, table, lens, None), {"scale": 1.0}, gpu)
    except RefusedError as reason:
        pytest.skip(f"refused: {reason}")
