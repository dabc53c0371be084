"""What may be given as an array, and how it becomes one of a supported dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import DTypeError, ParameterError, UnsupportedError

Array = np.ndarray[Any, Any]

_NATIVE = {d.numpy for d in DType}
_CPU_DLPACK_DEVICES = {1: "cpu", 3: "cuda pinned", 11: "rocm pinned", 13: "cuda managed"}


def as_array(value: Any, name: str = "input") -> Array:
    """Returns ``value`` as a NumPy array of a supported dtype, native byte order, any strides; never a copy if legal.

    Raises DTypeError for object, string, complex and structured arrays, UnsupportedError for an array that lives on
    another DLPack device.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise DTypeError(f"{name} is a masked array", hint="fill it first, e.g. x.filled(0)")
    if isinstance(value, np.ndarray):
        array = np.asarray(value)
    elif hasattr(value, "__fuelvk_numpy__"):
        array = value.__fuelvk_numpy__()
    elif hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        array = _from_dlpack(value, name)
    else:
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise ParameterError(
                f"{name} does not make an array", seen=str(error), allowed="a regular nesting"
            ) from None
    if array.dtype in _NATIVE:
        return array
    native = array.dtype.newbyteorder("=")
    if native in _NATIVE:
        return array.astype(native)
    raise DTypeError(
        f"{name} has a dtype that is not taken",
        seen=array.dtype,
        allowed=", ".join(d.key for d in DType),
        hint="convert with astype first",
    )


def _from_dlpack(value: Any, name: str) -> Array:
    kind, index = value.__dlpack_device__()
    if int(kind) not in _CPU_DLPACK_DEVICES:
        raise UnsupportedError(
            f"{name} lives on another device",
            seen=f"DLPack device type {int(kind)}, index {index}",
            allowed="host memory (DLPack device type 1)",
            hint="move it to the host first, e.g. x.cpu()",
        )
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError) as error:
        raise DTypeError(
            f"{name} cannot be read through DLPack", seen=str(error), hint="give a NumPy array instead"
        ) from error
