"""The same calls in a new process: results of a claim of bit stability outlive the process that computed them.

``python -m fuelvk.verify.again DEVICE`` reads questions, one JSON object a line, and answers with digests.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import FuelvkError
from fuelvk.graph.types import Sample
from fuelvk.runtime.devices import Device
from fuelvk.runtime.devices import device as find_device
from fuelvk.verify.calls import Level, calls, size
from fuelvk.verify.protocols import Outputs, Subject
from fuelvk.verify.suite import default_suite

Key = tuple[str, str, str, tuple[str, ...]]
_PER_IMPLEMENTATION = 2


@dataclass(frozen=True, slots=True)
class Question:
    """A call of an implementation with the digest of what it gave."""

    op: str
    backend: str
    impl: str
    dtypes: tuple[str, ...]
    level: str
    label: str
    digest: str

    @classmethod
    def of(cls, subject: Subject, tried: Sequence[Sample], level: Level) -> Iterator[Question]:
        """Yields questions about the largest calls that the implementation took."""
        taken = [c for c in sorted(tried, key=size, reverse=True) if c.label in subject.results]
        for call in taken[:_PER_IMPLEMENTATION]:
            yield cls(
                subject.op.name,
                subject.backend,
                subject.impl.name,
                tuple(d.key for d in subject.impl.dtypes),
                level.value,
                call.label,
                digest(subject.results[call.label]),
            )

    @property
    def key(self) -> Key:
        return self.op, self.backend, self.impl, self.dtypes


def digest(outputs: Outputs) -> str:
    """Returns a digest of outputs' bytes; every NaN counts as one."""
    state = hashlib.blake2b(digest_size=16)
    for y in outputs:
        if DType.of(y).is_float and y.size:
            with np.errstate(invalid="ignore"):
                y = np.where(np.isnan(y.astype(np.float64)), np.asarray(np.nan).astype(y.dtype), y)
        state.update(f"{y.dtype}{y.shape}".encode() + np.ascontiguousarray(y).tobytes())
    return state.hexdigest()


def in_a_new_process(device: Device, questions: Sequence[Question]) -> Mapping[Key, str]:
    """Returns the implementations that gave other bits in a process of their own, with the first such call."""
    lines = "\n".join(json.dumps(asdict(q)) for q in questions)
    answer = subprocess.run(
        [sys.executable, "-m", "fuelvk.verify.again", device.spec],
        input=lines, capture_output=True, text=True, check=False,
    )  # fmt: skip
    answers = answer.stdout.splitlines()
    wrong: dict[Key, str] = {}
    for number, question in enumerate(questions):
        got = answers[number] if number < len(answers) else "no answer"
        if got != question.digest:
            last = (answer.stderr.strip().splitlines() or [""])[-1]
            reason = f" ({got}: {last})" if number >= len(answers) else ""
            wrong.setdefault(question.key, f"{question.label}: other bits in a new process{reason}")
    return wrong


def main(spec: str) -> None:
    """Answers every question on standard input with the digest of the call's outputs here."""
    device, host, suite = find_device(spec), find_device("cpu"), default_suite()
    rows = {
        (op.name, backend, impl.name, tuple(d.key for d in impl.dtypes)): (op, backend, impl)
        for op, backend, impl in suite.implementations()
    }
    for line in sys.stdin:
        row = json.loads(line)
        question = Question(**{**row, "dtypes": tuple(row["dtypes"])})
        op, backend, impl = rows[question.key]
        tried = calls(suite, op, impl.dtypes, Level(question.level))
        call = next(c for c in tried if c.label == question.label)
        subject = Subject(suite, op, backend, impl, device, host, False)
        try:
            print(digest(subject.run(call)), flush=True)
        except (FuelvkError, AssertionError) as error:
            print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
