"""The lazy Tensor: methods append to a graph, nothing runs until somebody looks."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import DTypeError, ParameterError, ShapeError, UnsupportedError
from fuelvk.base.shapes import Shape, elements
from fuelvk.graph import ir
from fuelvk.graph.registry import builder
from fuelvk.runtime.devices import Device
from fuelvk.runtime.devices import device as find_device
from fuelvk.runtime.storage import Source
from fuelvk.tensor.inputs import Array, as_array
from fuelvk.tensor.realize import realize

Scalar = float | int | bool


class Tensor:
    """An array on a device, perhaps not computed yet. Immutable; methods and names follow NumPy's Array API.

    Operands of one op have one dtype after the Array API's promotion; Python numbers take the tensor's dtype.
    """

    __slots__ = ("__weakref__", "_device", "_value")
    __array_priority__ = 1000

    def __init__(self, value: ir.Value, device: Device) -> None:
        self._value = value
        self._device = device

    @property
    def shape(self) -> Shape:
        return self._value.shape

    @property
    def dtype(self) -> DType:
        return self._value.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return elements(self.shape)

    @property
    def device(self) -> Device:
        return self._device

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("a 0-d tensor has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        state = "realized" if self._value.node.is_leaf else f"lazy {self._value.node.op.name}"
        return f"<Tensor {self.dtype.key}{list(self.shape)} on {self._device.spec}, {state}>"

    def realize(self) -> Tensor:
        """Computes the elements on the device (without waiting for it) and returns self."""
        realize((self,))
        return self

    def wait(self) -> Tensor:
        """Computes, waits for the device, raises what the kernels reported, and returns self."""
        source = self.realize()._value.node.data
        source.on(self._device).wait()
        return self

    def numpy(self) -> Array:
        """Computes, waits, and returns a NumPy array that owns its memory."""
        source = self.realize()._value.node.data
        return np.asarray(source.numpy())

    __fuelvk_numpy__ = numpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def item(self) -> Any:
        """Returns the one element as a Python number; raises ShapeError when there are more."""
        if self.size != 1:
            raise ShapeError(
                "one element is needed for a number", seen=self.shape, hint="index or reduce first"
            )
        return self.numpy().item()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def to(self, device: str | Device) -> Tensor:
        """Returns the same elements on another device; this one is realized first."""
        target = find_device(device)
        if target is self._device:
            return self
        source = self.realize()._value.node.data
        source.on(target)
        return Tensor(self._value, target)

    def apply(self, name: str, *others: Any, **params: Any) -> Any:
        """Applies an op by name with this tensor as first input."""
        return apply(name, (self, *others), params)

    def astype(self, dtype: DType | str | np.dtype[Any] | type) -> Tensor:
        wanted = DType.of(dtype)
        return self if wanted is self.dtype else self._one("cast", dtype=wanted)

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        flat = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return self._one("reshape", shape=flat)

    def transpose(self, *axes: int | Sequence[int]) -> Tensor:
        flat: Any = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return self._one("transpose", axes=tuple(flat) if flat else tuple(reversed(range(self.ndim))))

    permute_dims = transpose

    @property
    def T(self) -> Tensor:  # noqa: N802 - the Array API's name
        return self.transpose()

    @property
    def mT(self) -> Tensor:  # noqa: N802 - the Array API's name
        """The last two axes swapped."""
        if self.ndim < 2:
            raise ShapeError("mT needs two axes", seen=self.shape)
        return self.transpose(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)

    def broadcast_to(self, shape: Sequence[int]) -> Tensor:
        return self._one("broadcast_to", shape=tuple(shape))

    def sum(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        return self._one("sum", axes=axis, keepdims=keepdims)

    def mean(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        return self._one("mean", axes=axis, keepdims=keepdims)

    def max(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        return self._one("max", axes=axis, keepdims=keepdims)

    def min(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        return self._one("min", axes=axis, keepdims=keepdims)

    def __getitem__(self, key: Any) -> Tensor:
        return _index(self, key if isinstance(key, tuple) else (key,))

    def __add__(self, other: Any) -> Tensor:
        return binary("add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return binary("add", other, self)

    def __sub__(self, other: Any) -> Tensor:
        return binary("sub", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return binary("sub", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return binary("mul", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return binary("mul", other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return binary("div", other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return binary("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return binary("matmul", other, self)

    def __pow__(self, exponent: Any) -> Tensor:
        """An integer power (``powi``); raises DTypeError for any other exponent."""
        if isinstance(exponent, bool) or not hasattr(exponent, "__index__"):
            raise DTypeError(
                "only integer exponents are taken", asked=type(exponent).__name__, allowed="an int",
                hint="fv.ops.exp(y * fv.ops.log(x)) is x to the power y for positive x",
            )  # fmt: skip
        return self._one("powi", exp=operator.index(exponent))

    def __rpow__(self, base: Any) -> Tensor:
        """Refused: the exponent would be a tensor."""
        raise DTypeError(
            "a tensor is no exponent", asked=type(base).__name__, allowed="tensor ** int",
            hint="fv.ops.exp(x * math.log(base)) is base to the power x",
        )  # fmt: skip

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: Any) -> Tensor:
        """Returns itself: a tensor never changes."""
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raises UnsupportedError: what a tensor stands for is on a device of this process."""
        raise UnsupportedError(
            "a Tensor is not pickled", seen=repr(self), allowed="NumPy arrays",
            hint="pickle tensor.numpy() and give that to fv.asarray",
        )  # fmt: skip

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return binary("equal", self, other)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return binary("not_equal", self, other)

    def __lt__(self, other: Any) -> Tensor:
        return binary("less", self, other)

    def __le__(self, other: Any) -> Tensor:
        return binary("less_equal", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return binary("greater", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return binary("greater_equal", self, other)

    def __neg__(self) -> Tensor:
        return self._one("neg")

    def __abs__(self) -> Tensor:
        return self._one("abs")

    __hash__ = object.__hash__

    def _one(self, name: str, **params: Any) -> Tensor:
        result = apply(name, (self,), params)
        assert isinstance(result, Tensor)
        return result


def asarray(value: Any, *, dtype: DType | str | None = None, device: str | Device | None = None) -> Tensor:
    """Returns a Tensor of anything NumPy or DLPack turns into a supported dtype. The elements are copied."""
    if isinstance(value, Tensor):
        moved = value if device is None else value.to(device)
        return moved if dtype is None else moved.astype(dtype)
    host = np.array(as_array(value), order="C", copy=True)
    host.flags.writeable = False
    made = wrap(Source(host), find_device(device))
    return made if dtype is None else made.astype(dtype)


def from_dlpack(value: Any, *, device: str | Device | None = None) -> Tensor:
    """Returns a Tensor of an object with ``__dlpack__`` in host memory. The elements are copied."""
    return asarray(value, device=device)


def wrap(source: Source, device: Device) -> Tensor:
    """Returns a Tensor of data that exists."""
    return Tensor(ir.leaf(source, source.shape, source.dtype), device)


def apply(name: str, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """Applies an op to tensors (arrays become tensors, None stays); several outputs come back as a tuple."""
    device = common_device(inputs)
    values = tuple(None if x is None else as_tensor(x, device)._value for x in inputs)
    result = getattr(builder(), name)(*values, **params)
    if isinstance(result, tuple):
        return tuple(Tensor(v, device) for v in result)
    return Tensor(result, device)


def as_tensor(value: Any, device: Device) -> Tensor:
    return value if isinstance(value, Tensor) else asarray(value, device=device)


def common_device(inputs: Sequence[Any]) -> Device:
    """Returns the one device of all tensors given; the default where there is none. Raises ParameterError on two."""
    found = {id(x.device): x.device for x in inputs if isinstance(x, Tensor)}
    if len(found) > 1:
        raise ParameterError(
            "operands live on different devices",
            seen=" and ".join(d.spec for d in found.values()),
            allowed="one device",
            hint="move one with .to(device)",
        )
    return next(iter(found.values())) if found else find_device(None)


def binary(name: str, a: Any, b: Any) -> Tensor:
    """Applies a binary op after promotion."""
    device = common_device((a, b))
    anchor = a if isinstance(a, Tensor) else b
    a, b = (_number(x, anchor, device) if isinstance(x, Scalar) else as_tensor(x, device) for x in (a, b))
    dtype = promote(a.dtype, b.dtype)
    result = apply(name, (a.astype(dtype), b.astype(dtype)), {})
    assert isinstance(result, Tensor)
    return result


def _number(value: Scalar, like: Tensor, device: Device) -> Tensor:
    if isinstance(value, int) and not isinstance(value, bool):
        least, most = _range(like.dtype)
        if not least <= value <= most:
            raise ParameterError(
                "a number that the tensor's dtype does not hold",
                asked=value if abs(value) < 1 << 70 else "an int of more than 70 bits",
                seen=like.dtype.key,
                allowed=f"{least} to {most}",
                hint="cast the tensor with astype",
            )
    if isinstance(value, float) and not like.dtype.is_float:
        raise DTypeError(
            "a float next to an integer tensor",
            asked=value,
            seen=like.dtype.key,
            hint="cast the tensor with astype",
        )
    return Tensor(ir.constant(np.asarray(value).astype(like.dtype.numpy)), device)


def _range(dtype: DType) -> tuple[float, float]:
    """The least and largest number of a dtype."""
    if dtype is DType.BOOL:
        return 0, 1
    if dtype.is_float:
        most = float(ml_dtypes.finfo(dtype.numpy).max)  # type: ignore[no-untyped-call]
        return -most, most
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


def promote(a: DType, b: DType) -> DType:
    """Returns the dtype two operands meet in; raises DTypeError where the Array API leaves it undefined."""
    if a is b:
        return a
    floats = a.is_float, b.is_float
    if all(floats):
        if {a, b} == {DType.F16, DType.BF16}:
            return DType.F32
        return a if a.size >= b.size else b
    if not any(floats) and DType.BOOL not in (a, b):
        wide = np.promote_types(a.numpy, b.numpy)
        if wide in {d.numpy for d in DType}:
            return DType.of(wide)
    raise DTypeError(
        "these dtypes do not mix", seen=f"{a.key} and {b.key}", hint="cast one of them with astype"
    )


def _index(x: Tensor, key: tuple[Any, ...]) -> Tensor:
    if any(
        isinstance(k, Tensor) or (isinstance(k, np.ndarray) and k.ndim) or isinstance(k, list) for k in key
    ):
        if len(key) != 1:
            raise ParameterError(
                "one index array is taken, alone", seen=len(key), hint="use fv.ops.index_select"
            )
        result = apply("index_select", (x, key[0]), {"axis": 0})
        assert isinstance(result, Tensor)
        return result
    if key.count(Ellipsis) > 1:
        raise ParameterError("an index holds one ellipsis at most", seen=key)
    used = sum(k is not None and k is not Ellipsis for k in key)
    if used > x.ndim:
        raise ShapeError("too many indices", asked=used, allowed=x.ndim)
    if Ellipsis not in key:
        key = (*key, Ellipsis)
    at = key.index(Ellipsis)
    key = (*key[:at], *(slice(None),) * (x.ndim - used), *key[at + 1 :])
    starts, stops, steps = [], [], []
    shape: list[int] = []
    axis = 0
    for k in key:
        if k is None:
            shape.append(1)
            continue
        extent = x.shape[axis]
        if isinstance(k, slice):
            try:
                start, stop, step = k.indices(extent)
            except (TypeError, ValueError) as error:
                raise ParameterError("a slice that cannot be taken", asked=k, seen=str(error)) from None
            count = len(range(start, stop, step))
            shape.append(count)
        else:
            start = _position(k, axis, extent)
            stop, step, count = start + 1, 1, 1
        starts.append(start)
        steps.append(step)
        stops.append(start + count * step)
        axis += 1
    if all(s == 0 and t == 1 and e == n for s, t, e, n in zip(starts, steps, stops, x.shape, strict=True)):
        return x.reshape(tuple(shape))
    return x._one("slice", starts=tuple(starts), stops=tuple(stops), steps=tuple(steps)).reshape(tuple(shape))


def _position(k: Any, axis: int, extent: int) -> int:
    position = int(k.__index__()) if hasattr(k, "__index__") else None
    if position is None:
        raise ParameterError(
            "an index is an int, a slice, None, ... or an index array", seen=type(k).__name__
        )
    if not -extent <= position < extent:
        from fuelvk.base.errors import IndexOutOfRangeError

        raise IndexOutOfRangeError(
            "index out of range", asked=position, seen=f"axis {axis}", allowed=f"below {extent}"
        )
    return position % extent
