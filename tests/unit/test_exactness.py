"""docs/exactness.md: a table row for every implementation, cells by driver, failures and lagging sweeps marked."""

from __future__ import annotations

from dataclasses import replace

from fuelvk.cli import exactness
from fuelvk.evidence import Place, Record
from fuelvk.evidence.ledger import Ledger
from fuelvk.verify.sweep_source import Level, source

GPU, CPU = Place("vulkan", "a GPU", "driver 1"), Place("cpu", "CPU reference", "x86_64 linux")
ULP = Record(
    op="exp", backend="vulkan", impl="vulkan.unary", dtypes=("f32", "f32"), revision="a" * 16, claim="ulp",
    promised="0.5 ULP", worst=0.49999, where="here", inputs=9, shapes=1, seed=0, protocol=1, date="2026-11-30",
    passed=True,
)  # fmt: skip


def ledger(place: Place, *records: Record) -> Ledger:
    found = Ledger(place)
    for record in records:
        found.add(record)
    return found


def test_without_ledgers_it_says_so() -> None:
    assert "Nothing has been recorded yet" in exactness.page("make", [])


def test_rows_and_cells() -> None:
    sweep = replace(
        ULP,
        claim="sweep",
        worst=0.499999999,
        counts={"settled_by_mpmath": 1330},
        where="0x40315b33",
        source=source("exp", Level.ROUNDED),
    )
    gpu = ledger(
        GPU,
        ULP,
        replace(ULP, claim="canonical", worst=0.0),
        replace(ULP, claim="bit_stable", passed=False),
        sweep,
    )
    cpu = ledger(CPU, replace(ULP, backend="cpu", impl="cpu.c", dtypes=("f16", "f16"), worst=0.0))
    text = exactness.page("make", [cpu, gpu])
    assert "| A | a GPU | driver 1 | 3 | 1 | 2026-11-30 |" in text
    assert "| B | CPU reference |" in text
    assert "| exp | vulkan.unary | f32 | 0.5 ULP | 0.5 ULP; bytes of C; **not stable** |  |" in text
    assert "| exp | cpu.c | f16 | 0.5 ULP |  | exact |" in text
    assert "| A | exp | vulkan.unary | f32 | bit_stable" in text
    row = "| exp | correctly rounded | A | 0.499999999 ULP | 0x40315b33 | 0 | 1,330 | 0 |"
    assert f"{row}  |" in text
    assert "No sweep of the correctly rounded level as it is: exp2," in text
    lagging = exactness.page("make", [ledger(GPU, replace(sweep, source="b" * 16))])
    assert f"{row} **lags** |" in lagging
    assert "as it is: exp, exp2," in lagging
    assert f"{row} **lags** |" in exactness.page("make", [ledger(GPU, replace(sweep, source=""))])


def test_dtypes_of_equal_cells_share_a_row() -> None:
    rows = [replace(ULP, op="neg", dtypes=(d, d), promised="exact", worst=0.0) for d in ("f32", "f16", "i8")]
    assert "| neg | vulkan.unary | f16, f32, i8 | exact | exact |" in exactness.page(
        "make", [ledger(GPU, *rows)]
    )
