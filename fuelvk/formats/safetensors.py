"""Weights from a ``.safetensors`` file, through the ``safetensors`` package."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import FormatError, closest

Array = np.ndarray[Any, Any]

_LENGTH = struct.Struct("<Q")
_HEADER_LIMIT = 100_000_000  # the format's own limit on the header
_DTYPES = {
    "F64": DType.F64,
    "F32": DType.F32,
    "F16": DType.F16,
    "BF16": DType.BF16,
    "F8_E4M3": DType.F8E4M3,
    "I64": DType.I64,
    "I32": DType.I32,
    "I16": DType.I16,
    "I8": DType.I8,
    "U32": DType.U32,
    "U8": DType.U8,
    "BOOL": DType.BOOL,
}


def load(path: str | Path, names: Iterable[str] | None = None) -> dict[str, Array]:
    """Returns the tensors of a file by name; ``names`` picks some of them.

    BF16 and F8 arrays have the dtypes of ``ml_dtypes``. Raises FormatError when a file is missing, cut short
    or not safetensors, and when a name asked for is not in it.
    """
    file = Path(path)
    header = read_header(file)
    wanted = list(header) if names is None else list(names)
    missing = [name for name in wanted if name not in header]
    if missing:
        raise FormatError(
            f"{file} lacks {len(missing)} of the tensors asked for",
            asked=", ".join(missing[:3]) + (", ..." if len(missing) > 3 else ""),
            seen=f"{len(header)} tensors",
            hint=closest(missing[0], header) or None,
        )
    import ml_dtypes  # noqa: F401  (NumPy learns the name "bfloat16" that safetensors asks it for)
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(file), framework="numpy") as tensors:
            return {name: tensors.get_tensor(name) for name in wanted}
    except (SafetensorError, OSError, TypeError, KeyError) as error:
        raise FormatError(f"{file} cannot be read as safetensors", seen=error) from error


def read_header(path: str | Path) -> dict[str, tuple[DType, tuple[int, ...]]]:
    """Returns dtype and shape of each tensor of a file, checked against the file's size; raises FormatError.

    The checks are ours because the package's messages name neither the file nor the offset.
    """
    file = Path(path)
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            start = stream.read(_LENGTH.size)
            length = _LENGTH.unpack(start)[0] if len(start) == _LENGTH.size else 0
            if not 2 <= length <= min(size - _LENGTH.size, _HEADER_LIMIT):
                raise FormatError(
                    f"{file} is not a safetensors file, or was cut short",
                    asked="the length of the header at offset 0",
                    seen=f"{length} in a file of {size} bytes",
                    allowed=f"2 to {max(2, min(size - _LENGTH.size, _HEADER_LIMIT))}",
                )
            raw = stream.read(length)
    except FileNotFoundError:
        raise FormatError("there is no such weight file", asked=file, allowed="a .safetensors file") from None
    except OSError as error:
        raise FormatError(f"{file} cannot be opened", seen=error) from error
    try:
        header = json.loads(raw)
    except ValueError as error:
        offset = _LENGTH.size + int(getattr(error, "pos", getattr(error, "start", 0)))
        raise FormatError(
            f"{file}: the header is damaged at offset {offset}", seen=error, allowed="JSON"
        ) from error
    if not isinstance(header, dict):
        raise FormatError(
            f"{file}: the header at offset 8 is no table", seen=type(header).__name__, allowed="object"
        )
    header.pop("__metadata__", None)
    data_start = _LENGTH.size + length
    return {name: _checked(file, name, row, data_start, size) for name, row in header.items()}


def _checked(file: Path, name: str, row: Any, data_start: int, size: int) -> tuple[DType, tuple[int, ...]]:
    """Returns dtype and shape of one header row after its offsets were found to fit shape and file."""
    try:
        begin, end = (int(offset) for offset in row["data_offsets"])
        shape = tuple(int(extent) for extent in row["shape"])
        dtype = _DTYPES.get(row["dtype"])
    except (KeyError, TypeError, ValueError):
        raise FormatError(
            f"{file}: the header's row of {name} is damaged", seen=row, allowed="dtype, shape, data_offsets"
        ) from None
    if dtype is None:
        raise FormatError(
            f"{file}: {name} has a dtype not taken", seen=row["dtype"], allowed=", ".join(_DTYPES)
        )
    expected = dtype.size
    for extent in shape:
        expected *= extent
    if begin < 0 or end - begin != expected:
        raise FormatError(
            f"{file}: {name} at offset {data_start + begin} does not hold its shape",
            asked=f"{dtype.key} {shape}, {expected} bytes",
            seen=f"{end - begin} bytes",
        )
    if data_start + end > size:
        raise FormatError(
            f"{file} was cut short: {name} should end at offset {data_start + end}",
            seen=f"a file of {size} bytes",
            hint="fetch the file again",
        )
    return dtype, shape


def check_shapes(
    file: str | Path, tensors: Mapping[str, Array], expected: Mapping[str, tuple[int, ...]]
) -> None:
    """Raises FormatError when a tensor has not the shape that the model's config calls for."""
    for name, shape in expected.items():
        if tensors[name].shape != shape:
            raise FormatError(
                f"{file}: {name} does not fit the model's config", seen=tensors[name].shape, allowed=shape
            )
