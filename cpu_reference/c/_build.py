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
from setuptools import Distribution

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cpu_reference._parallel import ParallelBuild  # noqa: E402
from cpu_reference._sources import FOLDER, STRICT, build_digest, write_snapshot  # noqa: E402
from cpu_reference._table import FLAGS, KERNELS, MSVC_FLAGS, SOURCES, Kernel  # noqa: E402

MODULE = "cpu_reference._ckernels"


UNITS = ROOT / "build" / "units"
# The units that take longest to compile, which start first.
COSTLY = ("function.c", "attention.c", "rows.c", "pointwise.c")
UNIX_FLAGS = ("-g0", "-fvisibility=hidden")


def _arguments(kernel: Kernel) -> tuple[str, str]:
    """Returns the parameters and the arguments of a call of ``kernel``, as C text."""
    typed = [f"{a.ctype} {a.name}" for a in kernel.arguments] + ["int64_t begin", "int64_t end"]
    return ", ".join(typed), ", ".join(text.rsplit(" ", 1)[1].lstrip("*") for text in typed)


def _write_units() -> list[Path]:
    """Writes one translation unit per kernel file, which compile side by side, and returns them.

    The kernels are static and declared before their definition, so that the compiler checks one against the other;
    what crosses units are forwarders.
    """
    UNITS.mkdir(parents=True, exist_ok=True)
    paths = []
    for source in SOURCES:
        kernels = [k for k in KERNELS.values() if k.source == source]
        text = "#include <stdint.h>\n" + "".join(f"static {k.declaration}\n" for k in kernels)
        text += f'#include "{source}"\n'
        for kernel in kernels:
            typed, passed = _arguments(kernel)
            text += f"int fv_unit_{kernel.name}({typed}) {{ return {kernel.name}({passed}); }}\n"
        paths.append(UNITS / f"unit_{source}")
        if not paths[-1].is_file() or paths[-1].read_text(encoding="utf-8") != text:
            paths[-1].write_text(text, encoding="utf-8")
    return sorted(
        paths, key=lambda path: COSTLY.index(path.name[5:]) if path.name[5:] in COSTLY else len(COSTLY)
    )


def _builder() -> cffi.FFI:
    builder = cffi.FFI()
    builder.cdef(
        "\n".join(k.declaration for k in KERNELS.values()) + "\nextern const char *const fv_build_digest;"
    )
    # Hundreds of wrappers that only pass on their arguments: optimising them further brings nothing.
    text = '#include <stdint.h>\n#ifdef __GNUC__\n#pragma GCC optimize("O1")\n#endif\n'
    for kernel in KERNELS.values():
        typed, passed = _arguments(kernel)
        text += f"int fv_unit_{kernel.name}({typed});\n"
        text += f"static int {kernel.name}({typed}) {{ return fv_unit_{kernel.name}({passed}); }}\n"
    text += f'static const char *const fv_build_digest = "{build_digest()}";\n'
    builder.set_source(
        MODULE,
        text,
        sources=[path.relative_to(ROOT).as_posix() for path in _write_units()],
        include_dirs=[str(FOLDER), str(STRICT)],
        extra_compile_args=list(MSVC_FLAGS) if sys.platform == "win32" else [*FLAGS, *UNIX_FLAGS],
        depends=[str(FOLDER / name) for name in SOURCES],
        py_limited_api=True,
    )
    return builder


ffibuilder = _builder()
write_snapshot()


def compile_module(folder: Path) -> Path:
    """Compiles the module in ``folder`` and returns its path."""
    extension = ffibuilder.distutils_extension(str(folder))
    made, *units = extension.sources
    extension.sources = [*(str(ROOT / unit) for unit in units), str(Path(made).resolve())]
    command = ParallelBuild(Distribution({"name": "kernels", "ext_modules": [extension]}))
    command.build_lib, command.build_temp = str(folder), str(folder / "objects")
    command.ensure_finalized()
    command.run()
    return Path(command.get_ext_fullpath(extension.name))


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
        built = compile_module(Path(folder))
        target = package / built.name
        staged = target.with_name(f".{built.name}.{os.getpid()}")
        staged.write_bytes(built.read_bytes())
        staged.chmod(0o755)
        staged.replace(target)
    print(target)


if __name__ == "__main__":
    main()
