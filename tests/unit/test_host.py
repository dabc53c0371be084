"""The instruction set that records of processors carry."""

from __future__ import annotations

import platform

import pytest

from fuelvk.base.host import instruction_set, level

V2 = "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"
V3 = f"{V2} avx avx2 bmi1 bmi2 f16c fma abm movbe"
V4 = f"{V3} avx512f avx512bw avx512cd avx512dq avx512vl"


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ("", "v1"),
        (V2, "v2"),
        (V3, "v3"),
        (V3.replace("f16c", ""), "v2"),
        (V4, "v4"),
        (V4.replace("avx2", ""), "v2"),
    ],
)
def test_a_level_has_all_below(flags: str, name: str) -> None:
    assert level(flags.split()) == name


def test_the_host_has_one() -> None:
    assert instruction_set().startswith(platform.machine())
