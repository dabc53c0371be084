"""The two build steps that pyproject.toml cannot say: shaders to SPIR-V, and the C kernels."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from cpu_reference._parallel import ParallelBuild  # noqa: E402


class BuildShaders(build_py):
    """Compiles the shaders into the package, compressed, and drops what an earlier build left behind."""

    def run(self) -> None:
        from fuelvk.shaderbuild import build
        from fuelvk.shaderbuild.manifest import pack_modules, pack_of

        report = build(root=ROOT, output=ROOT / "fuelvk" / "_spirv")
        print(f"shaders: {report.variants} variants, {report.compiled} compiled, {report.seconds:.1f} s")
        if not self.editable_mode:
            shutil.rmtree(Path(self.build_lib) / "fuelvk" / "_spirv", ignore_errors=True)
        super().run()
        if not self.editable_mode:
            modules = list((Path(self.build_lib) / "fuelvk" / "_spirv").rglob("*.spv"))
            for folder in {module.parent for module in modules}:
                found = {m.name: m.read_bytes() for m in modules if m.parent == folder}
                pack_of(folder).write_bytes(pack_modules(found))
                shutil.rmtree(folder)


class BuildKernels(ParallelBuild):
    """Compiles the C kernels. A wheel without them is an error; an editable install goes on, and says so."""

    def run(self) -> None:
        for extension in self.extensions:
            extension.optional = self.editable_mode
        super().run()
        for extension in self.extensions:
            if not Path(self.get_ext_fullpath(extension.name)).is_file():
                self.warn(
                    "the C kernels of the CPU reference were NOT built: NumPy will do their work, slowly. "
                    "Install a C compiler and the Python headers, then install again."
                )


setup(
    cmdclass={"build_py": BuildShaders, "build_ext": BuildKernels},
    cffi_modules=["cpu_reference/c/_build.py:ffibuilder"],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
