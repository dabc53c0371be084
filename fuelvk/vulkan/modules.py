"""SPIR-V as it is loaded: float execution modes are added where the device offers them.

The compilers have no switch for the modes of SPV_KHR_float_controls, and which of them exist is the device's
to say, so they are written into the module when it is loaded. Layout and numbers follow the SPIR-V
specification, 2.3 and 3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from fuelvk.base.errors import FormatError
from fuelvk.vulkan.features import FloatControls

_MAGIC = 0x07230203
_HEADER_WORDS = 5
_OP_EXTENSION, _OP_EXT_INST_IMPORT, _OP_MEMORY_MODEL = 10, 11, 14
_OP_ENTRY_POINT, _OP_EXECUTION_MODE, _OP_CAPABILITY, _OP_TYPE_FLOAT, _OP_FUNCTION = 15, 16, 17, 22, 54
_OP_EXECUTION_MODE_ID = 331
_EXTENSION = "SPV_KHR_float_controls"
_SPIRV_1_4 = 0x00010400

#: Values of VkShaderFloatControlsIndependence.
_ONLY_32, _NONE = 0, 2


@dataclass(frozen=True, slots=True)
class _Mode:
    mode: int
    capability: int


_DENORM_PRESERVE = _Mode(4459, 4464)
_SIGNED_ZERO_INF_NAN = _Mode(4461, 4466)
_ROUNDING_RTE = _Mode(4462, 4467)


@dataclass(slots=True)
class _Layout:
    """Word offsets of the places where instructions are put in, and what is declared already."""

    capabilities_end: int = _HEADER_WORDS
    extensions_end: int = 0
    modes_end: int = 0
    capabilities: frozenset[int] = frozenset()
    extensions: frozenset[str] = frozenset()
    entries: tuple[int, ...] = ()
    modes: frozenset[tuple[int, int, int]] = frozenset()
    float_widths: frozenset[int] = frozenset()


def with_float_controls(spirv: bytes, controls: FloatControls) -> bytes:
    """Returns the module with float execution modes declared, as far as ``controls`` offers them together.

    Rounding to nearest even, kept denormals, and kept signed zeros, infinities and NaN, for every entry point
    and every float width the module uses.
    """
    words = _words(spirv)
    layout = _scan(words)
    wanted = _modes_for(layout.float_widths, controls)
    modes = [
        (entry, mode, width)
        for entry in layout.entries
        for mode, width in wanted
        if (entry, mode.mode, width) not in layout.modes
    ]
    if not modes:
        return spirv
    needed = sorted({mode.capability for _, mode, _ in modes} - layout.capabilities)
    capabilities = [word for capability in needed for word in (2 << 16 | _OP_CAPABILITY, capability)]
    extension = _extension_words() if _EXTENSION not in layout.extensions and words[1] < _SPIRV_1_4 else []
    declared = [
        word
        for entry, mode, width in modes
        for word in (4 << 16 | _OP_EXECUTION_MODE, entry, mode.mode, width)
    ]
    cut_1 = layout.capabilities_end
    cut_2 = max(layout.extensions_end, cut_1)
    cut_3 = layout.modes_end
    patched = [*words[:cut_1], *capabilities, *words[cut_1:cut_2], *extension, *words[cut_2:cut_3], *declared]
    patched += words[cut_3:]
    return struct.pack(f"<{len(patched)}I", *patched)


def float_widths(spirv: bytes) -> frozenset[int]:
    """Returns the float widths, in bits, that a module declares."""
    return _scan(_words(spirv)).float_widths


def _words(spirv: bytes) -> tuple[int, ...]:
    if len(spirv) % 4 or len(spirv) < 4 * _HEADER_WORDS:
        raise FormatError(
            "not a SPIR-V module", seen=f"{len(spirv)} bytes", allowed="a multiple of 4, at least 20"
        )
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    if words[0] != _MAGIC:
        raise FormatError(
            "not a SPIR-V module", seen=f"first word {words[0]:#010x}", allowed=f"{_MAGIC:#010x}"
        )
    return words


def _instructions(words: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    """Yields (opcode, start, end) of each instruction."""
    at = _HEADER_WORDS
    while at < len(words):
        length = words[at] >> 16
        if not length or at + length > len(words):
            raise FormatError("damaged SPIR-V module", seen=f"an instruction of {length} words at word {at}")
        yield words[at] & 0xFFFF, at, at + length
        at += length


def _scan(words: tuple[int, ...]) -> _Layout:
    layout = _Layout()
    capabilities, extensions, entries, modes, widths = set(), set(), [], set(), set()
    for op, start, end in _instructions(words):
        if op == _OP_FUNCTION:
            break
        if op == _OP_CAPABILITY:
            capabilities.add(words[start + 1])
            layout.capabilities_end = end
        elif op == _OP_EXTENSION:
            extensions.add(_text(words[start + 1 : end]))
            layout.extensions_end = end
        elif op == _OP_ENTRY_POINT:
            entries.append(words[start + 2])
            layout.modes_end = end
        elif op in (_OP_EXECUTION_MODE, _OP_EXECUTION_MODE_ID):
            if end - start == 4:
                modes.add((words[start + 1], words[start + 2], words[start + 3]))
            layout.modes_end = end
        elif op == _OP_TYPE_FLOAT:
            widths.add(words[start + 2])
    layout.capabilities, layout.extensions = frozenset(capabilities), frozenset(extensions)
    layout.entries, layout.modes, layout.float_widths = tuple(entries), frozenset(modes), frozenset(widths)
    return layout


def _modes_for(widths: frozenset[int], controls: FloatControls) -> list[tuple[_Mode, int]]:
    rounding = _allowed(widths, controls.rounding_rte, controls.rounding_independence)
    denorms = _allowed(widths, controls.denorm_preserve, controls.denorm_independence)
    zeros = widths & controls.signed_zero_inf_nan
    return (
        [(_ROUNDING_RTE, width) for width in sorted(rounding)]
        + [(_DENORM_PRESERVE, width) for width in sorted(denorms)]
        + [(_SIGNED_ZERO_INF_NAN, width) for width in sorted(zeros)]
    )


def _allowed(widths: frozenset[int], offered: frozenset[int], independence: int) -> frozenset[int]:
    """Returns the widths that may be given a mode; without independence all of a module's get it or none."""
    if independence == _NONE:
        return widths if widths <= offered else frozenset()
    if independence == _ONLY_32:
        others = widths - {32}
        return (widths & offered & {32}) | (others if others <= offered else frozenset())
    return widths & offered


def _text(words: tuple[int, ...]) -> str:
    return struct.pack(f"<{len(words)}I", *words).split(b"\0", 1)[0].decode(errors="replace")


def _extension_words() -> list[int]:
    raw = _EXTENSION.encode() + b"\0"
    raw += b"\0" * (-len(raw) % 4)
    return [(1 + len(raw) // 4) << 16 | _OP_EXTENSION, *struct.unpack(f"<{len(raw) // 4}I", raw)]
