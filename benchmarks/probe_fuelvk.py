"""fuelvk's own figures: ``python -m benchmarks.probe_fuelvk [--quick] [FIGURE...]``; JSON lines on stdout."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import FUNCTIONS
from benchmarks.peers import timing
from benchmarks.peers.timing import emit, median, wants

SENTENCES = Path(__file__).resolve().parent.parent / "ci" / "sentences.txt"
KERNELS = 1000
#: Replays submitted before one is waited for, when Python's part is measured.
IN_FLIGHT = 6
#: What Python costs is the calling thread's own processor time: the driver's threads run on the same cores.
PYTHON_CLOCK = time.thread_time


def main() -> None:
    """Prints every figure that was asked for."""
    device = _start()
    for figures, measure in _GROUPS:
        if wants(*figures):
            measure(device)


def _start() -> Any:
    start = time.perf_counter()
    import fuelvk as fv

    bare = time.perf_counter()
    fv.call  # noqa: B018  (loads what the public names stand for)
    loaded = time.perf_counter()
    device = fv.device()
    opened = time.perf_counter()
    emit(version=fv.__version__, device=device.name)
    emit(
        import_ms=(bare - start) * 1e3,
        import_all_ms=(loaded - start) * 1e3,
        device_ms=(opened - loaded) * 1e3,
        init_ms=(opened - start) * 1e3,
    )
    return device


def _resident(array: np.ndarray[Any, Any], device: Any) -> Any:
    """Returns a Tensor whose elements are on the device."""
    import fuelvk as fv

    tensor = fv.asarray(array, device=device).realize()
    tensor._value.node.data.on(device)
    return tensor


def _wait(tensor: Any) -> None:
    """Returns when the device has computed a tensor; nothing is read back."""
    realized = tensor.realize()
    realized._value.node.data.on(realized.device).wait()


def _waited(function: Callable[..., Any], device: Any, *inputs: Any) -> Callable[[], None]:
    """Returns a call that replays the captured function on resident inputs and waits."""
    import fuelvk as fv

    compiled = fv.compile(function, device=device)
    return lambda: _wait(compiled(*inputs))


def round_trip(device: Any) -> None:
    import fuelvk as fv

    a, b = timing.small()
    left, right = _resident(a, device), _resident(b, device)

    def resident() -> Any:
        return (left + right).numpy()

    timing.check_sum(resident(), a, b)
    emit(rt_us=median(resident, 200) * 1e6)
    emit(rt_up_us=median(lambda: fv.call("add", a, b), 200) * 1e6)


def replay(device: Any) -> None:
    """1,000 additions that depend on each other, one workgroup each: completion, then Python's part."""
    import fuelvk as fv

    left, right = (_resident(array, device) for array in timing.small())

    def chain(x: Any, y: Any) -> Any:
        for _ in range(KERNELS):
            x = x + y
        return x

    compiled = fv.compile(chain, device=device)
    for _ in range(3):
        _wait(compiled(left, right))
    emit(replay1000_ms=median(lambda: _wait(compiled(left, right)), 60) * 1e3)
    calls = []
    for _ in range(8 if timing.QUICK else 30):
        start = PYTHON_CLOCK()
        results = [compiled(left, right) for _ in range(IN_FLIGHT)]
        calls.append((PYTHON_CLOCK() - start) / IN_FLIGHT)
        for result in results:
            _wait(result)
        del results, result
    emit(replay1000_python_us=statistics.median(calls[2:]) * 1e6)
    _recording(device, compiled, left, right)


def _recording(device: Any, compiled: Any, left: Any, right: Any) -> None:
    """The Python cost of recording: of the command recorder alone, and of the whole plan."""
    from fuelvk.runtime.devices import VulkanDevice

    if not isinstance(device, VulkanDevice):
        return
    program = next(iter(compiled._captured.values()))[0]

    def bind() -> None:
        program.forget_recordings()
        compiled(left, right)

    emit(bind_us=median(bind, 9, clock=PYTHON_CLOCK) / KERNELS * 1e6)
    _command_recording(device)


def _command_recording(device: Any) -> None:
    """The command recorder alone, on an addition of three buffers; recorded, not run."""
    from fuelvk.shaderbuild import load_manifest

    stem, entry = "pointwise/binary", "add_flat"
    variant = load_manifest().variant(stem, dtype="f32", shape="small", mode=device.vk.caps.addressing)
    push = variant.entries[entry].push_size
    pipeline = device.vk.pipeline(f"bench {variant.name}", variant.spirv, entry, 3, push)
    buffers = [device.vk.alloc(4 * timing.SMALL) for _ in range(3)]
    params = bytes(push - 8 * len(buffers))

    def record() -> None:
        recorder = device.vk.recorder("bench")
        dispatch = recorder.dispatch
        for _ in range(KERNELS):
            dispatch(pipeline, (1, 1, 1), buffers, 0b100, params, "bench")
        recorder.finish()

    emit(record_us=median(record, 9, clock=PYTHON_CLOCK) / KERNELS * 1e6)


def bandwidth(device: Any) -> None:

    x, y = timing.big()
    left, right = _resident(x, device), _resident(y, device)
    add = _waited(lambda a, b: a + b, device, left, right)
    emit(add16m_gbs=timing.gbs(12 * timing.BIG, median(add, 9)))
    emit(up_gbs=timing.gbs(4 * timing.BIG, median(lambda: _resident(x, device), 5)))
    emit(down_gbs=timing.gbs(4 * timing.BIG, median(left._value.node.data.on(device).numpy, 5)))


def reductions(device: Any) -> None:
    """Each against a device copy of the same size in the same run: bytes read and written a second."""
    import fuelvk as fv

    x = timing.square()
    given = _resident(x, device)
    copied = 2 * x.nbytes / median(_waited(fv.ops.copy, device, given), 9)

    def share(function: Callable[..., Any], read: int = x.nbytes) -> float:
        return read / median(_waited(function, device, given), 9) / copied

    emit(sum_rows_share=share(lambda t: fv.ops.sum(t, axes=(1,))))
    emit(sum_columns_share=share(lambda t: fv.ops.sum(t, axes=(0,))))
    emit(sum_all_share=share(fv.ops.sum))
    emit(
        argmax_ms=median(_waited(lambda t: fv.ops.argmax(t, axis=1), device, given), 5) * 1e3,
        cumsum_ms=median(_waited(lambda t: fv.ops.cumsum(t, axis=1), device, given), 5) * 1e3,
    )


MOVEMENT = (
    "copy_gbs", "mul16m_gbs", "relu16m_gbs", "transpose_gbs", "flip_gbs", "roll_gbs", "concat_gbs", "pad_gbs",
    "rows_gbs", "cast_f16_gbs", "cast_bf16_gbs", "cast_f32_gbs", "cast_i32_gbs", "cast_f8_gbs", "cast_i64_gbs",
    "cast_u8_gbs", "cast_f64_u8_gbs", "cast_i64_f32_gbs", "tril_gbs", "gather_rows_gbs", "gather_columns_gbs",
    "less_f64_gbs", "less_u8_gbs",
)  # fmt: skip


def movement(device: Any) -> None:
    """Bytes read plus bytes written a second, over 4096 x 4096 F32, beside a device copy of the same size."""
    import fuelvk as fv

    ops, side, nbytes = fv.ops, 4096, 8 * timing.BIG
    array = timing.big()[0].reshape(side, side)
    x, other = _resident(array, device), _resident(array + 1, device)
    half = _resident(array[:, : side // 2].copy(), device)
    short = _resident(array.astype(np.float16), device)
    order = _resident(np.random.default_rng(3).permutation(side), device)
    double, long, byte = (_resident(array.astype(kind), device) for kind in (np.float64, np.int64, np.uint8))
    picks = np.random.default_rng(4).integers(0, side, (side, side))
    across, down = _resident(picks.astype(np.int32), device), _resident(picks, device)
    calls: dict[str, tuple[int, Callable[..., Any], tuple[Any, ...]]] = {
        "copy": (nbytes, ops.copy, (x,)),
        "mul16m": (12 * timing.BIG, lambda a, b: a * b, (x, other)),
        "relu16m": (nbytes, ops.relu, (x,)),
        "transpose": (nbytes, lambda a: ops.copy(a.T), (x,)),
        "flip": (nbytes, lambda a: ops.flip(a, axes=1), (x,)),
        "roll": (nbytes, lambda a: ops.roll(a, shifts=5, axes=1), (x,)),
        "concat": (nbytes, lambda a, b: ops.concat(a, b, axis=1), (half, half)),
        "pad": (nbytes, lambda a: ops.pad(a, pads=((1, 1), (1, 1))), (x,)),
        "rows": (nbytes, lambda a, i: ops.index_select(a, i, axis=0), (x, order)),
        "cast_f16": (6 * timing.BIG, lambda a: ops.cast(a, dtype="f16"), (x,)),
        "cast_bf16": (6 * timing.BIG, lambda a: ops.cast(a, dtype="bf16"), (x,)),
        "cast_f32": (6 * timing.BIG, lambda a: ops.cast(a, dtype="f32"), (short,)),
        "cast_i32": (nbytes, lambda a: ops.cast(a, dtype="i32"), (x,)),
        "cast_f8": (5 * timing.BIG, lambda a: ops.cast(a, dtype="f8e4m3"), (x,)),
        "cast_i64": (12 * timing.BIG, lambda a: ops.cast(a, dtype="i64"), (x,)),
        "cast_u8": (5 * timing.BIG, lambda a: ops.cast(a, dtype="u8"), (x,)),
        "cast_f64_u8": (9 * timing.BIG, lambda a: ops.cast(a, dtype="u8"), (double,)),
        "cast_i64_f32": (12 * timing.BIG, lambda a: ops.cast(a, dtype="f32"), (long,)),
        "tril": (nbytes, ops.tril, (x,)),
        "gather_rows": (12 * timing.BIG, lambda a, i: ops.gather(a, i, axis=1), (x, across)),
        "gather_columns": (16 * timing.BIG, lambda a, i: ops.gather(a, i, axis=0), (x, down)),
        "less_f64": (17 * timing.BIG, lambda a: a < a, (double,)),
        "less_u8": (3 * timing.BIG, lambda a: a < a, (byte,)),
    }
    for name, (moved, function, inputs) in calls.items():
        if wants(f"{name}_gbs"):
            emit(**{f"{name}_gbs": timing.gbs(moved, median(_waited(function, device, *inputs), 7))})


def functions(device: Any) -> None:
    """Elementary functions at three levels, in turn, so that what else the machine does falls on all alike."""
    import fuelvk as fv
    from fuelvk.optimizer.tolerance import Tolerance, region

    levels = (Tolerance.strict(), Tolerance.relative(2e-7), Tolerance.unbounded())
    for name, *_ in FUNCTIONS:
        if not wants(*_function_names(name)):
            continue
        x = _resident(timing.function_input(name), device)
        calls = [_waited(getattr(fv.ops, name), device, x) for _ in levels]
        seconds: list[list[float]] = [[] for _ in levels]
        for turn in range(2 + (5 if timing.QUICK else 15)):
            for level, call, taken in zip(levels, calls, seconds, strict=True):
                with region(level):
                    start = time.perf_counter()
                    call()
                    if turn >= 2:
                        taken.append(time.perf_counter() - start)
        rounded, cheap, driver = (statistics.median(taken) / timing.FUNCTION * 1e9 for taken in seconds)
        emit(**{f"{name}_ns": rounded, f"{name}_driver_ns": driver})
        emit(**{f"{name}_times": rounded / driver, f"{name}_cheap_times": cheap / driver})


def _function_names(name: str) -> tuple[str, ...]:
    return tuple(f"{name}_{what}" for what in ("ns", "driver_ns", "times", "cheap_times"))


def product(device: Any) -> None:
    import fuelvk as fv

    p, q = timing.matrices()
    left, right = _resident(p, device), _resident(q, device)
    compiled = fv.compile(lambda a, b: a @ b, device=device)
    emit(mm1024_gflops=timing.gflops(median(lambda: _wait(compiled(left, right)), 5)))
    emit(**timing.product_quality([compiled(left, right).numpy() for _ in range(3)], p, q))


def row_ops(device: Any) -> None:
    import fuelvk as fv

    table = _resident(timing.rows(), device)
    ones = _resident(np.ones(timing.COLUMNS, np.float32), device)
    calls = {
        "softmax": _waited(fv.ops.softmax_last_dim, device, table),
        "rms_norm": _waited(fv.ops.rms_norm_last_dim, device, table, ones),
        "layer_norm": _waited(fv.ops.layer_norm_last_dim, device, table, ones, ones),
    }
    timing.each_row_op(calls.get)


def attention(device: Any) -> None:
    import fuelvk as fv

    shape = (1, timing.HEADS, timing.LENGTH, timing.HEAD_SIZE)
    q, k, v = (_resident(timing.normal(seed, *shape), device) for seed in (5, 6, 16))

    def causal(q: Any, k: Any, v: Any) -> Any:
        return fv.ops.flash_attn(q, k, v, scale=timing.HEAD_SIZE**-0.5, causal=True)

    forward = _waited(causal, device, q, k, v)
    emit(attention_ms=median(forward, 5) * 1e3)
    given = (q, k, v, _resident(timing.normal(26, *shape), device))
    compiled = fv.compile(
        lambda *x: fv.ops.flash_attn_backward(*x, scale=timing.HEAD_SIZE**-0.5, causal=True), device=device
    )
    emit(attention_back_times=_times(lambda: _wait(compiled(*given)[0]), forward))


def _times(call: Callable[[], object], unit: Callable[[], object]) -> float:
    """Returns a call's time in times of another's, taken in turns so that both meet the same load."""
    return statistics.median([median(call, 3) / median(unit, 3) for _ in range(5)])


def decode(device: Any) -> None:
    """One query of 32 heads over 4,096 keys of 8 kv heads of 128: bytes of K and V a second, over a copy's read plus
    written.
    """
    import fuelvk as fv

    copy = _waited(fv.ops.copy, device, _resident(timing.big()[0], device))
    for name, dtype in (("f32", np.float32), ("f16", np.float16)):
        q = _resident(timing.normal(30, 1, 32, 1, 128).astype(dtype), device)
        k, v = (_resident(timing.normal(seed, 1, 8, 4096, 128).astype(dtype), device) for seed in (31, 32))
        call = _waited(
            lambda q, k, v: fv.ops.flash_attn(q, k, v, scale=128**-0.5, causal=True), device, q, k, v
        )
        nbytes = 2 * 8 * 4096 * 128 * np.dtype(dtype).itemsize
        emit(**{f"decode_{name}_copies": nbytes / (8 * timing.BIG) * _times(copy, call)})


def embed(device: Any) -> None:
    from fuelvk.base.errors import FormatError
    from fuelvk.models.bert import SentenceEncoder

    try:
        encoder = SentenceEncoder(device=device)
    except FormatError as error:
        emit(embed_per_s=f"no model: {error.message}")
        return
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()
    texts = [lines[i % len(lines)] for i in range(32)]
    emit(embed_per_s=len(texts) / median(lambda: encoder.encode(texts), 9))
    worst = np.abs(encoder.encode(lines) - encoder.oracle(lines)).max()
    emit(embed_maxdiff=float(worst))


_GROUPS: tuple[tuple[tuple[str, ...], Callable[[Any], None]], ...] = (
    (("rt_us", "rt_up_us"), round_trip),
    (("replay1000_python_us", "replay1000_ms", "record_us", "bind_us"), replay),
    (("add16m_gbs", "up_gbs", "down_gbs"), bandwidth),
    (MOVEMENT, movement),
    (
        ("sum_rows_share", "sum_columns_share", "sum_all_share", "argmax_ms", "cumsum_ms"),
        reductions,
    ),
    (tuple(figure for name, *_ in FUNCTIONS for figure in _function_names(name)), functions),
    (("mm1024_gflops", "mm_maxrel"), product),
    (("softmax_ms", "rms_norm_ms", "layer_norm_ms"), row_ops),
    (("attention_ms", "attention_back_times"), attention),
    (("decode_f32_copies", "decode_f16_copies"), decode),
    (("embed_per_s", "embed_maxdiff"), embed),
)

if __name__ == "__main__":
    main()
