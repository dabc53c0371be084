"""Arrays beyond the reach of 32-bit indices: the boxes they are cut into, with the reach lowered to a few hundred.

What decides the bytes is index arithmetic on 64-bit offsets, which is the same at any size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import OutOfDeviceMemoryError
from fuelvk.base.shapes import Layout
from fuelvk.kernels._vulkan import VulkanContext
from fuelvk.kernels.ops import _ranges
from fuelvk.runtime.devices import Device, VulkanDevice
from tests.matrix.test_strided_primitives import agree, impl_of
from tests.support.launch import Recording

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.device
REACH = 700
DTYPES = (DType.U8, DType.F16, DType.F32, DType.F64)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ranges, "MOST", REACH)


def views(dtype: DType) -> Iterator[tuple[str, Array]]:
    """Views that reach far in one axis or another, forwards and backwards."""
    base = np.random.default_rng(4).integers(1, 100, 9000).astype(dtype.numpy)
    yield "line", base[3:4500]
    yield "backwards", base[4500:3:-1]
    yield "gaps", base[1:8992:7]
    yield "turned", base[:7200].reshape(60, 120).T
    yield "turned_back", base[5:7205].reshape(2, 60, 60).transpose(2, 0, 1)[::-1, :, ::-2]
    yield "repeated", np.broadcast_to(base[7:24], (40, 3, 17))
    yield "far_apart", base[:9000].reshape(3, 3000)[:, 1:2]
    yield "eight_axes", base[: 3 * 2**6 * 18].reshape(3, 2, 2, 2, 2, 2, 2, 18)[..., ::-5]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.key)
@pytest.mark.parametrize("view", [name for name, _ in views(DType.F32)])
@pytest.mark.usefixtures("short")
def test_boxes_give_the_same_bytes(view: str, dtype: DType, gpu: VulkanDevice, cpu: Device) -> None:
    x = dict(views(dtype))[view]
    other = dict(views(dtype))["line"][: x.shape[-1]]
    mask = np.resize(np.array([True, False, False, True, True]), x.shape)[..., ::-1]
    last = x.ndim - 1
    same = (dtype, dtype)
    agree("copy", same, (x,), {}, gpu, cpu)
    agree("flip", same, (x,), {"axes": (0, last) if last else 0}, gpu, cpu)
    agree("roll", same, (x,), {"shifts": 3, "axes": last}, gpu, cpu)
    agree("pad", same, (x,), {"pads": ((1, 2),) * x.ndim if x.ndim < 4 else ((0, 1),) * 8}, gpu, cpu)
    agree("concat", same, (x, x[::-1]), {"axis": last}, gpu, cpu)
    agree("masked_fill", (dtype, DType.BOOL, dtype), (x, mask), {"value": 7}, gpu, cpu)
    agree("where", (DType.BOOL, *same, dtype), (mask, x, other), {}, gpu, cpu)
    agree("less", (*same, DType.BOOL), (x, other), {}, gpu, cpu)
    agree("add", (*same, dtype), (other, x), {}, gpu, cpu)
    agree("neg" if dtype is not DType.U8 else "abs", same, (x,), {}, gpu, cpu)
    dense = np.ascontiguousarray(x)
    for target in (DType.F32, DType.U8, DType.I64):
        agree("cast", (dtype, target), (dense,), {"dtype": target}, gpu, cpu)


def test_boxes_cover_every_element_once_and_stay_in_reach(
    short: None, gpu: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offsets of 2^40 and more, as buffers of terabytes would have them: counted, not moved."""

    class Far:
        """A buffer that is only asked where it lies."""

        def __init__(self, nbytes: int, start: int = 0) -> None:
            self.nbytes = nbytes
            self.start = start

        def view(self, offset: int, nbytes: int) -> Far:
            assert offset >= 0 and offset + nbytes <= self.nbytes
            return Far(nbytes, self.start + offset)

    class Context:
        caps = gpu.vk.caps

    for shape, strides, offset, size in (
        ((5000,), (1,), 2**40, 1),
        ((70, 30), (30, 1), 2**41 + 3, 4),
        ((70, 30), (2**33, 1), 5, 2),
        ((70, 30), (-(2**33), 2**35), 2**41, 8),
        ((6, 0 + 1, 400), (2**34, 9, -3), 2**36, 4),
    ):
        layout, target = Layout(shape, strides, offset), Layout.of(shape)
        buffers: Any = (Far(2**44), Far(target.elements * size))
        seen: list[tuple[int, int]] = []
        for part, (x, y), (source, place) in _ranges.boxes(
            Context(),  # type: ignore[arg-type]
            shape,
            buffers,
            (layout, target),
            (size, size),
        ):
            assert int(np.prod(part)) <= REACH
            for index in np.ndindex(*part):
                at, to = (v.offset + int(np.dot(index, np.array(v.strides, object))) for v in (source, place))
                assert 0 <= at <= REACH and 0 <= to <= REACH
                assert x.start % 256 == 0 and y.start % 256 == 0
                seen.append((x.start // size + at, y.start // size + to))
        want = [
            (offset + int(np.dot(index, np.array(strides, object))), number)
            for number, index in enumerate(np.ndindex(*shape))
        ]
        assert sorted(seen, key=lambda pair: pair[1]) == want


@pytest.mark.slow
def test_more_than_two_to_the_31_elements(gpu: VulkanDevice) -> None:
    """A reversed copy of 2 GiB and a little more; some 3 GB of memory where pages not written to cost none."""
    count = 2**31 + 12345
    impl = impl_of("copy", (DType.U8, DType.U8))
    if impl.admits(((count,), (count,)), {}, gpu.capabilities) is not None:
        pytest.skip("no 8-bit storage")
    marks = [0, 1, 2**31 - 2**24 - 1, 2**31 - 2**24, 2**31 - 1, 2**31, 2**31 + 1, count - 1]
    launch = Recording(gpu.vk)
    try:
        source, target = gpu.vk.alloc(count), gpu.vk.alloc(count)
    except OutOfDeviceMemoryError as error:
        pytest.skip(str(error))
    for number, mark in enumerate(marks):
        gpu.vk.write(source, bytes([number + 1]), mark)
    views = [Layout((count,), (-1,), count - 1), Layout.of((count,))]
    impl.kernel([source], [target], views, {}, VulkanContext(launch, "copy"))
    gpu.vk.wait(gpu.vk.submit(launch.recorder.finish()))
    got = [bytes(gpu.vk.read(target, 1, count - 1 - mark))[0] for mark in marks]
    source.free()
    target.free()
    gpu.vk.memory.trim()
    assert got == list(range(1, 9))
