"""Every exception fuelvk raises, in one tree.

FuelvkError
├── DriverNotFoundError            no loader, no driver, or none that can compute
├── DeviceLostError                the device stopped answering; open a new one
├── OutOfDeviceMemoryError         also MemoryError
├── ValidationError                a validation layer message (tests and FUELVK_VALIDATION)
├── VulkanCallError                any other failed native call
├── UnsupportedError               legal, but nothing here can do it; also NotImplementedError's meaning, not its type
│   └── ToleranceError             kernels exist, but no claim that is believed fits the tolerance asked for
├── ShapeError                     also ValueError
├── DTypeError                     also TypeError
├── ParameterError                 also ValueError
├── UnknownNameError               also LookupError
├── IndexOutOfRangeError           also IndexError
├── ShaderBuildError               carries the compiler's words
├── FormatError                    a file that is not what it should be
└── RegistryError                  two owners of one id, a frozen registry, an incomplete op file

A message says four things where they apply: what was asked, what was seen, what is allowed, what to do next.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "DTypeError",
    "DeviceLostError",
    "DriverNotFoundError",
    "FormatError",
    "FuelvkError",
    "IndexOutOfRangeError",
    "OutOfDeviceMemoryError",
    "ParameterError",
    "RegistryError",
    "ShaderBuildError",
    "ShapeError",
    "ToleranceError",
    "UnknownNameError",
    "UnsupportedError",
    "ValidationError",
    "VulkanCallError",
    "closest",
]


class FuelvkError(Exception):
    """Root of all errors. The four facts are attributes as well as text."""

    def __init__(
        self,
        message: str,
        *,
        asked: object = None,
        seen: object = None,
        allowed: object = None,
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.asked = asked
        self.seen = seen
        self.allowed = allowed
        self.hint = hint
        parts = [message]
        for label, value in (("asked", asked), ("seen", seen), ("allowed", allowed), ("next", hint)):
            if value is not None:
                parts.append(f"{label}: {value}")
        super().__init__("; ".join(parts))


class DriverNotFoundError(FuelvkError):
    """No Vulkan loader, no driver, or no device that can compute."""


class DeviceLostError(FuelvkError):
    """The device stopped answering. Its buffers are gone; a new device can be opened in this process."""


class OutOfDeviceMemoryError(FuelvkError, MemoryError):
    """An allocation did not fit the budget or the heap."""


class ValidationError(FuelvkError):
    """A message of the Vulkan validation layers."""


class VulkanCallError(FuelvkError):
    """A native call failed with a result no other class stands for."""


class UnsupportedError(FuelvkError):
    """Legal, but no implementation here takes it; names those that exist and why each was refused."""


class ShapeError(FuelvkError, ValueError):
    """A rank, an extent or a broadcast that does not fit."""


class DTypeError(FuelvkError, TypeError):
    """A dtype the op does not take, or operands that differ."""


class ParameterError(FuelvkError, ValueError):
    """A parameter that is missing, out of range, NaN or negative where that makes no sense."""


class UnknownNameError(FuelvkError, LookupError):
    """An op, parameter or device nobody knows; offers the closest names."""


class IndexOutOfRangeError(FuelvkError, IndexError):
    """An index seen on the device lies outside its axis."""


class ShaderBuildError(FuelvkError):
    """A shader did not compile or validate, or the build output is stale or damaged."""


class FormatError(FuelvkError):
    """A file is missing, damaged, or not of the format expected."""


class ToleranceError(UnsupportedError):
    """Kernels for the call exist, but no claim of theirs that is believed fits the tolerance asked for."""


class RegistryError(FuelvkError):
    """The tables contradict each other: a duplicate id or name, or a change after freezing."""


def closest(name: str, known: Iterable[str], count: int = 3) -> str:
    """Returns the closest known names as text, for ``hint``; empty when nothing is near."""
    matches = difflib.get_close_matches(name.lower(), list(known), n=count, cutoff=0.5)
    return "did you mean " + " or ".join(repr(m) for m in matches) + "?" if matches else ""
