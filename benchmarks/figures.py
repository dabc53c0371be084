"""What is measured, in which unit, and the bar each figure is held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Medians = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar for fuelvk's figure: a number, or a multiple of the best peer's, NumPy's or its own copy's of the run."""

    limit: float | None = None
    times_best_peer: float | None = None
    times_copy: float | None = None
    times_numpy: float | None = None

    def value(
        self, peers: Medians, *, lower: bool, copy: float | None = None, numpy: float | None = None
    ) -> float | None:
        """Returns the bar as a number; None when it is a multiple of a figure that was not taken."""
        for times, figure in ((self.times_copy, copy), (self.times_numpy, numpy)):
            if times is not None:
                return None if figure is None else times * figure
        if self.times_best_peer is None:
            return self.limit
        if not peers:
            return None
        return self.times_best_peer * (min if lower else max)(peers.values())

    def words(self) -> str:
        if self.times_copy is not None:
            return f"{self.times_copy:g} x copy"
        if self.times_numpy is not None:
            return f"{self.times_numpy:g} x NumPy"
        return f"{self.limit:g}" if self.times_best_peer is None else f"{self.times_best_peer:g} x best"


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the report. ``threads0`` rows are taken with lavapipe's worker threads off."""

    name: str
    unit: str
    title: str
    lower: bool = True
    bar: Bar | None = None
    subject: str = "fuelvk"


#: Elementary functions that are timed, and how many times the driver's own time each level may take; None: stated only.
FUNCTIONS: tuple[tuple[str, float | None, float | None], ...] = (
    ("exp", 3, 1.5),
    ("log", 3, None),
    ("sin", 3, None),
    ("tanh", None, None),
    ("gelu", None, None),
    ("sigmoid", None, None),
)


def _function_figures() -> tuple[Figure, ...]:
    """Time of one of 4M elements, memory included: correctly rounded; that and the cheap one over the driver's."""
    made = []
    for name, rounded, cheap in FUNCTIONS:
        bars = [None if bar is None else Bar(bar) for bar in (rounded, cheap)]
        made += [
            Figure(f"{name}_ns", "ns", f"{name}, correctly rounded"),
            Figure(f"{name}_driver_ns", "ns", f"{name} by the driver"),
            Figure(f"{name}_times", "x", f"{name}, rounded over driver's", bar=bars[0]),
            Figure(f"{name}_cheap_times", "x", f"{name}, cheap over driver's", bar=bars[1]),
        ]
    return tuple(made)


FIGURES: tuple[Figure, ...] = (
    Figure("import_ms", "ms", "import, over NumPy's own", bar=Bar(60)),
    Figure("import_all_ms", "ms", "import with fv.call"),
    Figure("device_ms", "ms", "device creation", bar=Bar(60)),
    Figure("init_ms", "ms", "import and device"),
    Figure("rt_up_us", "us", "1k add, NumPy to NumPy", bar=Bar(times_best_peer=1.5)),
    Figure("rt_us", "us", "1k add, resident to NumPy"),
    Figure("record_us", "us", "Python to record a kernel", bar=Bar(4)),
    Figure("bind_us", "us", "with wrapper and plan"),
    Figure("replay1000_python_us", "us", "Python to replay 1,000 kernels", bar=Bar(50)),
    Figure("replay1000_ms", "ms", "replay of 1,000 completed"),
    Figure(
        "replay1000_ms",
        "ms",
        "with driver threads 0",
        bar=Bar(2),
        subject="fuelvk-threads0",
    ),
    Figure("copy_gbs", "GB/s", "device copy of 64 MiB", lower=False),
    *(
        Figure(f"{name}16m_gbs", "GB/s", title, lower=False, bar=bar)
        for name in ("add", "mul", "relu")
        for title, bar in (
            (f"{name} of 16M", Bar(times_best_peer=2)),
            (f"{name}, beside NumPy", Bar(times_numpy=0.7)),
        )
    ),
    *(
        Figure(f"{name}_gbs", "GB/s", title, lower=False, bar=Bar(times_copy=0.6))
        for name, title in (
            ("transpose", "4096x4096: transposed copy"),
            ("flip", "its last axis reversed"),
            ("roll", "its last axis rolled by 5"),
            ("concat", "halves joined on the last axis"),
            ("pad", "a border of 1"),
            ("rows", "rows in another order"),
            ("cast_f16", "F32 to F16"),
            ("cast_bf16", "F32 to BF16"),
            ("cast_f32", "F16 to F32"),
            ("cast_i32", "F32 to I32"),
            ("cast_f8", "F32 to F8E4M3"),
            ("cast_i64", "F32 to I64"),
            ("cast_u8", "F32 to U8"),
            ("cast_f64_u8", "F64 to U8"),
            ("cast_i64_f32", "I64 to F32"),
            ("tril", "lower triangle"),
            ("gather_rows", "gather along the last axis, I32"),
            ("gather_columns", "gather along the first axis, I64"),
            ("less_f64", "F64 less than F64"),
            ("less_u8", "U8 less than U8"),
        )
    ),
    Figure("up_gbs", "GB/s", "64 MiB to the device", lower=False),
    Figure("down_gbs", "GB/s", "64 MiB from the device", lower=False),
    Figure("sum_rows_share", "of copy", "sum of 4096 rows of 4096", lower=False, bar=Bar(0.5)),
    Figure("sum_columns_share", "of copy", "sum of its columns", lower=False, bar=Bar(0.5)),
    Figure("sum_all_share", "of copy", "sum of everything", lower=False, bar=Bar(0.5)),
    Figure("argmax_ms", "ms", "argmax of 4096 rows of 4096"),
    Figure("cumsum_ms", "ms", "cumsum along 4096 rows of 4096"),
    *_function_figures(),
    Figure("mm1024_gflops", "GFLOP/s", "matmul 1024^3", lower=False, bar=Bar(times_best_peer=4)),
    Figure("mm_maxrel", "", "largest relative error"),
    *(
        Figure(f"{name}_ms", "ms", title, bar=bar)
        for name, times in (("softmax", 0.2), ("rms_norm", 0.1), ("layer_norm", 0.1))
        for title, bar in (
            (f"{name} 4096x1024", Bar(times_best_peer=times)),
            (f"{name}, beside NumPy", Bar(times_numpy=1)),
        )
    ),
    Figure("attention_ms", "ms", "attention 8x512x64 causal", bar=Bar(times_best_peer=0.1)),
    Figure("attention_back_times", "", "its gradients, in times of it", bar=Bar(3)),
    Figure("decode_f32_copies", "", "decode, K and V over a copy", lower=False, bar=Bar(0.25)),
    Figure("decode_f16_copies", "", "the same in F16", lower=False, bar=Bar(0.25)),
    Figure("embed_per_s", "1/s", "sentences, batches of 32", lower=False),
    Figure("embed_maxdiff", "", "difference from float64", bar=Bar(2e-6)),
)

NAMES = tuple(dict.fromkeys(figure.name for figure in FIGURES))
