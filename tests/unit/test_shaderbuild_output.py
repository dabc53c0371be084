"""The repository's own build output: what every module must be."""

from __future__ import annotations

import random
import subprocess
import sys
import zlib

import pytest

from fuelvk.shaderbuild import Variant, load_manifest
from fuelvk.shaderbuild.paths import source_root
from fuelvk.shaderbuild.reflect import reflect
from fuelvk.shaderbuild.relative import from_relative, to_relative
from fuelvk.shaderbuild.tables import discover

PUSH_LIMIT = 128  # bytes every Vulkan device offers
PORTABLE_INVOCATIONS = 128

VARIANTS = {v.name: v for v in load_manifest()}
ROOT = source_root()
assert ROOT is not None
LANGUAGE = {t.stem: t.language.name for t in discover(ROOT)}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys())
def variant(request: pytest.FixtureRequest) -> Variant:
    made: Variant = request.param
    return made


def test_every_variant_of_every_table_is_built() -> None:
    assert ROOT is not None
    assert sorted(VARIANTS) == sorted(v.name for t in discover(ROOT) for v in t.expand())


def test_module(variant: Variant) -> None:
    facts = reflect(variant.spirv())
    assert facts.version <= (1, 3)
    assert facts.entries == variant.entries
    # Drivers fold exact arithmetic away without the decoration, and no test of a product would show it.
    if LANGUAGE[variant.stem] == "slang":
        assert facts.no_contraction == facts.contractible
    for name, entry in variant.entries.items():
        assert entry.push_size <= PUSH_LIMIT, name
        assert (variant.axes["mode"] == "bda") == ("PhysicalStorageBufferAddresses" in variant.capabilities)


def test_loading_is_light() -> None:
    code = (
        "import sys; from fuelvk.shaderbuild import load_manifest; load_manifest();"
        "print([m for m in ('numpy', 'subprocess', 'tomllib', 'vulkan', 'platformdirs') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_relative_ids_come_back() -> None:
    modules = [v.spirv() for v in load_manifest().variants("reduce/floats")]
    assert all(to_relative(m) != m and from_relative(to_relative(m)) == m for m in modules)
    rng = random.Random(1)
    for words in range(40):  # not SPIR-V at all
        noise = rng.randbytes(4 * words)
        assert from_relative(to_relative(noise)) == noise
    plain, relative = (zlib.compress(b"".join(make(m) for m in modules)) for make in (bytes, to_relative))
    assert len(relative) < 0.8 * len(plain)
