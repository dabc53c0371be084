"""The revision of a registered kernel follows its wrapper, its op and its sources, and nothing else."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuelvk.base.dtypes import DType
from fuelvk.graph.types import OpId, PrimitiveId
from fuelvk.kernels import _wrappers
from fuelvk.kernels._cpu import c_kernel
from fuelvk.kernels._vulkan import spirv, vulkan
from fuelvk.kernels.types import CostEstimate, KernelRevisionHash, PrecisionGuarantee

ADD, SUB = PrimitiveId("add"), PrimitiveId("sub")


def kernel(*_: object) -> None:
    """Never called."""


def cost(*_: object) -> CostEstimate:
    return CostEstimate()


def gpu(wrapper: Path, op: OpId = ADD, entry: str = "add_flat") -> KernelRevisionHash:
    shader = spirv("pointwise/binary", entry, dtype=DType.F32, shape="small")
    row = vulkan(
        op,
        (DType.F32,) * 3,
        kernel,
        shaders=(shader,),
        cost=cost,
        precision=PrecisionGuarantee(True),
        wrapper=str(wrapper),
    )
    return row.impl.revision


def host(wrapper: Path, op: OpId = ADD, function: str = "add_f32") -> KernelRevisionHash:
    row = c_kernel(
        op,
        (DType.F32,) * 3,
        kernel,
        functions=(function,),
        cost=cost,
        precision=PrecisionGuarantee(True),
        wrapper=str(wrapper),
    )
    return row.impl.revision


@pytest.fixture
def wrapper(tmp_path: Path) -> Path:
    path = tmp_path / "a" / "wrapper.py"
    path.parent.mkdir()
    path.write_text("x = 1\n")
    return path


@pytest.mark.parametrize("revision", [gpu, host])
def test_a_wrapper_that_changes_moves_the_revision(revision: object, wrapper: Path, tmp_path: Path) -> None:
    assert callable(revision)
    same = tmp_path / "another folder" / "name.py"
    same.parent.mkdir()
    same.write_bytes(wrapper.read_bytes())
    assert revision(same) == revision(wrapper)
    other = tmp_path / "changed.py"
    other.write_text("x = 2\n")
    assert revision(other) != revision(wrapper)


def test_ops_entries_and_functions_are_told_apart(wrapper: Path) -> None:
    assert len({gpu(wrapper), gpu(wrapper, SUB), gpu(wrapper, ADD, "sub_flat")}) == 3
    assert len({host(wrapper), host(wrapper, SUB), host(wrapper, ADD, "matmul_f32")}) == 3


def test_a_revision_is_sixteen_digits_and_never_untracked(wrapper: Path) -> None:
    for revision in (gpu(wrapper), host(wrapper)):
        assert revision.tracked
        assert len(str(revision)) == 16
        assert revision == KernelRevisionHash(int(str(revision), 16))
    assert KernelRevisionHash.UNTRACKED != KernelRevisionHash.UNTRACKED


OPS = Path(_wrappers.__file__).parent / "ops"
PACKAGE = "fuelvk.kernels.ops"


def imported(path: Path) -> set[str]:
    """The modules of ``kernels/ops`` a file imports, by its syntax tree."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name} imports relatively"
            names = [f"{node.module}.{name}" for name in names] + [str(node.module)]
        found |= {n.removeprefix(PACKAGE + ".").split(".")[0] for n in names if n.startswith(PACKAGE + ".")}
    return {name for name in found if (OPS / f"{name}.py").is_file()}


@pytest.mark.parametrize("path", sorted(OPS.glob("*.py")), ids=lambda p: p.stem)
def test_the_modules_a_wrapper_is_built_from_are_those_its_syntax_tree_imports(path: Path) -> None:
    found: set[str] = set()
    waiting = {path.stem} if path.stem != "__init__" else set()
    while waiting:
        new = imported(OPS / f"{waiting.pop()}.py") - found
        found |= new
        waiting |= new
    assert {p.stem for p in _wrappers.wrapper_modules(str(path))} == found - {path.stem}


@pytest.fixture
def ops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of ``kernels/ops`` to edit."""
    copied = tmp_path / "ops"
    shutil.copytree(OPS, copied)
    monkeypatch.setattr(_wrappers, "_OPS", copied)
    yield copied
    forget()


def forget() -> None:
    for cached in (_wrappers._source, _wrappers._digest, _wrappers.wrapper_digest):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("edited", "wrapper", "moves"),
    [
        ("_rows", "softmax_last_dim", True),
        ("_loops", "softmax_last_dim", True),  # by way of _rows
        ("_elements", "rope", True),
        ("_attention", "paged_attn", True),
        ("_attention", "softmax_last_dim", False),
        ("rope", "softmax_last_dim", False),
    ],
)
def test_a_shared_module_that_changes_moves_the_revisions_built_from_it(
    ops: Path, edited: str, wrapper: str, moves: bool
) -> None:
    def revisions() -> tuple[KernelRevisionHash, KernelRevisionHash]:
        forget()
        return gpu(ops / f"{wrapper}.py"), host(ops / f"{wrapper}.py")

    before = revisions()
    path = ops / f"{edited}.py"
    path.write_text(path.read_text() + "\n# another word\n")
    assert [a != b for a, b in zip(before, revisions(), strict=True)] == [moves, moves]


@pytest.mark.parametrize(
    "line",
    [
        "from fuelvk.kernels.ops._rows import row_op as made, fits_index",
        "from fuelvk.kernels.ops import _rows",
        "from fuelvk.kernels.ops import _rows as shared, nothing_of_that_name",
        "from fuelvk.kernels.ops import (\n    _rows as shared,\n)",
        "import fuelvk.kernels.ops._rows",
        "def late() -> None:\n    from fuelvk.kernels.ops._rows import row_op",
    ],
)
def test_every_way_to_import_counts(tmp_path: Path, line: str) -> None:
    path = tmp_path / "wrapper.py"
    path.write_text(line + "\n")
    assert OPS / "_rows.py" in _wrappers.wrapper_modules(str(path))
