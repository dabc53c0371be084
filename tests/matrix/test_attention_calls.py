"""What attention promises beyond one call: any batch, any cache, paged or not, memory, faults seen on the device."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.base.dtypes import DType
from fuelvk.base.errors import IndexOutOfRangeError
from fuelvk.kernels._vulkan import narrower_spirv
from fuelvk.runtime.devices import Device, VulkanDevice
from fuelvk.runtime.executor import VulkanProgram
from fuelvk.verify.compare import same_bits
from fuelvk.vulkan.features import CAPABILITY_FEATURES
from tests.matrix.test_portable import bare

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.device
DTYPES = ("f4", "f2")


def draw(seed: int, *shape: int, dtype: str = "f4") -> Array:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def takes(device: Device, dtype: str) -> None:
    if dtype == "f2" and "storage16" not in device.capabilities.features:
        pytest.skip("refused: the device lacks storage16")


def equal(a: Array, b: Array) -> None:
    assert (difference := same_bits(np.asarray(a), np.asarray(b))) is None, difference


# --- one row, any company ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_decode_gives_prefill_bits_over_several_pieces(dtype: str, gpu: VulkanDevice) -> None:
    """One query (its pieces in parallel), eight, and all of them, behind caches of several lengths."""
    takes(gpu, dtype)
    heads = (8, 2, 2) if gpu.vk.caps.subgroup_width >= 8 else (2, 1, 1)  # elsewhere only the slow kernels run
    q, k, v = (draw(i, 1, h, 2100, 32, dtype=dtype) for i, h in enumerate(heads))
    params = {"scale": 0.2, "causal": True}
    rows = (0, 1023, 1024, 2047, 2099)
    whole = fv.call("flash_attn", q, k, v, device=gpu, **params)
    for i in rows:
        one = q[:, :, i : i + 1]
        row = whole[:, :, i : i + 1]
        equal(fv.call("flash_attn", one, k[:, :, : i + 1], v[:, :, : i + 1], device=gpu, **params), row)
        equal(fv.call("flash_attn", one, k, v, device=gpu, k_len=i + 1, **params), row)
        lens = np.array([i + 1], np.uint32)
        equal(fv.call("flash_attn", one, k, v, k_lens=lens, device=gpu, **params), row)


@pytest.mark.parametrize(("heads", "sq"), [((4, 4), 1), ((8, 2), 1), ((8, 1), 3), ((16, 16), 9)])
def test_an_item_alone_is_an_item_in_a_batch(heads: tuple[int, int], sq: int, gpu: VulkanDevice) -> None:
    hq, hkv = heads
    q, k, v = draw(0, 5, hq, sq, 16), draw(1, 5, hkv, 1200, 16), draw(2, 5, hkv, 1200, 16)
    lens = np.array([1200, 7, 1025, 0, 64], np.uint32)
    slopes = draw(3, hq)
    params = {"scale": 0.3, "causal": True, "softcap": 5.0}
    whole = fv.call("flash_attn", q, k, v, slopes, lens, device=gpu, **params)
    for i in range(5):
        item = slice(i, i + 1)
        equal(
            fv.call("flash_attn", q[item], k[item], v[item], slopes, lens[item], device=gpu, **params),
            whole[item],
        )
        group = hq // hkv
        alone = fv.call("flash_attn", q[item, :group], k[item, :1], v[item, :1], slopes[:group], lens[item],
                        device=gpu, **params)  # fmt: skip
        equal(alone, whole[item, :group])


def test_a_growing_cache_replays_one_recording(gpu: VulkanDevice) -> None:
    q, k, v = draw(0, 1, 4, 1, 32), draw(1, 1, 2, 1500, 32), draw(2, 1, 2, 1500, 32)

    def step(q: Any, k: Any, v: Any, lens: Any) -> Any:
        return fv.ops.flash_attn(q, k, v, k_lens=lens, scale=0.2, causal=True)

    compiled = fv.compile(step, device=gpu)
    given = [fv.asarray(x, device=gpu).realize() for x in (q, k, v, np.array([1], np.uint32))]
    buffer = given[3]._value.node.data.on(gpu).buffer
    expected = {n: fv.call("flash_attn", q, k[:, :, :n], v[:, :, :n], device=gpu, scale=0.2, causal=True)
                for n in (1, 64, 65, 1024, 1500)}  # fmt: skip
    for n, want in expected.items():
        gpu.vk.write(buffer, np.array([n], np.uint32))
        equal(compiled(*given).numpy(), want)
    (captured,) = compiled._captured.values()
    program = captured[0]
    assert isinstance(program, VulkanProgram)
    assert len(program._bound) <= 2


# --- paged ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("size", "sq", "d"), [(16, 1, 32), (5, 3, 33), (64, 9, 16), (100, 1, 7)])
def test_paged_is_attention_on_the_gathered_cache(
    size: int, sq: int, d: int, dtype: str, gpu: VulkanDevice, cpu: Device
) -> None:
    takes(gpu, dtype)
    rng = np.random.default_rng(size)
    contexts = [0, 1, size, size + 1, 4 * size, 4 * size - 1]
    q = draw(0, len(contexts), 4, sq, d, dtype=dtype)
    k, v = (draw(i, 9, size, 2, d, dtype=dtype) for i in (1, 2))
    table = rng.integers(0, 9, (len(contexts), 4)).astype(np.uint32)
    table[4] = table[5]  # shared blocks
    for row, n in zip(table, contexts, strict=True):
        row[-(-n // size) :] = 0xFFFFFFFF  # never read
    lens = np.array(contexts, np.uint32)
    slopes = draw(3, 4)
    got = fv.call("paged_attn", q, k, v, table, lens, slopes, scale=0.3, softcap=4.0, device=gpu)
    equal(got, fv.call("paged_attn", q, k, v, table, lens, slopes, scale=0.3, softcap=4.0, device=cpu))
    for b, n in enumerate(contexts):
        at = [(int(table[b, j // size]), j % size) for j in range(n)]
        dense = [
            np.array([cache[place] for place in at], dtype).reshape(n, 2, d).transpose(1, 0, 2)[None]
            for cache in (k, v)
        ]
        item = slice(b, b + 1)
        equal(
            fv.call("flash_attn", q[item], *dense, slopes, scale=0.3, softcap=4.0, causal=True, device=gpu),
            got[item],
        )


# --- faults that only the device sees ---------------------------------------------------------------------------


def _bad_lens(name: str, device: Device) -> Any:
    q, k = draw(0, 2, 2, 3, 8), draw(1, 2, 2, 70, 8)
    inputs = (q, k, k) if name == "flash_attn" else (q, k, k, q)
    lens = np.array([70, 71], np.uint32)
    return fv.call(name, *inputs, k_lens=lens, scale=1.0, device=device)


def _paged(table: list[int], context: int) -> Callable[[Device], Any]:
    def run(device: Device) -> Any:
        q, cache = draw(0, 1, 2, 1, 8), draw(1, 3, 4, 2, 8)
        ids, lens = np.array([table], np.uint32), np.array([context], np.uint32)
        return fv.call("paged_attn", q, cache, cache, ids, lens, scale=1.0, device=device)

    return run


# A call, and the number that the error names.
FAULTS: dict[str, tuple[Callable[[Device], Any], int]] = {
    "k_lens": (lambda d: _bad_lens("flash_attn", d), 71),
    "k_lens_backward": (lambda d: _bad_lens("flash_attn_backward", d), 71),
    "k_lens_backward_v": (lambda d: _bad_lens("flash_attn_backward_v", d), 71),
    "block_id": (_paged([0, 3], 8), 3),
    "block_id_largest": (_paged([0xFFFFFFFF, 1], 1), 0xFFFFFFFE),
    "context": (_paged([0, 1], 9), 9),
    "context_largest": (_paged([0, 1], 0xFFFFFFFF), 0xFFFFFFFE),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_number_on_the_device_is_an_error(fault: str, gpu: VulkanDevice) -> None:
    call, number = FAULTS[fault]
    with pytest.raises(IndexOutOfRangeError, match=f"attn.* is out of range; seen: .*number {number} "):
        call(gpu)
    assert _paged([2, 7], 4)(gpu).shape == (1, 2, 1, 8)  # an entry past the context is no fault


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_number_is_an_error_of_the_c_kernel(fault: str, cpu: Device) -> None:
    with pytest.raises(IndexOutOfRangeError, match="attn.* met an index, length or view outside its array"):
        FAULTS[fault][0](cpu)


# --- subgroups --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lanes", "forward", "backward"), [(4, 4, 0), (8, 8, 8), (16, 8, 8), (32, 32, 32), (64, 32, 32)]
)
def test_wide_subgroups_take_the_widest_kernel_that_fits(lanes: int, forward: int, backward: int) -> None:
    features = frozenset(f for f in CAPABILITY_FEATURES.values() if f) | {"bda"}
    caps = replace(bare("bda"), subgroup_width=lanes, features=features)
    for stem, entry, width in (("subgroups", "attend8", forward), ("weights_subgroups", "weights", backward)):
        shader = narrower_spirv(f"attention/{stem}", entry, dtype=DType.F32)
        assert shader.width(caps) == width if width else isinstance(shader.select(caps), str)


# --- memory -----------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[..., Any]] = {
    "forward": lambda q, k, v: fv.ops.flash_attn(q, k, v, scale=0.25, causal=True),
    "backward": lambda q, k, v: fv.ops.flash_attn_backward(q, k, v, q, scale=0.25, causal=True),
}


def _held(call: Callable[..., Any], length: int, device: VulkanDevice) -> int:
    """Returns the bytes that inputs, outputs and work memory of a call take while all are alive."""
    gc.collect()
    device.vk.idle()
    before = device.vk.memory_statistics.in_use
    compiled = fv.compile(call, device=device)
    given = [fv.asarray(draw(i, 1, 1, length, 16), device=device).realize() for i in range(3)]
    results = compiled(*given)
    for result in results if isinstance(results, tuple) else (results,):
        result.numpy()
    held = device.vk.memory_statistics.in_use - before
    del results, given, compiled
    return held


@pytest.mark.parametrize("name", CALLS)
def test_memory_is_linear_in_the_sequence(name: str, gpu: VulkanDevice) -> None:
    """A matrix of scores of 8192 x 8192 alone would take 256 MiB.

    A driver without subgroups of eight takes minutes for that length: there it is 1024, and 4 MiB.
    """
    longest = 8192 if gpu.vk.caps.subgroup_width >= 8 else 1024
    short, long = (_held(CALLS[name], length, gpu) for length in (longest // 8, longest))
    assert 0 < long <= 8.5 * short
    assert long < min(32 << 20, 2 * longest * longest)
