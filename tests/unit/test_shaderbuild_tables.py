"""Variant tables: expansion, and every way a table can be wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fuelvk.base.errors import ShaderBuildError
from fuelvk.shaderbuild.paths import source_root
from fuelvk.shaderbuild.tables import Table, discover

GOOD = """
entries = ["one", "two"]
[axes]
dtype = ["f32", "f64"]
width = [0, 8]
[[exclude]]
dtype = "f64"
width = [8]
[defines]
UNROLL = 4
[flags]
"-some" = "because"
"""


def write(
    root: Path, table: str, name: str = "fam/thing", language: str = "slang", suffix: str = ".slang"
) -> Path:
    base = root / "shaders" / language / name
    base.parent.mkdir(parents=True, exist_ok=True)
    base.with_suffix(".toml").write_text(table)
    base.with_suffix(suffix).write_text("// nothing\n")
    return root


def one(root: Path) -> Table:
    (table,) = discover(root)
    return table


def test_expansion_order_defines_and_exclusion(tmp_path: Path) -> None:
    table = one(write(tmp_path, GOOD))
    rows = table.expand()
    assert [r.name for r in rows] == [
        f"fam/thing[dtype={d},mode={m},width={w}]"
        for d, m, w in [
            ("f32", "bda", 0),
            ("f32", "bda", 8),
            ("f32", "ssbo", 0),
            ("f32", "ssbo", 8),
            ("f64", "bda", 0),
            ("f64", "ssbo", 0),
        ]
    ]
    assert dict(rows[1].defines) == {"DTYPE_F32": "1", "MODE_BDA": "1", "UNROLL": "4", "WIDTH": "8"}
    assert table.flags == {"-some": "because"}


def test_mode_can_be_narrowed(tmp_path: Path) -> None:
    table = one(write(tmp_path, 'entries = ["e"]\n[axes]\nmode = ["bda"]\n'))
    assert [r.axes for r in table.expand()] == [{"mode": "bda"}]


def test_glsl_has_one_entry(tmp_path: Path) -> None:
    assert one(write(tmp_path, "[axes]\n", language="glsl", suffix=".comp")).entries == ("main",)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("entries = [", "not a TOML table"),
        ('entries = ["a"]\nentries = ["b"]', "not a TOML table"),
        ('entries = ["a"]\naxis = 1', r"unknown key; seen: axis; .*did you mean 'axes'"),
        ("", "entries is a list"),
        ('entries = ["a", "a"]', "listed twice"),
        ('entries = ["a b"]', "entries is a list"),
        ('entries = ["a"]\n[axes]\ndtype = []', "axis dtype is a list"),
        ('entries = ["a"]\n[axes]\ndtype = ["f32", 1]', "axis dtype is a list"),
        ('entries = ["a"]\n[axes]\ndtype = ["F32"]', "axis dtype is a list"),
        ('entries = ["a"]\n[axes]\nwide = [true]', "axis wide is a list"),
        ('entries = ["a"]\n[axes]\ndtype = ["f32", "f32"]', "lists a value twice"),
        ('entries = ["a"]\n[axes]\nDtype = ["f32"]', "axis name is lower case"),
        ('entries = ["a"]\n[axes]\nmode = ["ubo"]', "unknown addressing mode"),
        ('entries = ["a"]\n[[exclude]]\nsize = 1', "exclude names an unknown axis"),
        ('entries = ["a"]\n[[exclude]]\nmode = "x"', "a value that axis mode does not have"),
        ('entries = ["a"]\n[[exclude]]\nmode = ["bda", "ssbo"]', "leave no variant"),
        ('entries = ["a"]\n[[exclude]]\nmode = "bda"\n[[exclude]]\nmode = []', "removes nothing"),
        ('entries = ["a"]\n[defines]\nunroll = 1', "a define is NAME"),
        ('entries = ["a"]\n[defines]\nMODE_BDA = 1', "two sources for one define"),
        ('entries = ["a"]\n[flags]\n"-x" = ""', "has a reason"),
    ],
)
def test_wrong_tables_are_refused(tmp_path: Path, table: str, message: str) -> None:
    write(tmp_path, table)
    with pytest.raises(ShaderBuildError, match=message) as caught:
        one(tmp_path).expand()
    assert "shaders/slang/fam/thing.toml" in str(caught.value)


def test_source_without_table_and_table_without_source(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    base = tmp_path / "shaders/slang/fam"
    (base / "_helper.slang").write_text("")
    assert one(tmp_path).stem == "fam/thing"
    (base / "more.slang").write_text("")
    with pytest.raises(ShaderBuildError, match="no variant table; seen: shaders/slang/fam/more.slang"):
        discover(tmp_path)
    assert [t.stem for t in discover(tmp_path, ["thing"])] == ["fam/thing"]
    (base / "more.slang").rename(base / "_more.slang")
    (base / "gone.toml").write_text(GOOD)
    with pytest.raises(ShaderBuildError, match="no source; seen: shaders/slang/fam/gone.toml"):
        discover(tmp_path)


def test_one_stem_in_two_languages(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, "[axes]\n", language="glsl", suffix=".comp")
    with pytest.raises(ShaderBuildError, match="two sources have one stem"):
        discover(tmp_path)


def test_a_pattern_that_meets_nothing(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    with pytest.raises(ShaderBuildError, match=r"asked: fam/thin_g; allowed: fam/thing; next: did you mean"):
        discover(tmp_path, ["fam/thin_g"])


TYPE_WORDS = re.compile(
    r"\b(float|half|double|u?int(8|16|32|64)?_t|u?int|bool|[fiu](8|16|32|64)|bf16|F64|F32|F16|BF16)([234](x[234])?)?\b"
)


def normalised(text: str) -> str:
    """Returns a shader without comments, space and the words that name types."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r"//[^\n]*", " ", text)
    return re.sub(r"\s+", "", TYPE_WORDS.sub("T", text))


def test_normalised_sees_a_copy_by_type() -> None:
    a = "float f(float4 x) { return x.x; } // one"
    b = "double f( double4 x ) { return x.x; } /* two */"
    assert normalised(a) == normalised(b)
    assert normalised(a) != normalised(b.replace("x.x", "x.y"))


def test_no_two_sources_differ_only_in_type_words() -> None:
    root = source_root()
    assert root is not None
    seen: dict[str, Path] = {}
    for path in sorted((root / "shaders").rglob("*")):
        if path.suffix in (".slang", ".comp", ".glsl", ".h"):
            text = normalised(path.read_text())
            assert text not in seen, f"{path} is a copy of {seen[text]} for another type: make it a variant"
            seen[text] = path
