"""The element types, one row each."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from fuelvk.base.errors import DTypeError


@dataclass(frozen=True, slots=True)
class _Row:
    key: str
    size: int
    numpy: np.dtype[Any]
    kind: str  # float, int, uint, bool
    mantissa: int  # bits of precision incl. the hidden one; 0 for non-floats
    accumulator: str


class DType(enum.Enum):
    """An element type. ``key`` is the short name used in shaders, C functions and plans ("f32")."""

    F64 = _Row("f64", 8, np.dtype(np.float64), "float", 53, "f64")
    F32 = _Row("f32", 4, np.dtype(np.float32), "float", 24, "f32")
    F16 = _Row("f16", 2, np.dtype(np.float16), "float", 11, "f32")
    BF16 = _Row("bf16", 2, np.dtype(ml_dtypes.bfloat16), "float", 8, "f32")
    F8E4M3 = _Row("f8e4m3", 1, np.dtype(ml_dtypes.float8_e4m3fn), "float", 4, "f32")
    I64 = _Row("i64", 8, np.dtype(np.int64), "int", 0, "i64")
    I32 = _Row("i32", 4, np.dtype(np.int32), "int", 0, "i32")
    I16 = _Row("i16", 2, np.dtype(np.int16), "int", 0, "i16")
    I8 = _Row("i8", 1, np.dtype(np.int8), "int", 0, "i8")
    U32 = _Row("u32", 4, np.dtype(np.uint32), "uint", 0, "u32")
    U8 = _Row("u8", 1, np.dtype(np.uint8), "uint", 0, "u8")
    BOOL = _Row("bool", 1, np.dtype(np.bool_), "bool", 0, "bool")

    @property
    def key(self) -> str:
        return self.value.key

    @property
    def size(self) -> int:
        """Bytes per element."""
        return self.value.size

    @property
    def numpy(self) -> np.dtype[Any]:
        return self.value.numpy

    @property
    def is_float(self) -> bool:
        return self.value.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.value.kind in ("int", "uint")

    @property
    def accumulator(self) -> DType:
        """The type sums are kept in (ops.md section 1)."""
        return DType.parse(self.value.accumulator)

    @property
    def unit_roundoff(self) -> float:
        """Half an ULP of 1: 2^-24 for F32; 0 for types that are exact."""
        return 2.0**-self.value.mantissa if self.value.mantissa else 0.0

    @property
    def mantissa_bits(self) -> int:
        """Precision in bits, the hidden one included; 0 for non-floats."""
        return self.value.mantissa

    @classmethod
    def parse(cls, name: str) -> DType:
        """Returns the dtype called ``name`` ("f32", "F32", "float32"); raises DTypeError."""
        found = _by_name().get(name.lower())
        if found is None:
            raise DTypeError("unknown dtype name", asked=name, allowed=", ".join(d.key for d in cls))
        return found

    @classmethod
    def of(cls, value: Any) -> DType:
        """Returns the dtype of a DType, name, NumPy dtype or array, byte order ignored; raises DTypeError."""
        if isinstance(value, DType):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        try:
            dtype = np.dtype(value if isinstance(value, type) else getattr(value, "dtype", value))
        except TypeError:
            raise DTypeError(
                "this names no dtype", asked=repr(value), allowed=", ".join(d.key for d in cls)
            ) from None
        found = _by_numpy().get(dtype) or _by_numpy().get(dtype.newbyteorder("="))
        if found is None:
            raise DTypeError(
                "arrays of this dtype are not taken",
                seen=dtype,
                allowed=", ".join(d.key for d in cls),
                hint="convert with astype first",
            )
        return found

    def __repr__(self) -> str:
        return self.name


@cache
def _by_name() -> dict[str, DType]:
    names = {d.key: d for d in DType} | {str(d.numpy): d for d in DType}
    return names | {"float8_e4m3fn": DType.F8E4M3, "bfloat16": DType.BF16, "e4m3": DType.F8E4M3}


@cache
def _by_numpy() -> dict[np.dtype[Any], DType]:
    return {d.numpy: d for d in DType}


FLOATS = (DType.F32, DType.F64, DType.F16, DType.BF16)
HALVES = (DType.F16, DType.BF16)
INTEGERS = (DType.I64, DType.I32, DType.I16, DType.I8, DType.U32, DType.U8)
INDICES = (DType.I64, DType.I32, DType.U32)
CASTABLE = (*FLOATS, *INTEGERS, DType.BOOL)
