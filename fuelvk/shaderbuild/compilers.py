"""One class per compiler, same interface: a table and a variant in, SPIR-V and the files read out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fuelvk.base.errors import ShaderBuildError
from fuelvk.shaderbuild import toolchain
from fuelvk.shaderbuild.resident import Resident
from fuelvk.shaderbuild.tables import Table, VariantSpec
from fuelvk.shaderbuild.toolchain import Tool

# spirv_1_3: from 1.4 on slangc copies structs with OpCopyLogical, which Mesa 22 refuses.
# fp-mode precise: forbids contraction; without it drivers fold the exact steps of compensated arithmetic.
# 41012 warns that a subgroup operation goes beyond the bare profile; the device features answer for that.
# O0: the pinned package has no SPIRV-Tools; optimised modules crash one driver and are no faster elsewhere.
SLANG_FLAGS = (
    "-target",
    "spirv",
    "-profile",
    "spirv_1_3",
    "-O0",
    "-fp-mode",
    "precise",
    "-fvk-use-entrypoint-name",
    "-warnings-disable",
    "41012",
)
GLSL_FLAGS = ("-V", "--target-env", "vulkan1.1")
VALIDATION_TARGET = "vulkan1.2"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A validated module, the files it was made from (relative to the root), and the compiler's warnings."""

    spirv: bytes
    closure: tuple[str, ...]
    warnings: str


class Compiler(Protocol):
    """What the build needs of a compiler."""

    @property
    def tool(self) -> Tool: ...

    @property
    def validator(self) -> Tool: ...

    @property
    def flags(self) -> tuple[str, ...]: ...

    def compile(self, root: Path, table: Table, variant: VariantSpec, scratch: Path) -> Compiled:
        """Returns the module; ``scratch`` is an empty folder for this call alone. Raises ShaderBuildError."""
        ...

    def close(self) -> None:
        """Ends what ``compile`` left running."""
        ...


@dataclass(frozen=True, slots=True)
class SlangCompiler:
    """slangc: every entry point of a source in one module.

    ``resident`` are processes with the same compiler loaded, which save slangc's start-up; what they do not compile,
    slangc does, and finds the words for it.
    """

    tool: Tool
    validator: Tool
    flags: tuple[str, ...] = SLANG_FLAGS
    resident: Resident | None = None

    def compile(self, root: Path, table: Table, variant: VariantSpec, scratch: Path) -> Compiled:
        output, depfile = scratch / "out.spv", scratch / "out.d"
        arguments = [table.source, *self.flags, *table.flags, *_includes(table)]
        arguments += [f"-D{name}={value}" for name, value in variant.defines]
        for entry in table.entries:
            arguments += ["-entry", entry, "-stage", "compute"]
        answer = None if self.resident is None else self.resident.ask(arguments, output, root)
        if answer is not None and answer.status == 0:
            closure = _closure(root, table, answer.files)
            return _finished(self.validator, root, table, variant, output, closure, answer.words)
        arguments += ["-o", str(output), "-depfile", str(depfile)]
        return _run(self.tool, self.validator, root, table, variant, arguments, output, depfile)

    def close(self) -> None:
        if self.resident is not None:
            self.resident.close()


@dataclass(frozen=True, slots=True)
class GlslCompiler:
    """glslangValidator: one entry point, main."""

    tool: Tool
    validator: Tool
    flags: tuple[str, ...] = GLSL_FLAGS

    def compile(self, root: Path, table: Table, variant: VariantSpec, scratch: Path) -> Compiled:
        output, depfile = scratch / "out.spv", scratch / "out.d"
        arguments = [*self.flags, *table.flags, *(flag.replace(" ", "") for flag in _includes(table))]
        arguments += [f"-D{name}={value}" for name, value in variant.defines]
        arguments += ["-o", str(output), "--depfile", str(depfile), table.source]
        return _run(self.tool, self.validator, root, table, variant, arguments, output, depfile)

    def close(self) -> None:
        """Nothing is left running."""


def compiler_for(language: str, *, resident: bool = True) -> Compiler:
    """Returns the compiler of a shader language, found or fetched; ``resident`` lets it stay between modules."""
    validator = toolchain.find("spirv-val")
    if language == "slang":
        tool = toolchain.find("slangc")
        return SlangCompiler(tool, validator, resident=Resident.beside(tool) if resident else None)
    return GlslCompiler(toolchain.find("glslangValidator"), validator)


def _includes(table: Table) -> list[str]:
    base = f"shaders/{table.language.name}"
    return [f"-I{base}/{table.language.library}", f"-I{Path(table.source).parent.as_posix()}"]


def _run(
    tool: Tool,
    validator: Tool,
    root: Path,
    table: Table,
    variant: VariantSpec,
    arguments: Sequence[str],
    output: Path,
    depfile: Path,
) -> Compiled:
    done = tool.run(arguments, root)
    words = (done.stdout + "\n" + done.stderr).strip()
    if done.returncode or not output.is_file():
        raise _compile_error(tool, table, variant, words or f"exit status {done.returncode}, no message")
    closure = _closure(root, table, _listed(depfile))
    return _finished(validator, root, table, variant, output, closure, words)


def _finished(
    validator: Tool,
    root: Path,
    table: Table,
    variant: VariantSpec,
    output: Path,
    closure: tuple[str, ...],
    words: str,
) -> Compiled:
    checked = validator.run(["--target-env", VALIDATION_TARGET, str(output)], root)
    if checked.returncode:
        raise ShaderBuildError(
            f"{table.source}: spirv-val refuses the module of {variant.name}",
            seen="\n" + (checked.stdout + checked.stderr).strip(),
            hint="either the source asks for something Vulkan 1.2 does not allow, or the compiler erred",
        )
    return Compiled(output.read_bytes(), closure, words.strip() if "warning" in words.lower() else "")


_PLACES = (
    re.compile(r"-->\s*(?P<file>[^\n]+?):(?P<line>\d+):\d+"),  # slangc
    re.compile(r"(?:ERROR|WARNING): (?P<file>[^:\n]+):(?P<line>\d+):"),  # glslang
    re.compile(r"(?P<file>[^\s():]+)\((?P<line>\d+)\)"),  # older slangc
)


def _compile_error(tool: Tool, table: Table, variant: VariantSpec, words: str) -> ShaderBuildError:
    first = max(words.find("error["), 0)  # warnings come before
    place = next((m for pattern in _PLACES if (m := pattern.search(words, first))), None)
    where = f"{place['file']}:{place['line']}" if place else table.source
    return ShaderBuildError(f"{where}: {tool.name} refuses {variant.name}", seen="\n" + words)


def _listed(depfile: Path) -> list[str]:
    """Returns the files that a Make-style dependency file names."""
    text = depfile.read_text(encoding="utf-8").replace("\\\n", " ")
    _, _, listed = text.partition(": ")
    return [raw.replace("\\ ", " ") for raw in re.split(r"(?<!\\)\s+", listed.strip())]


def _closure(root: Path, table: Table, files: Iterable[str]) -> tuple[str, ...]:
    """Returns the files read, relative to ``root``, sorted."""
    names: set[str] = {table.source}
    for name in files:
        path = Path(name)
        path = (path if path.is_absolute() else root / path).resolve()
        try:
            names.add(path.relative_to(root.resolve()).as_posix())
        except ValueError:
            raise ShaderBuildError(
                f"{table.source} includes a file outside the repository",
                seen=str(path),
                hint="move it under shaders/",
            ) from None
    return tuple(sorted(names))
