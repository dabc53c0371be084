"""What is held to its claims: a kernel registry with the op entries, samples and oracles that go with it.

``default_suite()`` is everything that ships with fuelvk. A suite of one's own adds ops, oracles and kernels.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import RegistryError
from fuelvk.graph.types import OpEntry, OpId, Sample
from fuelvk.kernels.types import BackendImpl, FusedKernelRegistry
from fuelvk.registry import default_kernel_registry, entry_of

Array = np.ndarray[Any, Any]
Oracle = Callable[..., Any]

SEED = 20260801


@dataclass(slots=True)
class Suite:
    """Kernels with what judges them. ``entries`` and ``oracles`` come before fuelvk's own for the same op.

    An oracle takes the op's inputs and parameters and returns the exact output (or a tuple of them) in float64 or
    wider.
    """

    kernels: FusedKernelRegistry
    entries: Mapping[OpId, OpEntry] = field(default_factory=dict)
    oracles: Mapping[OpId, Oracle] = field(default_factory=dict)
    _samples: dict[tuple[OpId, tuple[DType, ...]], tuple[Sample, ...]] = field(default_factory=dict)

    def entry(self, op_id: OpId) -> OpEntry:
        """Returns the op of an id; raises RegistryError for one without an entry."""
        found = self.entries.get(op_id) or entry_of(op_id)
        if found is None:
            raise RegistryError(
                "a kernel of an op without an entry", asked=op_id, hint="give its OpEntry in entries"
            )
        return found

    def implementations(self) -> Iterator[tuple[OpEntry, str, BackendImpl]]:
        """Yields every implementation once, in the registry's order."""
        for op_id, backend, impl in self.kernels:
            yield self.entry(op_id), backend, impl

    def samples(self, op: OpEntry, dtypes: tuple[DType, ...]) -> tuple[Sample, ...]:
        """Returns the op's samples in these dtypes; the same on every call and in every process."""
        found = self._samples.get((op.id, dtypes))
        if found is None:
            if op.sample_inputs is None:
                raise RegistryError("an op without samples cannot be verified", asked=op.name)
            seed = int.from_bytes(hashlib.sha256(f"{SEED}{op.name}{dtypes}".encode()).digest()[:8], "big")
            found = tuple(op.sample_inputs(dtypes, np.random.default_rng(seed)))
            self._samples[op.id, dtypes] = found
        return found

    def oracle(self, op: OpEntry, sample: Sample) -> tuple[Array, ...]:
        """Returns the exact outputs of a call; raises RegistryError for an op without an oracle."""
        reference = self.oracles.get(op.id)
        if reference is None:
            try:
                reference = importlib.import_module(f"cpu_reference.numpy.{op.name}").reference
            except ModuleNotFoundError:
                raise RegistryError(
                    "an op without an oracle", asked=op.name, hint="give one in oracles"
                ) from None
        _, params = op.bind(sample.inputs, sample.params)
        with np.errstate(all="ignore"):
            result = reference(*sample.inputs, **params)
        return result if isinstance(result, tuple) else (np.asarray(result),)

    def canonical(self, op: OpEntry, impl: BackendImpl) -> BackendImpl | None:
        """Returns the CPU kernel for the same dtypes whose bits define the canonical algorithm, or None."""
        return self.kernels.canonical(op.id, impl.dtypes)


@functools.cache
def default_suite() -> Suite:
    """Returns the kernels that ship with fuelvk."""
    return Suite(default_kernel_registry())
