"""Where the bits of two devices differ: the same calls of every op on both, by the kernels a strict request gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import UnsupportedError
from fuelvk.graph.types import OpEntry, Sample
from fuelvk.kernels.types import BackendImpl
from fuelvk.runtime.devices import Device, VulkanDevice
from fuelvk.runtime.devices import device as find_device
from fuelvk.verify.calls import Level, calls
from fuelvk.verify.compare import differing
from fuelvk.verify.harness import RefusedError, run_impl
from fuelvk.verify.runner import chosen_ops
from fuelvk.verify.suite import Suite, default_suite


@dataclass(frozen=True, slots=True)
class Difference:
    """A call that gave other bits on the second device."""

    op: str
    dtypes: tuple[str, ...]
    a: str
    b: str
    call: str
    text: str


@dataclass(slots=True)
class Differences:
    """What a comparison found: devices, how much was compared, and each call that differs."""

    a: str
    b: str
    rows: list[Difference]
    ops: int = 0
    calls: int = 0
    skipped: int = 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def differences(
    a: str | Device,
    b: str | Device,
    *,
    ops: Sequence[str] = (),
    dtype: DType | str | None = None,
    level: Level = Level.SMOKE,
    progress: Callable[[int, int, str], None] | None = None,
) -> Differences:
    """Compares two devices by bytes, on each the first strict kernel that takes the call."""
    suite = default_suite()
    wanted = chosen_ops(ops, suite)
    kind = None if dtype is None else DType.of(dtype)
    devices = find_device(a), find_device(b)
    rows: dict[tuple[str, tuple[DType, ...]], OpEntry] = {}
    for op, _, impl in suite.implementations():
        if (not wanted or op.name in wanted) and (kind is None or kind in impl.dtypes):
            rows.setdefault((op.name, impl.dtypes), op)
    found = Differences(devices[0].name, devices[1].name, [])
    for number, ((name, dtypes), op) in enumerate(rows.items()):
        if progress is not None:
            progress(number, len(rows), name)
        compared = 0
        for call in calls(suite, op, dtypes, level):
            first, second = (_run(suite, op, dtypes, call, d) for d in devices)
            if first is None or second is None:
                continue
            compared += 1
            for x, y in zip(first[1], second[1], strict=True):
                count, text = differing(x, y)
                if count:
                    keys = tuple(d.key for d in dtypes)
                    found.rows.append(Difference(name, keys, first[0], second[0], call.label, text))
                    break
        found.ops += compared > 0
        found.skipped += compared == 0
        found.calls += compared
    return found


def _run(
    suite: Suite, op: OpEntry, dtypes: tuple[DType, ...], call: Sample, device: Device
) -> tuple[str, tuple[Any, ...]] | None:
    """Returns the kernel that served and its outputs; None where no strict one takes the call."""
    backend = "vulkan" if isinstance(device, VulkanDevice) else "cpu"
    candidates: list[BackendImpl] = [
        impl
        for owner, impl in suite.kernels.impls_for(op.id)
        if owner == backend and impl.dtypes == dtypes and impl.precision.canonical
    ]
    for impl in candidates:
        try:
            return impl.name, run_impl(op, backend, impl, call.inputs, call.params, device)
        except (RefusedError, UnsupportedError):
            continue
    return None
