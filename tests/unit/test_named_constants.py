"""The named constants: each speaks of some kernels, and docs/exactness.md says which carry it and what was found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fuelvk import fused
from fuelvk.cli import constants
from fuelvk.evidence import Place, Record
from fuelvk.evidence.ledger import Ledger
from fuelvk.kernels.claims import STRICT_CORRECTLY_ROUNDED, STRICT_EXACT, STRICT_PRODUCT
from fuelvk.kernels.named import NAMED, Named, Standing, standing
from fuelvk.kernels.types import PrecisionGuarantee
from fuelvk.verify.suite import default_suite

ROWS = list(default_suite().implementations())
BY_NAME = {n.name: n for n in NAMED}
GPU = Place("vulkan", "a GPU", "driver 1")


def test_all_twenty_four_have_a_row() -> None:
    assert sorted(BY_NAME) == sorted(n for n in fused.__all__ if n.endswith("_PRECISION"))
    assert sum(n.backend == "cpu" for n in NAMED) == 16 and sum(n.backend == "vulkan" for n in NAMED) == 8


@pytest.mark.parametrize("named", NAMED, ids=BY_NAME)
def test_one_without_kernels_says_why_and_others_have_some(named: Named) -> None:
    spoken_of = [impl for op, backend, impl in ROWS if named.speaks_of(op, backend, impl)]
    assert spoken_of or named.note


@pytest.mark.parametrize(
    ("name", "claim", "expected"),
    [
        ("VULKAN_BYTE_LEVEL_PRECISION", STRICT_EXACT, Standing.CARRIES),
        ("VULKAN_BYTE_LEVEL_PRECISION", STRICT_CORRECTLY_ROUNDED, Standing.LESS),
        ("VULKAN_CAST_PRECISION", STRICT_CORRECTLY_ROUNDED, Standing.MORE),
        ("VULKAN_TRANSCENDENTAL_PRECISION", PrecisionGuarantee(True, max_ulp=4), Standing.CARRIES),
        ("VULKAN_TRANSCENDENTAL_PRECISION", PrecisionGuarantee(False, max_ulp=4), Standing.LESS),
        ("VULKAN_TRANSCENDENTAL_PRECISION", PrecisionGuarantee(True, max_ulp=5), Standing.LESS),
        ("VULKAN_TRANSCENDENTAL_PRECISION", STRICT_PRODUCT, Standing.OTHER),
        ("VULKAN_MATMUL_PRECISION", STRICT_PRODUCT, Standing.MORE),
        ("ROPE_CPU_PRECISION", fused.ROPE_CPU_PRECISION.strict(), Standing.CARRIES),
    ],
)
def test_how_a_claim_stands_to_a_constant(name: str, claim: PrecisionGuarantee, expected: Standing) -> None:
    assert standing(BY_NAME[name], claim) is expected


def records(named: Named, **changes: object) -> Ledger:
    """A ledger with passing records of everything the constant speaks of."""
    found = Ledger(GPU)
    for op, backend, impl in ROWS:
        if named.speaks_of(op, backend, impl):
            for claim in ("ulp", "bit_stable"):
                plain = Record(
                    op=op.name, backend=backend, impl=impl.name, dtypes=tuple(d.key for d in impl.dtypes),
                    revision="a" * 16, claim=claim, promised="", worst=0.0, where="", inputs=10, shapes=1, seed=0,
                    protocol=1, date="2026-11-30", passed=True,
                )  # fmt: skip
                found.add(replace(plain, **changes) if claim == "ulp" else plain)  # type: ignore[arg-type]
    return found


def test_a_failure_or_a_larger_error_speaks_against_a_constant() -> None:
    named = BY_NAME["VULKAN_BYTE_LEVEL_PRECISION"]
    good = constants.account(named, ROWS, [records(named)])
    assert not good.against and good.elements > 0 and good.places == {0}
    assert set(good.kernels) == {Standing.CARRIES}
    assert constants.account(named, ROWS, [records(named, worst=0.25)]).against
    assert constants.account(named, ROWS, [records(named, passed=False)]).against
    text = "\n".join(constants.section([records(named, passed=False)], ROWS))
    assert "**no**: ulp of" in text and "and carried" in text
    assert "yes, on A" in "\n".join(constants.section([records(named)], ROWS))


def test_only_what_carries_a_constant_or_claims_more_is_judged() -> None:
    named = BY_NAME["VULKAN_TRANSCENDENTAL_PRECISION"]
    ledger = records(named)
    for key, record in list(ledger.records.items()):
        if record.impl == "vulkan.functions_driver":
            ledger.records[key] = replace(record, worst=211.0)
    found = constants.account(named, ROWS, [ledger])
    assert Standing.LESS in found.kernels and not found.against
