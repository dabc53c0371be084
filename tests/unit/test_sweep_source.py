"""The key of a sweep: it changes with the function's own source, and with nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpu_reference import _sources
from cpu_reference.truth import FUNCTIONS
from fuelvk.base.dtypes import DType
from fuelvk.graph.registry import find_op
from fuelvk.registry import default_kernel_registry
from fuelvk.verify import sweep_source
from fuelvk.verify.definitions import Definitions
from fuelvk.verify.sweep_source import Level, expression, level_of, source

HEADERS = _sources.strict_headers()
STRICT = [(op, level) for op in FUNCTIONS for level in (Level.ROUNDED, Level.CHEAP) if source(op, level)]


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    sweep_source.forget()
    yield
    sweep_source.forget()


def keys() -> dict[tuple[str, Level], str]:
    sweep_source.forget()
    return {(op, level): source(op, level) for op in FUNCTIONS for level in Level}


def changed(headers: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """Returns the functions and levels whose key is another with these headers."""
    before = keys()
    monkeypatch.setattr(_sources, "strict_headers", lambda: headers)
    after = keys()
    return {(op, level.name) for (op, level), key in after.items() if key != before[op, level]}


def edited(name: str, old: str, new: str) -> dict[str, str]:
    assert HEADERS[name].count(old) == 1
    return {**HEADERS, name: HEADERS[name].replace(old, new)}


def rounded(*ops: str) -> set[tuple[str, str]]:
    return {(op, "ROUNDED") for op in ops}


def cheap(*ops: str) -> set[tuple[str, str]]:
    return {(op, "CHEAP") for op in ops}


@pytest.mark.parametrize(
    ("name", "old", "new", "lagging"),
    [
        ("exp_try.h", "gone = ux >= 0xc2d10000u", "gone = ux >= 0xc2d20000u", rounded("exp")),
        ("log_more.h", "float s0 = a * a * ST_HALF;\n  float q = rh * rh * rh * (ST_LOG_C3 - rh * (ST_LOG_C4 - rh * "
         "(ST_LOG_C5 - rh * (ST_LOG_C6 - rh * ST_LOG_C7))));\n  float ph", "float s0 = a * a * ST_ONE; float q = rh; "
         "float ph", rounded("log2")),
        ("cheap_exp.h", "SEL(u > 0xc3170000u, 0xc3170000u, u)", "SEL(u > 0xc3180000u, 0xc3170000u, u)", cheap("exp2")),
        ("root.h", "F2U(s.m) - 0x3f000000u", "F2U(s.m) - 0x3f000001u", rounded("sqrt")),
        ("root.h", "0x5f375a86u", "0x5f375a87u", rounded("sqrt", "rsqrt") | cheap("rsqrt")),
    ],
)  # fmt: skip
def test_an_edit_makes_exactly_the_functions_lag_that_are_made_of_the_line(
    name: str, old: str, new: str, lagging: set[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert changed(edited(name, old, new), monkeypatch) == lagging


def test_a_definition_that_nobody_uses_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {**HEADERS, "base.h": HEADERS["base.h"] + "\nFN uint st_of_nobody(uint v) { return v; }\n"}
    assert changed(headers, monkeypatch) == set()


def test_a_word_of_the_table_makes_all_lag_that_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEADERS["tables_constants.h"]
    at = text.index("0x", text.index("ST_TABLE_WORDS"))
    headers = {**HEADERS, "tables_constants.h": text[:at] + "0x1" + text[at + 2 :]}
    assert changed(headers, monkeypatch) == rounded(
        "log", "log2", "log1p", "sin", "cos", "softplus", "erf", "gelu_erf"
    )


def test_comments_spacing_and_the_place_of_a_definition_are_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = dict(HEADERS)
    body = re.search(r"FN st_u64 st_exp_cr_try\(.*?\n\}\n", moved["exp_try.h"], re.DOTALL)
    assert body is not None
    moved["exp_try.h"] = moved["exp_try.h"].replace(body[0], "/* elsewhere */\n")
    moved["rsqrt_cr.h"] += "\n" + body[0].replace("\n  ", "\n        ").replace(" ? ", "  ?  ") + "\n"
    moved = {name: re.sub(r"/\*(?!.*generated)", "/* Said otherwise:", text) for name, text in moved.items()}
    assert changed(moved, monkeypatch) == set()


@pytest.mark.parametrize(("op", "level"), STRICT)
def test_nothing_is_left_out(op: str, level: Level, tmp_path: Path) -> None:
    """A C compiler makes do with what was found."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    text = expression(op, level)
    assert text is not None
    lines = ["#include <stdbool.h>", "#include <stdint.h>", "#include <string.h>"]
    for each in Definitions(HEADERS[name] for name in _in_order()).reached(text):
        lines += [*each.conditions, each.text, *("#endif" for _ in each.conditions)]
    argument = "uint" if level is Level.ROUNDED and "_cr_" in text else "float"
    lines.append(f"void use({argument} v) {{ {text.replace(', ', '; ')}; }}")
    file = tmp_path / "alone.c"
    file.write_text("\n".join(lines) + "\n")
    flags = ["-fsyntax-only", "-Werror=implicit-function-declaration", "-std=c11"]
    made = subprocess.run([compiler, *flags, str(file)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr


def _in_order() -> list[str]:
    """Returns the headers, each after those it includes."""
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        if name not in found:
            for included in re.findall(r'#include "(\w+\.h)"', HEADERS[name]):
                visit(included)
            found[name] = None

    for name in sorted(HEADERS):
        visit(name)
    return list(found)


def test_pasted_names_are_followed() -> None:
    found = Definitions(["#define A1H 1\n#define A2H 2\n#define A2 3\n#define STEP(k) (A##k##H)\n"])
    assert [d.name for d in found.reached("STEP(2)")] == ["A1H", "A2H", "STEP"]


def test_conditions_are_part_of_a_definition() -> None:
    def key(text: str) -> str:
        return Definitions([text]).digest("f(v)")

    plain = "#ifndef X_H\n#define X_H\n#ifdef C\nFN int f(int v) { return v; }\n#endif\n#endif\n"
    assert key(plain) == key(plain.replace("X_H", "Y_H"))
    assert key(plain) != key(plain.replace("#ifdef C", "#ifndef C"))
    assert key(plain) != key(plain.replace("#ifdef C", "#ifdef D"))


def test_every_implementation_that_is_swept_has_a_level_and_a_key() -> None:
    seen = set()
    for op in FUNCTIONS:
        entry = find_op(op)
        assert entry is not None
        for backend, impl in default_kernel_registry().impls_for(entry.id):
            if impl.dtypes == (DType.F32, DType.F32) and impl.name != "cpu.numpy":
                level = level_of(impl)
                seen.add((op, level))
                assert re.fullmatch("[0-9a-f]{16}", source(op, level)), (op, backend, impl.name)
    assert {level for _, level in seen} == set(Level)
    assert len({source(op, level) for op, level in seen}) == len(seen)


def test_the_drivers_level_lags_with_its_own_shader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = sweep_source._DRIVER.read_text(encoding="utf-8")
    assert text.count("v < -120.0f") == 1
    copy = tmp_path / "functions_driver.slang"
    before = keys()
    copy.write_text(text.replace("v < -120.0f", "v < -121.0f"))
    monkeypatch.setattr(sweep_source, "_DRIVER", copy)
    after = keys()
    assert {row for row in before if before[row] != after[row]} == {("exp2", Level.DRIVER)}
    copy.unlink()
    assert keys()["exp2", Level.DRIVER] == ""
