"""The shader build on a small tree of its own, with the real compilers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fuelvk.base.errors import ShaderBuildError, UnknownNameError
from fuelvk.shaderbuild import Manifest, build, builder, load_manifest
from fuelvk.shaderbuild.manifest import pack_modules, pack_of, read_document, read_module
from fuelvk.shaderbuild.paths import source_root

pytestmark = pytest.mark.build

SOURCE = """#include "scale.h"
#define BUFFERS(B) B(0, float, x) B(1, float, y)
#define PARAMS uint n; float factor;
#include "kernel.slang"
[shader("compute")] [numthreads(64, 1, 1)] void scale(uint3 id : SV_DispatchThreadID)
{
    if (id.x < pc.n) ST(y, id.x, scaled(LD(x, id.x) * pc.factor));
}
[shader("compute")] [numthreads(8, 4, 1)] void copy(uint3 id : SV_DispatchThreadID)
{
    if (id.x < pc.n) ST(y, id.x, LD(x, id.x));
}
"""
HEADER = "float scaled(float v) { return v * STEP; }\n"
TABLE = 'entries = ["scale", "copy"]\n[axes]\nstep = [2, 3]\n[defines]\nUNUSED = 1\n'
GLSL = """#version 450
layout(local_size_x = 32) in;
layout(constant_id = 3) const uint VALUE = 7;
layout(set = 0, binding = 0) buffer Y { uint y[]; };
void main() { y[gl_GlobalInvocationID.x] = VALUE; }
"""


class Tree:
    """A small shader tree; `files` are its bytes by name."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.output = root / "out"
        repository = source_root()
        assert repository is not None
        library = root / "shaders/slang/lib"
        library.mkdir(parents=True)
        shutil.copy(repository / "shaders/slang/lib/kernel.slang", library)
        self.write("slang/lib/scale.h", HEADER)
        self.write("slang/unit/scale.slang", SOURCE)
        self.write("slang/unit/scale.toml", TABLE)
        self.write("glsl/unit/seven.comp", GLSL)
        self.write("glsl/unit/seven.toml", '[axes]\nmode = ["ssbo"]\n')

    def write(self, name: str, text: str) -> None:
        path = self.root / "shaders" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def build(self, *patterns: str) -> builder.BuildReport:
        return build(root=self.root, output=self.output, patterns=patterns, jobs=2)

    def manifest(self) -> Manifest:
        return Manifest(self.output, read_document(self.output), self.root)

    def digests(self) -> dict[str, int]:
        return {v.name: v.digest for v in self.manifest()}

    def bytes(self) -> dict[str, bytes]:
        return {
            p.relative_to(self.output).as_posix(): p.read_bytes()
            for p in sorted(self.output.rglob("*"))
            if p.is_file() and p.name != ".lock"
        }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    tree = Tree(tmp_path_factory.mktemp("built"))
    report = tree.build()
    assert (report.variants, report.compiled) == (5, 5)
    return tree


@pytest.fixture
def tree(built: Tree, tmp_path: Path) -> Tree:
    """A copy of the built tree that a test may change."""
    shutil.copytree(built.root, tmp_path / "copy")
    copy = object.__new__(Tree)
    copy.root, copy.output = tmp_path / "copy", tmp_path / "copy/out"
    return copy


def test_reflection_reaches_the_manifest(built: Tree) -> None:
    manifest = built.manifest()
    bda = manifest.variant("unit/scale", mode="bda", step=2)
    assert bda.entries["scale"].workgroup == (64, 1, 1)
    assert bda.entries["copy"].workgroup == (8, 4, 1)
    assert bda.entries["scale"].push_size == 24
    assert bda.entries["scale"].bindings == ()
    assert bda.push_layout == (("x", 0, 8), ("y", 8, 8), ("n", 16, 4), ("factor", 20, 4))
    assert "PhysicalStorageBufferAddresses" in bda.capabilities
    ssbo = manifest.variant("unit/scale", mode="ssbo", step=2)
    assert ssbo.entries["scale"].bindings == (0, 1)
    assert [m[1:] for m in ssbo.push_layout] == [m[1:] for m in bda.push_layout]
    assert "PhysicalStorageBufferAddresses" not in ssbo.capabilities
    seven = manifest.variant("unit/seven", mode="ssbo")
    assert seven.entries["main"].push_size == 0
    assert seven.spec_constants == ((3, "u32"),)
    assert seven.spirv()[:4] == b"\x03\x02\x23\x07"


def test_compilers_are_recorded(built: Tree) -> None:
    compilers = built.manifest().compilers
    assert set(compilers) == {"slangc", "glslangValidator", "spirv-val"}
    assert "precise" in compilers["slangc"]["flags"]
    assert all(c["version"] for c in compilers.values())


def test_unknown_variants_say_what_there_is(built: Tree) -> None:
    manifest = built.manifest()
    with pytest.raises(UnknownNameError, match=r"asked: unit/scael; .* did you mean 'unit/scale'"):
        manifest.variants("unit/scael")
    with pytest.raises(UnknownNameError, match=r"no such axis; asked: stepp; allowed: mode, step"):
        manifest.variants("unit/scale", stepp=2)
    with pytest.raises(
        UnknownNameError, match=r"unit/scale\[mode=bda,step=4\]; allowed: unit/scale\[mode=bda,step=2\]"
    ):
        manifest.variant("unit/scale", mode="bda", step=4)
    with pytest.raises(UnknownNameError, match="a value for each axis"):
        manifest.variant("unit/scale", mode="bda")
    assert len(manifest.variants("unit/scale", mode="bda")) == 2


def test_same_bytes_in_another_folder(built: Tree, tmp_path: Path) -> None:
    other = Tree(tmp_path / "elsewhere")
    other.build()
    assert other.bytes() == built.bytes()


def test_nothing_changed_nothing_compiled(tree: Tree) -> None:
    before = tree.bytes()
    assert tree.build().compiled == 0
    (tree.root / "shaders/slang/unit/scale.slang").touch()
    assert tree.build().compiled == 0
    assert tree.bytes() == before


def test_check_writes_nothing_and_tells_the_difference(tree: Tree) -> None:
    before = tree.bytes()
    assert builder.check(root=tree.root, output=tree.output) == []
    tree.write("slang/lib/scale.h", HEADER.replace("v * STEP", "v + STEP"))
    wrong = builder.check(root=tree.root, output=tree.output)
    assert wrong == [
        f"unit/scale[mode={m},step={s}]: the sources give other bytes"
        for m in ("bda", "ssbo")
        for s in (2, 3)
    ]
    assert tree.bytes() == before


def test_a_sampled_check_compiles_its_share_and_trusts_no_other_source(tree: Tree) -> None:
    seen: list[str] = []

    def checked(share: float) -> list[str]:
        seen.clear()
        return builder.check(
            root=tree.root, output=tree.output, share=share, progress=lambda d, n, name: seen.append(name)
        )

    assert checked(0.2) == [] and len(seen) == 1
    assert checked(0.5) == [] and len(seen) == 3
    # Modules that the record calls current, but that are another variant's.
    path = tree.output / "manifest.json"
    document = json.loads(path.read_text())
    rows = document["stems"]["unit/scale"]["variants"]
    for row, other in zip(rows, reversed([dict(r) for r in rows]), strict=True):
        row.update(file=other["file"], checksum=other["checksum"])
    path.write_text(json.dumps(document))
    assert len(checked(1.0)) == 4
    assert 1 <= len(checked(0.5)) <= 3
    # What was built from other sources is found whatever the share.
    tree.write("slang/lib/scale.h", HEADER.replace("v * STEP", "v + STEP"))
    assert len(checked(0.01)) == 4


@pytest.mark.parametrize(
    ("name", "old", "new", "moved"),
    [
        ("slang/lib/scale.h", "v * STEP", "v + STEP", 4),
        ("slang/lib/scale.h", "{", "{ /* reason */", 4),  # same code, but the bytes read differ
        ("slang/unit/scale.toml", "UNUSED = 1", "UNUSED = 2", 4),
        ("slang/unit/scale.toml", "[2, 3]", "[2, 3, 4]", 0),
        ("slang/unit/scale.toml", '["scale", "copy"]', '["scale"]', 4),
        ("slang/unit/scale.toml", "[defines]", '[flags]\n"-g0" = "a reason"\n[defines]', 4),
        ("slang/unit/_other.h", "", "// not read by anything", 0),
        ("glsl/unit/seven.comp", "= 7", "= 8", 1),
    ],
)
def test_digests_move_with_what_they_cover(tree: Tree, name: str, old: str, new: str, moved: int) -> None:
    before = tree.digests()
    path = tree.root / "shaders" / name
    text = path.read_text() if path.exists() else ""
    tree.write(name, text.replace(old, new) if text else new)
    tree.build()
    after = tree.digests()
    assert sum(before[n] != after[n] for n in before) == moved


def test_an_include_that_would_now_be_found_first(tree: Tree) -> None:
    tree.write("slang/unit/scale.h", HEADER.replace("*", "-"))
    assert tree.build().compiled == 4
    assert "shaders/slang/unit/scale.h" in tree.manifest()._record("unit/scale")["files"]


def test_broken_shader_keeps_the_old_output(tree: Tree) -> None:
    before = tree.bytes()
    tree.write("slang/unit/scale.slang", SOURCE.replace("pc.factor", "pc.faktor"))
    with pytest.raises(ShaderBuildError) as caught:
        tree.build()
    text = str(caught.value)
    assert text.startswith("shaders/slang/unit/scale.slang:7: slangc refuses unit/scale[mode=")
    assert "'faktor' is not a member" in text
    assert tree.bytes() == before
    tree.write("slang/unit/scale.slang", SOURCE)
    assert tree.build().compiled == 0


def test_broken_glsl_and_the_rest_goes_on(tree: Tree) -> None:
    tree.write("glsl/unit/seven.comp", GLSL.replace("= VALUE", "= VALUES"))
    tree.write("slang/lib/scale.h", HEADER.replace("*", "-"))
    before = tree.digests()
    with pytest.raises(
        ShaderBuildError, match=r"(?s)^shaders/glsl/unit/seven.comp:5: glslangValidator refuses.*VALUES"
    ):
        tree.build()
    after = tree.digests()
    assert [n for n in after if after[n] == before[n]] == ["unit/seven[mode=ssbo]"]
    with pytest.raises(ShaderBuildError, match="older than its sources.*seven.comp"):
        tree.manifest().variant("unit/seven", mode="ssbo").spirv()
    assert tree.build("scale").compiled == 0


def test_an_entry_point_without_literal_workgroup(tree: Tree) -> None:
    tree.write("glsl/unit/seven.comp", GLSL.replace("local_size_x = 32", "local_size_x_id = 1"))
    with pytest.raises(ShaderBuildError, match="no literal workgroup size"):
        tree.build()


def test_unused_axis(tree: Tree) -> None:
    tree.write("slang/unit/scale.toml", TABLE.replace("step = [2, 3]", "step = [2]\nlanes = [4, 8]"))
    with pytest.raises(ShaderBuildError, match="axis lanes is not used"):
        tree.build()


def test_stale_and_damaged_output_is_noticed(tree: Tree) -> None:
    variant = tree.manifest().variant("unit/scale", mode="bda", step=2)
    content = variant.spirv()
    variant.file.write_bytes(content[:-4] + b"\0\0\0\0")
    with pytest.raises(ShaderBuildError, match="damaged.*next: "):
        tree.manifest().variant("unit/scale", mode="bda", step=2).spirv()
    variant.file.unlink()
    with pytest.raises(ShaderBuildError, match="cannot be read.*next: "):
        tree.manifest().variant("unit/scale", mode="bda", step=2).spirv()
    assert tree.build().compiled == 1
    assert tree.manifest().variant("unit/scale", mode="bda", step=2).spirv() == content
    tree.write("slang/lib/scale.h", HEADER + "\n")
    with pytest.raises(ShaderBuildError, match="older than its sources.*scale.h.*next: "):
        tree.manifest().variant("unit/scale", mode="bda", step=2).spirv()
    assert tree.manifest().stale_sources() == ["shaders/slang/lib/scale.h"]


def test_compressed_modules_of_a_wheel(tree: Tree) -> None:
    variants = tree.manifest().variants("unit/scale")
    contents = {v.file.name: v.spirv() for v in variants}
    assert len(contents) > 1
    pack = pack_of(variants[0].file.parent)
    pack.write_bytes(pack_modules(contents))
    for variant in variants:
        variant.file.unlink()
    assert [v.spirv() for v in variants] == [contents[v.file.name] for v in variants]
    assert pack_modules(dict(reversed(contents.items()))) == pack.read_bytes()
    damaged = pack.read_bytes()[:-20]
    pack.unlink()
    other = tree.output / "unit" / "other"
    pack_of(other).write_bytes(damaged)
    with pytest.raises(ValueError, match="other"):
        read_module(other / variants[0].file.name)


def test_damaged_manifest(tree: Tree) -> None:
    path = tree.output / "manifest.json"
    for content, message in (
        ("{", "damaged"),
        ('{"format": 99}', "another format"),
        ("[]", "another format"),
    ):
        path.write_text(content)
        with pytest.raises(ShaderBuildError, match=message):
            read_document(tree.output)
    assert tree.build().compiled == 5
    path.unlink()
    with pytest.raises(ShaderBuildError, match=r"have not been built.*python build_shaders.py"):
        load_manifest(tree.output)


def test_output_of_removed_variants_goes(tree: Tree) -> None:
    tree.write("slang/unit/scale.toml", TABLE.replace("[2, 3]", "[3]"))
    shutil.rmtree(tree.root / "shaders/glsl/unit")
    tree.build()
    assert len([n for n in tree.bytes() if n.endswith(".spv")]) == 2
    assert tree.manifest().stems == ("unit/scale",)


def test_a_compiler_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tree: Tree) -> None:
    from fuelvk.shaderbuild import toolchain

    toolchain.find.cache_clear()
    monkeypatch.setenv("FUELVK_SLANGC", "/nonexistent/slangc")
    with pytest.raises(ShaderBuildError, match="FUELVK_SLANGC names no program"):
        tree.build()
    toolchain.find.cache_clear()


def test_the_digest_covers_compiler_version_and_flags(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    real = builder.compiler_for
    before = tree.digests()
    monkeypatch.setattr(
        builder,
        "compiler_for",
        lambda name: replace(real(name), tool=replace(real(name).tool, version="next")),
    )
    assert tree.build().compiled == 5
    other_version = tree.digests()
    monkeypatch.setattr(
        builder, "compiler_for", lambda name: replace(real(name), flags=(*real(name).flags, "-g0"))
    )
    tree.build()
    assert all(len({before[n], other_version[n], tree.digests()[n]}) == 3 for n in before)


def test_the_manifest_is_plain_data(tree: Tree) -> None:
    text = json.dumps(read_document(tree.output))
    assert str(tree.root) not in text
