"""All 2^32 inputs of an F32 function on the C kernel and on a Vulkan device, against the exact results.

Every result is held against ``cpu_reference.truth``: a double with a stated error, mpmath near a boundary between two
floats. A strict Vulkan kernel is compared with the C kernel's bytes as well. The sweep goes on where an earlier one
was interrupted; what it found becomes a record of claim "sweep" in the ledger of each device, with the
key of the function's own source (``sweep_source``): the record lags once that is another.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import time
from collections.abc import Callable, Container, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cpu_reference.truth import FUNCTIONS, Judgement, judge_all
from fuelvk.base.dtypes import DType
from fuelvk.base.errors import ParameterError, UnsupportedError
from fuelvk.base.files import replace_file
from fuelvk.base.hashing import digest64
from fuelvk.evidence import Place, Record, ledger_dir, update, writable
from fuelvk.graph.registry import find_op
from fuelvk.graph.types import OpEntry
from fuelvk.kernels.types import BackendImpl
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.devices import Device, VulkanDevice
from fuelvk.runtime.devices import device as find_device
from fuelvk.runtime.executor import Program, program
from fuelvk.verify.harness import RefusedError, plan_of
from fuelvk.verify.sweep_source import Level, level_of, source

Array = np.ndarray[Any, Any]
Progress = Callable[[int, int], None]

PROTOCOL = 1
LAST = 0xFFFFFFFF
CHUNK = 1 << 20
_SAVE_EVERY = 5.0  # seconds


@dataclass(slots=True)
class Part:
    """One implementation under the sweep, and what was found of it so far.

    ``source`` is the key of its function's source, which is "" where that is not installed.
    ``differing`` counts results that are not the C kernel's bytes (NaN payloads are free), ``differs_at`` is the
    first such input.
    """

    backend: str
    impl: BackendImpl
    place: Place
    source: str = ""
    found: Judgement = field(default_factory=Judgement)
    differing: int = 0
    differs_at: int = -1

    @property
    def identity(self) -> str:
        return f"{self.backend} {self.source or self.impl.revision} {self.place}"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive inputs, the results of each implementation, and their judgements as they come."""

    inputs: Array
    results: list[Array]
    judged: list[Future[list[Judgement]]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a sweep found of one implementation; ``record`` is its line in the ledger of ``place``."""

    place: Place
    record: Record


def swept_ops() -> tuple[str, ...]:
    """Returns the names of the ops that can be swept."""
    return tuple(name for name in FUNCTIONS if find_op(name) is not None)


class Sweep:
    """The sweep of one function over the inputs of bits ``first`` to ``last``.

    Without ``device`` the best Vulkan device is taken, or none where there is none. ``levels`` are those to try on it
    (default: all); the C kernel, with which they are compared, is tried along with them.
    """

    def __init__(
        self,
        op: OpEntry,
        device: str | Device | None = None,
        *,
        first: int = 0,
        last: int = LAST,
        chunk: int = CHUNK,
        levels: Container[Level] = frozenset(Level),
        folder: Path | None = None,
    ) -> None:
        if op.name not in FUNCTIONS:
            raise UnsupportedError(
                "this op cannot be swept: it is no F32 function of one input", asked=op.name,
                allowed=", ".join(swept_ops()),
            )  # fmt: skip
        if not 0 <= first <= last <= LAST:
            raise ParameterError(
                "no range of inputs",
                asked=f"{first:#x}:{last:#x}",
                allowed="0 <= FIRST <= LAST <= 0xffffffff",
            )
        self.op, self.first, self.last, self.chunk, self.levels = op, first, last, chunk, levels
        self.device = find_device(device)
        self.parts = self._parts()
        self.next = first
        self.folder = folder if folder is not None else ledger_dir()
        name = digest64(*(p.place.slug for p in self.parts), first, last)
        self._state = self.folder / "unfinished" / f"{op.name}-{name:016x}.json"

    def _parts(self) -> list[Part]:
        parts: list[Part] = []
        host = find_device("cpu")
        for backend, impl in default_kernel_registry().impls_for(self.op.id):
            if impl.dtypes != (DType.F32, DType.F32):
                continue
            if backend == "cpu" and impl.precision.canonical:
                parts.insert(0, self._part(backend, impl, host))
            elif (
                backend == "vulkan"
                and isinstance(self.device, VulkanDevice)
                and level_of(impl) in self.levels
            ):
                parts.append(self._part(backend, impl, self.device))
        if not parts or parts[0].backend != "cpu":
            raise UnsupportedError("no C kernel of this function in F32", asked=self.op.name)
        return parts

    def _part(self, backend: str, impl: BackendImpl, device: Device) -> Part:
        return Part(backend, impl, device.place(backend), source(self.op.name, level_of(impl)))

    def resume(self) -> bool:
        """Goes on where an earlier sweep of the same kernels stopped; False where there is none."""
        try:
            state = json.loads(self._state.read_text(encoding="utf-8"))
            if state["protocol"] != PROTOCOL or [p["identity"] for p in state["parts"]] != [
                p.identity for p in self.parts
            ]:
                return False
            for part, row in zip(self.parts, state["parts"], strict=True):
                part.found = Judgement(**{**row["found"], "worst": float(row["found"]["worst"])})
                part.differing, part.differs_at = int(row["differing"]), int(row["differs_at"])
            self.next = int(state["next"])
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return True

    def _save(self) -> None:
        rows = [
            {
                "identity": p.identity,
                "found": {**asdict(p.found), "worst": str(p.found.worst)},
                "differing": p.differing,
                "differs_at": p.differs_at,
            }
            for p in self.parts
        ]
        replace_file(
            self._state, json.dumps({"protocol": PROTOCOL, "next": self.next, "parts": rows}).encode()
        )

    def run(self, progress: Progress | None = None) -> tuple[Outcome, ...]:
        """Tries what is left; records the outcome in the ledgers when the range is all of F32.

        ``progress`` is called with inputs done and inputs in all. Interrupted (KeyboardInterrupt), it leaves its
        state behind for ``resume``. Raises FormatError, before anything is tried, where the folder cannot be written.
        """
        for part in self.parts:
            writable(self.folder, part.place)
        runners = self._runners()
        total = self.last - self.first + 1
        saved = time.monotonic()
        offsets = np.arange(min(self.chunk, total), dtype=np.uint32)
        try:
            with ThreadPoolExecutor(2) as pool:
                at, waiting = self.next, None
                while self.next <= self.last:
                    stop = min(at + self.chunk, self.last + 1)
                    started = self._start(runners, offsets[: stop - at] + np.uint32(at & LAST), pool)
                    if waiting is not None:  # the results before these were judged meanwhile
                        self._finish(waiting)
                        if progress is not None:
                            progress(self.next - self.first, total)
                        if time.monotonic() - saved > _SAVE_EVERY:
                            self._save()
                            saved = time.monotonic()
                    at, waiting = stop, started
        except BaseException:
            self._save()
            raise
        outcomes = tuple(Outcome(p.place, self._record(p)) for p in self.parts)
        if (self.first, self.last) == (0, LAST):
            for place in {o.place: None for o in outcomes}:
                update(self.folder, place, [o.record for o in outcomes if o.place == place])
        with contextlib.suppress(FileNotFoundError):
            self._state.unlink()
        return outcomes

    def _runners(self) -> list[Callable[[Array], Array]]:
        """Returns each part as a function of an F32 array; parts that refuse the call are dropped."""
        host = find_device("cpu")
        kept: list[Part] = []
        runners = []
        for part in self.parts:
            where = self.device if part.backend == "vulkan" else host
            try:
                runners.append(_runner(self.op, part, where))
            except RefusedError:
                if part.backend == "cpu":
                    raise UnsupportedError("the C kernel cannot run", asked=self.op.name) from None
                continue
            kept.append(part)
        self.parts = kept
        return runners

    def _start(
        self, runners: Sequence[Callable[[Array], Array]], inputs: Array, pool: ThreadPoolExecutor
    ) -> Chunk:
        """Computes the results for some inputs and has them judged; without inputs, nothing."""
        values = inputs.view(np.float32)
        results = [run(values).view(np.uint32) for run in runners] if inputs.size else []
        half = inputs.size // 2
        judged = [
            pool.submit(judge_all, self.op.name, int(inputs[at]), [r[at:stop] for r in results])
            for at, stop in ((0, half), (half, inputs.size))
            if at < stop
        ]
        return Chunk(inputs, results, judged)

    def _finish(self, chunk: Chunk) -> None:
        """Waits until a chunk is judged, and adds what was found."""
        judged = [each.result() for each in chunk.judged]
        for part, results in zip(self.parts[1:], chunk.results[1:], strict=True):
            self._compare(part, chunk.inputs, results, chunk.results[0])
        for each in judged:
            for part, found in zip(self.parts, each, strict=True):
                part.found.merge(found)
        self.next += chunk.inputs.size

    def _compare(self, part: Part, inputs: Array, results: Array, canonical: Array) -> None:
        differ = results != canonical
        if not differ.any():
            return
        nan = np.isnan(canonical.view(np.float32))
        if nan.any():
            differ &= ~(nan & np.isnan(results.view(np.float32)))
        count = int(np.count_nonzero(differ))
        if count and part.differs_at < 0:
            part.differs_at = int(inputs[int(differ.argmax())])
        part.differing += count

    def _record(self, part: Part) -> Record:
        found, claim = part.found, part.impl.precision
        within = claim.max_ulp is None or found.worst <= claim.max_ulp
        equal = not claim.canonical or part.differing == 0
        notes = []
        if not claim.canonical:
            notes.append("not a strict kernel: other bits than the C kernel's are no fault")
        if part.differs_at >= 0:
            notes.append(f"differs from the C kernel first at {shown(part.differs_at)}")
        return Record(
            op=self.op.name,
            backend=part.backend,
            impl=part.impl.name,
            dtypes=tuple(d.key for d in part.impl.dtypes),
            revision=str(part.impl.revision),
            claim="sweep",
            promised="" if claim.max_ulp is None else f"{claim.max_ulp:g} ULP",
            worst=round(found.worst, 9),
            where=shown(found.worst_at),
            inputs=found.inputs,
            shapes=1,
            seed=0,
            protocol=PROTOCOL,
            date=datetime.datetime.now(datetime.UTC).date().isoformat(),
            passed=within and equal,
            counts={
                "not_correctly_rounded": found.wrong,
                "settled_by_mpmath": found.settled,
                "bytes_unlike_c": part.differing,
            },
            notes="; ".join(notes),
            source=part.source,
            host=part.place.host,
        )


def shown(bits: int) -> str:
    """Returns a float by its bits and its value."""
    return f"{bits:#010x} ({float(np.uint32(bits).view(np.float32)):.9g})"


def _runner(op: OpEntry, part: Part, device: Device) -> Callable[[Array], Array]:
    programs: dict[int, Program] = {}

    def run(values: Array) -> Array:
        made = programs.get(values.size)
        if made is None:
            made = programs[values.size] = program(
                plan_of(op, part.backend, part.impl, (values,), {}, device), device
            )
        return made.run([values])[0].numpy()

    run(np.zeros(1, np.float32))
    return run
