"""Which calls an implementation is tried with: its op's samples, and generated inputs where they make sense."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.graph.types import Family, OpEntry, Sample
from fuelvk.verify.generators import GENERATORS
from fuelvk.verify.suite import SEED, Suite

_ELEMENTWISE = {Family.POINTWISE, Family.TRANSCENDENTAL, Family.COMPARE, Family.CAST}
_SUMS = {Family.NORM, Family.REDUCTION, Family.MATMUL}
_PRODUCTS = {"prod"}  # many moderate factors overflow, which its claim leaves out
_BITS = ("exponents", "subnormals", "nans", "infinities")  # for ops that move bytes without looking at them


class Level(enum.Enum):
    """How much is tried: ``smoke`` in a minute on a CPU driver, ``full`` all of it."""

    SMOKE = "smoke"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Effort:
    """What a level amounts to: samples of an op (0: all), generated elements, all values of 16-bit types; generated
    inputs for attention, networks, gradients and movement as for sums.
    """

    samples: int
    elements: int
    every_value: bool
    rounds: int
    new_process: bool
    every_op: bool


EFFORTS = {
    Level.SMOKE: Effort(
        samples=3, elements=192, every_value=False, rounds=1, new_process=False, every_op=False
    ),
    Level.FULL: Effort(samples=0, elements=8192, every_value=True, rounds=3, new_process=True, every_op=True),
}


def calls(suite: Suite, op: OpEntry, dtypes: tuple[DType, ...], level: Level) -> tuple[Sample, ...]:
    """Returns the calls for an op in these dtypes, the same in every process."""
    effort = EFFORTS[level]
    samples = suite.samples(op, dtypes)
    chosen = samples if not effort.samples else _telling(samples, effort.samples)
    seed = int.from_bytes(hashlib.sha256(f"{SEED}calls{op.name}{dtypes}".encode()).digest()[:8], "big")
    taken = {s.label for s in chosen}
    generated = _generated(op, dtypes, samples, effort, np.random.default_rng(seed))
    # Results are kept by label, so a generator's may not be a sample's.
    return (*chosen, *(replace(s, label=f"{s.label}-made") if s.label in taken else s for s in generated))


def size(sample: Sample) -> int:
    """Returns the number of input elements of a call."""
    return sum(x.size for x in sample.inputs if x is not None)


def _telling(samples: tuple[Sample, ...], count: int) -> tuple[Sample, ...]:
    """Returns the special values, then the largest, then others from the middle."""
    special = [s for s in samples if "special" in s.label][:1]
    rest = sorted((s for s in samples if size(s) and "special" not in s.label), key=size)
    picked = [*special, *rest[-1:], *(rest[len(rest) // 2 : len(rest) // 2 + count])]
    return tuple({s.label: s for s in picked[:count]}.values()) or samples[:1]


def _generated(
    op: OpEntry,
    dtypes: tuple[DType, ...],
    samples: tuple[Sample, ...],
    effort: Effort,
    rng: np.random.Generator,
) -> Iterator[Sample]:
    operands = len(op.args)
    given = dtypes[:operands]
    if (
        op.family in _ELEMENTWISE
        and len(set(given)) == 1
        and not any(a.optional or a.variadic for a in op.args)
    ):
        params = list({repr(s.params): s.params for s in samples}.values())[: 1 if effort.samples else 3]
        for name, generator in GENERATORS.items():
            if not generator.fits(given[0], operands) or (name == "every_value" and not effort.every_value):
                continue
            arrays = generator.make(rng, given[0], operands, effort.elements)
            for number, each in enumerate(params):
                yield Sample(arrays, each, f"{name}{number or ''}")
    elif (
        effort.every_op or op.family in _SUMS or op.name == "softmax_last_dim"
    ) and op.name not in _PRODUCTS:
        largest = max(samples, key=size)
        moved = op.family is Family.MOVEMENT
        for name, generator in GENERATORS.items():
            if (name in _BITS) if moved else generator.composite:
                yield Sample(_filled(largest, generator.make, rng), largest.params, name)


def _filled(sample: Sample, make: Any, rng: np.random.Generator) -> tuple[Any, ...]:
    """Returns a sample's inputs with the values of the float ones generated."""
    return tuple(
        x
        if x is None or not x.size or not DType.of(x).is_float
        else make(rng, DType.of(x), 1, x.size)[0].reshape(x.shape)
        for x in sample.inputs
    )
