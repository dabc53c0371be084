"""Revisions of the repository's own shaders: the same in any folder, moved by what they cover and by nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fuelvk.shaderbuild import Variant, build, load_manifest
from fuelvk.shaderbuild.manifest import Manifest, read_document
from fuelvk.shaderbuild.paths import source_root
from fuelvk.shaderbuild.tables import Table, discover

pytestmark = pytest.mark.build

HEADER = "shaders/slang/lib/strict/"


def closure(variant: Variant) -> list[str]:
    return list(variant._sources)


def pick() -> Variant:
    """The smallest variant of the repository that reads the strict headers."""
    found = [v for v in load_manifest() if any(name.startswith(HEADER) for name in closure(v))]
    if not found:
        pytest.skip("no shader of this build reads the strict headers")
    return min(found, key=lambda v: (v.file.stat().st_size, v.name))


def narrowed(table: Table, variant: Variant) -> str:
    """A table that builds this one variant: a digest covers defines, not the table they come from."""
    lines = [f"entries = {list(table.entries)}", "[axes]"]
    lines += [f"{axis} = {[value]!r}" for axis, value in variant.axes.items()]
    lines += ["[defines]", *(f"{name} = {value!r}" for name, value in table.defines.items())]
    lines += ["[flags]", *(f'"{flag}" = {reason!r}' for flag, reason in table.flags.items())]
    return "\n".join(lines) + "\n"


class Copy:
    """A folder with one shader of the repository, and everything it includes."""

    def __init__(self, root: Path, variant: Variant) -> None:
        repository = source_root()
        assert repository is not None
        self.root, self.variant = root, variant
        for name in closure(variant):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(repository / name, root / name)
        (table,) = (t for t in discover(repository, [variant.stem]) if t.stem == variant.stem)
        (root / table.path).write_text(narrowed(table, variant))

    def digest(self) -> int:
        output = self.root / "out"
        build(root=self.root, output=output)
        manifest = Manifest(output, read_document(output), self.root)
        return manifest.variant(self.variant.stem, **self.variant.axes).digest


@pytest.fixture(scope="module")
def variant() -> Variant:
    return pick()


def test_the_same_in_two_folders_and_on_a_second_build(variant: Variant, tmp_path: Path) -> None:
    one, other = Copy(tmp_path / "one", variant), Copy(tmp_path / "some where/else", variant)
    assert one.digest() == other.digest() == one.digest() == variant.digest != 0


def test_moved_by_a_shared_header_only_where_it_is_read(variant: Variant, tmp_path: Path) -> None:
    copy = Copy(tmp_path, variant)
    (tmp_path / HEADER / "unrelated.h").write_text("// read by nobody\n")
    assert copy.digest() == variant.digest
    header = tmp_path / next(name for name in closure(variant) if name.startswith(HEADER))
    header.write_bytes(header.read_bytes() + b"\n")
    moved = copy.digest()
    assert moved != variant.digest
    header.write_bytes(header.read_bytes()[:-1])
    assert copy.digest() == variant.digest


def test_the_digests_of_this_build_are_distinct() -> None:
    digests = [v.digest for v in load_manifest()]
    assert len(set(digests)) == len(digests)
    assert 0 not in digests
