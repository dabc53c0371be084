"""The compiler kept loaded gives what slangc gives, and slangc stands in for it."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import pytest

from fuelvk.base.errors import ShaderBuildError
from fuelvk.shaderbuild.compilers import Compiled, SlangCompiler, compiler_for
from fuelvk.shaderbuild.paths import source_root
from fuelvk.shaderbuild.tables import Table, discover

pytestmark = pytest.mark.build
ROOT = source_root()


@pytest.fixture
def slang() -> SlangCompiler:
    compiler = compiler_for("slang")
    assert isinstance(compiler, SlangCompiler)
    if compiler.resident is None:
        pytest.skip("needs the compiler's library beside slangc")
    return compiler


def table_of(stem: str) -> Table:
    assert ROOT is not None
    return next(t for t in discover(ROOT, (stem,)) if t.stem == stem)


def made(compiler: SlangCompiler, table: Table, folder: Path, which: int = 0) -> Compiled:
    assert ROOT is not None
    folder.mkdir()
    return compiler.compile(ROOT, table, table.expand()[which], folder)


# One entry point and several, with and without a library, floats by their bits.
@pytest.mark.parametrize("stem", ["movement/gather", "rows/loss", "pointwise/functions_root"])
def test_the_same_module_and_the_same_files(stem: str, slang: SlangCompiler, tmp_path: Path) -> None:
    table, alone = table_of(stem), dataclasses.replace(slang, resident=None)
    try:
        for which in (0, -1):  # the second from a session that has compiled before
            kept = made(slang, table, tmp_path / f"kept{which}", which)
            assert not (tmp_path / f"kept{which}" / "out.d").exists(), "slangc stood in"
            assert kept == made(alone, table, tmp_path / f"alone{which}", which)
    finally:
        slang.close()


def test_a_process_that_ends_is_no_failure(slang: SlangCompiler, tmp_path: Path) -> None:
    table = table_of("movement/gather")
    assert slang.resident is not None
    try:
        first = made(slang, table, tmp_path / "first")
        os.kill(slang.resident._idle[0].pid, signal.SIGKILL)
        assert made(slang, table, tmp_path / "second") == first
        assert (tmp_path / "second" / "out.d").exists()
        assert made(slang, table, tmp_path / "third") == first
        assert not (tmp_path / "third" / "out.d").exists()
    finally:
        slang.close()
    assert not slang.resident._idle


def test_a_broken_source_has_the_compiler_s_words(slang: SlangCompiler, tmp_path: Path) -> None:
    table = dataclasses.replace(table_of("movement/gather"), entries=("gather", "nothing"))
    try:
        with pytest.raises(ShaderBuildError, match="nothing"):
            made(slang, table, tmp_path / "broken")
        assert made(slang, table_of("movement/gather"), tmp_path / "whole").spirv
    finally:
        slang.close()
