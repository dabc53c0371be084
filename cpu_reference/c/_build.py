"""Builds the C kernels as the extension module ``cpu_reference._ckernels`` (cffi, API mode, stable ABI).

``python cpu_reference/c/_build.py`` builds it in place; a package build names ``cpu_reference/c/_build.py:ffibuilder``
in ``cffi_modules``. Both also write the snapshot of the sources that an installed package needs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import cffi

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cpu_reference._sources import FOLDER, STRICT, build_digest, write_snapshot  # noqa: E402
from cpu_reference._table import FLAGS, KERNELS, MSVC_FLAGS, SOURCES  # noqa: E402

MODULE = "cpu_reference._ckernels"


def _builder() -> cffi.FFI:
    builder = cffi.FFI()
    builder.cdef(
        "\n".join(k.declaration for k in KERNELS.values()) + "\nextern const char *const fv_build_digest;"
    )
    # One translation unit: the compiler checks every declaration against its definition, and nothing but the
    # module's entry is exported.
    source = "\n".join(f'#include "{name}"' for name in SOURCES)
    source += f'\nstatic const char *const fv_build_digest = "{build_digest()}";\n'
    builder.set_source(
        MODULE,
        source,
        include_dirs=[str(FOLDER), str(STRICT)],
        extra_compile_args=list(MSVC_FLAGS) if sys.platform == "win32" else [*FLAGS, "-g0"],
        depends=[str(FOLDER / name) for name in SOURCES],
        py_limited_api=True,
    )
    return builder


ffibuilder = _builder()
write_snapshot()


def main() -> None:
    """Compiles the module and puts it beside the package, replacing an older one in one step.

    One built from the same sources is left alone, unless ``--force`` is given.
    """
    package = ROOT / "cpu_reference"
    digest = build_digest().encode()
    current = [
        p for p in package.glob("_ckernels.*") if p.suffix in (".so", ".pyd") and digest in p.read_bytes()
    ]
    if current and "--force" not in sys.argv[1:]:
        print(f"{current[0]} is up to date")
        return
    with tempfile.TemporaryDirectory() as folder:
        built = Path(ffibuilder.compile(tmpdir=folder))
        target = package / built.name
        staged = target.with_name(f".{built.name}.{os.getpid()}")
        staged.write_bytes(built.read_bytes())
        staged.chmod(0o755)
        staged.replace(target)
    print(target)


if __name__ == "__main__":
    main()
