"""The correctly rounded functions give the same bits in Slang, on this configuration's device, as in C."""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuelvk.base.errors import ShaderBuildError
from fuelvk.shaderbuild import toolchain
from fuelvk.shaderbuild.compilers import SLANG_FLAGS
from fuelvk.vulkan import Device, DeviceInfo, open_device
from tests.unit.test_strict_c import FLAGS, HERE, LIBRARY, ROUNDED, compiler, f32_inputs

Array = np.ndarray[Any, np.dtype[Any]]
SOURCE = Path(__file__).parent / "strict_map.slang"


@pytest.fixture(scope="module")
def spirv(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A module with one entry point a function."""
    folder = tmp_path_factory.mktemp("strict_spirv")
    try:
        tool = toolchain.find("slangc")
    except ShaderBuildError as error:
        pytest.skip(f"needs slangc: {error}")
    maps = "-DMAPS=" + " ".join(f"MAP({name})" for name in ROUNDED)
    output = folder / "map.spv"
    done = tool.run([str(SOURCE), *SLANG_FLAGS, maps, f"-I{LIBRARY}", "-o", str(output)], folder)
    assert done.returncode == 0, done.stderr
    return output.read_bytes()


@pytest.fixture(scope="module")
def buffers(info: DeviceInfo) -> Iterator[Device]:
    """The device with storage buffers."""
    with open_device(info, addressing="ssbo") as opened:
        yield opened
        opened.idle()


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The same functions as C."""
    folder = tmp_path_factory.mktemp("strict")
    lines = ['#include "strict/extra.h"']
    for name in ROUNDED:
        loop = f"for (long i = 0; i < n; i++) y[i] = st_{name}_cr(x[i]);"
        lines.append(f"void map_{name}(const uint *x, uint *y, long n) {{ {loop} }}")
    (folder / "map.c").write_text("\n".join(lines))
    command = [compiler(), *FLAGS, "-O1", "-shared", "-fPIC", "map.c", "-o", "map.so"]
    subprocess.run(command, check=True, cwd=folder)
    return ctypes.CDLL(str(folder / "map.so"))


def table() -> Array:
    """The words of the library's table."""
    text = (LIBRARY / "strict" / "tables_constants.h").read_text().split("ST_TABLE_WORDS")[1]
    return np.array([int(word, 16) for word in re.findall(r"0x[0-9a-f]{8}", text)], np.uint32)


def inputs(name: str) -> Array:
    """Bits over the whole range, subnormals among them, and the stored inputs next to a tie."""
    parts = [f32_inputs(1 << 13).view(np.uint32)]
    hard = HERE / f"strict_hard_{name}.u32"
    if hard.exists():
        parts.append(np.fromfile(hard, np.uint32))
    return np.concatenate(parts)


@pytest.mark.parametrize("name", ROUNDED)
def test_slang_gives_the_bits_of_c(buffers: Device, spirv: bytes, strict: ctypes.CDLL, name: str) -> None:
    bits, words = inputs(name), table()
    source, target, rows = (buffers.alloc(n) for n in (bits.nbytes, bits.nbytes, words.nbytes))
    buffers.write(source, bits)
    buffers.write(rows, words)
    pipeline = buffers.pipeline("strict_map", lambda: spirv, f"map_{name}", 3, 28)
    recorder = buffers.recorder()
    groups = (-(-bits.size // 64), 1, 1)
    recorder.dispatch(pipeline, groups, (source, target, rows), 0b10, struct.pack("<I", bits.size))
    buffers.wait(buffers.submit(recorder.finish()))
    got = np.frombuffer(bytes(buffers.read(target, bits.nbytes)), np.uint32)
    want = np.empty_like(bits)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (bits, want)]
    getattr(strict, f"map_{name}")(*pointers, ctypes.c_long(bits.size))
    assert np.array_equal(got, want), [hex(v) for v in bits[got != want][:8]]
