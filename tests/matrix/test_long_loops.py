"""Work of more loop iterations than some drivers grant an invocation: shared out, cut into runs, or refused.

``test_as_long_as_it_gets`` means most on a driver that ends loops; the others lower the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fuelvk.base.dtypes import DType
from fuelvk.kernels._vulkan import VulkanContext
from fuelvk.runtime.devices import Device, VulkanDevice
from tests.matrix.test_strided_primitives import agree, entry_named, impl_on

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.device
RNG = np.random.default_rng(30)
F32, I64 = DType.F32, DType.I64
Long = tuple[str, tuple[DType, ...], tuple[Array, ...], dict[str, Any]]
Limited = tuple[int, Long]


def numbers(*shape: int) -> Array:
    return RNG.integers(-9, 10, shape).astype(np.float32)


def shared_out() -> Iterator[Limited]:
    """Limits, and calls that are taken to need more iterations in fewer invocations than they could have."""
    picks = RNG.integers(0, 7, 5000)
    yield 600, ("scatter_add", (F32, I64, F32, F32), (numbers(7), picks, numbers(5000)), {"axis": 0})
    yield 600, ("index_add", (F32, I64, F32, F32), (numbers(7, 3), picks, numbers(5000, 3)), {"axis": 0})
    yield 200, ("copy", (F32, F32), (numbers(40000, 131)[:, 1:],), {})
    yield 50, ("copy", (F32, F32), (numbers(3000, 700).T,), {})
    yield 600, ("reduce_max_to_backward", (F32,) * 3, (numbers(1500, 70), numbers(1, 70)), {})
    yield 600, ("argmax", (F32, I64), (numbers(700, 1100),), {"axis": 0})
    yield 300, ("matmul", (F32,) * 3, (numbers(700, 640), numbers(640, 64)), {})


@pytest.mark.parametrize("limited", tuple(shared_out()), ids=lambda c: f"{c[1][0]}-{c[1][2][0].shape}")
def test_a_low_limit_gives_the_same_bytes(
    limited: Limited, monkeypatch: pytest.MonkeyPatch, gpu: VulkanDevice, cpu: Device
) -> None:
    limit, (name, dtypes, inputs, params) = limited
    workers = [0]
    stems: set[str] = set()
    dispatch = VulkanContext.dispatch

    def counted(
        self: VulkanContext, shader: Any, groups: tuple[int, int, int], *args: Any, **more: Any
    ) -> None:
        workers[-1] += int(np.prod(groups))
        stems.add(shader.stem)
        dispatch(self, shader, groups, *args, **more)

    monkeypatch.setattr(VulkanContext, "dispatch", counted)
    agree(name, dtypes, inputs, params, gpu, cpu)
    if stems & {"movement/copy", "matmul/tiles"} and name in ("copy", "matmul"):
        pytest.skip("by a kernel without long loops")
    # How many iterations the whole work takes depends on the subgroups' width: lower until they are too many.
    for lowered in (limit, limit // 2, limit // 4):
        workers.append(0)
        monkeypatch.setattr(gpu.vk, "caps", replace(gpu.vk.caps, loop_iterations=lowered))
        agree(name, dtypes, inputs, params, gpu, cpu)
        if workers[-1] > workers[0]:
            return
    pytest.fail(f"no more workers under a lower limit: {workers}")


@pytest.mark.parametrize(
    ("name", "dtypes", "shapes", "params"),
    [
        ("matmul", (F32,) * 3, ((2, 600_000), (600_000, 2), (2, 2)), {}),
        ("reduce_max_to_backward", (F32,) * 3, ((1 << 22,), (1,), (1 << 22,)), {}),
        (
            "fused_softmax_cross_entropy",
            (F32, I64, F32),
            ((3_000_000, 2), (3_000_000,), ()),
            {"reduction": "sum"},
        ),
        (
            "fused_softmax_cross_entropy_backward",
            (F32, I64, F32, F32),
            ((3_000_000, 2), (3_000_000,), (), (3_000_000, 2)),
            {"reduction": "sum"},
        ),
        (
            "max_pool2d",
            (F32, F32),
            ((1, 200, 200), (1, 1, 1)),
            {"kernel": (200, 200), "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1)},
        ),
        (
            "resize2d_backward",
            (F32, F32),
            ((1, 300, 300), (1, 1, 1)),
            {"size": (300, 300), "mode": "linear", "coordinates": "half_pixel"},
        ),
    ],
)
def test_what_cannot_be_shared_out_is_refused(
    name: str,
    dtypes: tuple[DType, ...],
    shapes: tuple[tuple[int, ...], ...],
    params: Mapping[str, Any],
    gpu: VulkanDevice,
) -> None:
    cut = replace(gpu.capabilities, loop_iterations=65535)
    free = replace(gpu.capabilities, loop_iterations=0)
    impl = impl_on(free, name, dtypes, shapes, params)
    reason = impl.admits(shapes, params, free)
    if reason is not None and "lacks" in reason:
        pytest.skip(reason)
    assert reason is None
    assert "ends them after 65535" in str(impl.admits(shapes, params, cut))


def longest() -> Iterator[Long]:
    picks = RNG.integers(0, 7, 150_000)
    yield "scatter_add", (F32, I64, F32, F32), (numbers(7), picks, numbers(150_000)), {"axis": 0}
    yield "matmul", (F32,) * 3, (numbers(20, 70_000), numbers(70_000, 70)), {}
    yield "matmul", (F32,) * 3, (numbers(2, 200_000), numbers(200_000, 3)), {}
    yield "cumsum", (F32, F32), (numbers(300_000),), {"axis": 0}
    yield "argmin", (F32, I64), (numbers(16_000, 1100),), {"axis": 0}
    yield "sum", (F32, F32), (numbers(300_000, 3),), {"axes": (0,)}
    yield "reduce_max_to_backward", (F32,) * 3, (numbers(100_000, 70), numbers(1, 70)), {}


@pytest.mark.parametrize("call", tuple(longest()), ids=lambda c: f"{c[0]}-{c[2][0].shape}")
def test_as_long_as_it_gets(call: Long, gpu: VulkanDevice, cpu: Device) -> None:
    name, dtypes, inputs, params = call
    assert entry_named(name)
    agree(name, dtypes, inputs, params, gpu, cpu)
