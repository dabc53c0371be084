"""Every refusal an op names: class and message, and the process goes on working."""

from __future__ import annotations

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.graph.types import ErrorSample, OpEntry
from fuelvk.runtime.devices import Device
from tests.support.cases import computed_ops

ROWS = [(op, e) for op in computed_ops() if op.error_inputs for e in op.error_inputs()]


@pytest.mark.parametrize(("op", "row"), ROWS, ids=[f"{op.name}-{e.label}" for op, e in ROWS])
def test_refused(op: OpEntry, row: ErrorSample, cpu: Device) -> None:
    with pytest.raises(row.error, match=row.match):
        fv.call(op.name, *row.inputs, device=cpu, **row.params)
    assert fv.call("add", np.ones(3, np.float32), np.ones(3, np.float32), device=cpu).tolist() == [2, 2, 2]
