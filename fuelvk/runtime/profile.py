"""Per-kernel times, collected while a ``profile`` block is open."""

from __future__ import annotations

import contextlib
import contextvars
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fuelvk.optimizer.plan import Plan, Step

if TYPE_CHECKING:
    from fuelvk.runtime.devices import VulkanDevice


@dataclass(slots=True)
class Row:
    """All calls of one implementation: how often, and for how many nanoseconds."""

    op: str
    impl: str
    dtypes: tuple[str, ...]
    revision: str
    claim: str
    calls: int = 0
    ns: int = 0


class Profile:
    """Collects what runs inside its ``with`` block. ``rows`` are sorted by time, most first."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, tuple[str, ...]], Row] = {}
        self._token: contextvars.Token[Profile | None] | None = None

    def __enter__(self) -> Profile:
        self._token = _current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _current.reset(self._token)

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(sorted(self._rows.values(), key=lambda r: -r.ns))

    @property
    def total_ns(self) -> int:
        return sum(r.ns for r in self._rows.values())

    def add(self, step: Step, ns: int, calls: int = 1) -> None:
        """Adds a call of a step."""
        assert step.route.chosen is not None
        impl = step.route.chosen.impl
        dtypes = tuple(d.key for d in impl.dtypes)
        row = self._rows.get((step.op.name, impl.name, dtypes))
        if row is None:
            row = Row(step.op.name, impl.name, dtypes, str(impl.revision), impl.precision.summary())
            self._rows[step.op.name, impl.name, dtypes] = row
        row.calls += calls
        row.ns += ns

    def add_recordings(self, plan: Plan, segments: Sequence[Any], device: VulkanDevice) -> None:
        """Waits for profiled recordings and adds their dispatches to the steps they belong to."""
        times: dict[int, int] = {}
        for segment in segments:
            if not isinstance(segment, Step):
                device.vk.idle()
                for label, ns in segment.timings():
                    number = int(label.partition(":")[0])
                    times[number] = times.get(number, 0) + ns
        for number, ns in times.items():
            self.add(plan.steps[number], ns)


_current: contextvars.ContextVar[Profile | None] = contextvars.ContextVar("fuelvk_profile", default=None)


def current() -> Profile | None:
    """Returns the open profile, or None."""
    return _current.get()


@contextlib.contextmanager
def host_step(step: Step) -> Iterator[None]:
    """Times a step that runs on the host, when a profile is open."""
    collector = _current.get()
    if collector is None:
        yield
        return
    start = time.perf_counter_ns()
    yield
    collector.add(step, time.perf_counter_ns() - start)
