"""What cross-entropy and its gradient share: parameters, rules, samples, refusals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import DTypeError, IndexOutOfRangeError, ParameterError, ShapeError
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.samples import Array, label, normal, ones
from fuelvk.graph.types import ErrorSample, Param, Params, Sample

REDUCTIONS = ("mean", "sum", "none")
IGNORED = -100


def _known(value: str) -> str | None:
    return None if value in REDUCTIONS else " or ".join(repr(name) for name in REDUCTIONS)


PARAMS = (
    Param("reduction", "str", default="mean", check=_known),
    Param("ignore_index", "int", default=IGNORED),
)


def check_logits(op: str, logits: Shape, targets: Shape) -> None:
    """Refuses logits without a last axis and targets that are not one per row."""
    rules.need_rank(op, "logits", logits, 1)
    rules.need_shape(op, "targets", targets, logits[:-1], "one column number per row of logits")
    if logits[-1] == 0 and 0 not in logits[:-1]:
        raise ShapeError(
            f"{op}: rows without columns", seen=f"logits{logits}", allowed="a last axis of 1 or more"
        )


def check_targets(op: str) -> Any:
    """Returns the check of host-visible targets: a column, or the ignored value."""

    def check(arrays: Sequence[Any], params: Params) -> None:
        logits, targets = arrays[0], arrays[1]
        columns = logits.shape[-1]
        bad = (targets != params["ignore_index"]) & ((targets < 0) | (targets >= columns))
        if bad.any():
            place = tuple(int(i) for i in np.argwhere(bad)[0])
            raise IndexOutOfRangeError(
                f"{op}: a target is no column",
                seen=f"targets{list(place)} is {targets[place]}",
                allowed=f"0 to {columns - 1}, or ignore_index={params['ignore_index']}",
            )

    return check


def cases(dtype: DType, rng: np.random.Generator) -> Iterable[tuple[Array, Array, dict[str, Any], str]]:
    """Yields logits, targets, parameters and a name."""

    def targets(shape: Shape, columns: int, ignored: float) -> Array:
        found = rng.integers(0, columns, shape)
        return np.where(rng.random(shape) < ignored, IGNORED, found).astype(np.int64)

    shapes = ((1, 1), (3, 7), (2, 3, 64), (5, 65), (130, 12), (2, 1025), (9,), (0, 4))
    for turn, shape in enumerate(shapes):
        for reduction in (REDUCTIONS[turn % 3], REDUCTIONS[(turn + 1) % 3]):
            x = normal(rng, shape, dtype, scale=3.0)
            labels = targets(shape[:-1], shape[-1], 0.3)
            yield x, labels, {"reduction": reduction}, f"{label(shape)}-{reduction}"
    x = normal(rng, (4, 33), dtype)
    for reduction in REDUCTIONS:
        yield x, np.full((4,), IGNORED), {"reduction": reduction}, f"all_ignored-{reduction}"
        yield x, np.array([7, 3, 7, 32]), {"reduction": reduction, "ignore_index": 7}, f"ignore_7-{reduction}"
    x = normal(rng, (5, 20), dtype, scale=2.0)
    x[0, 3], x[1, :], x[2, 4], x[3, 5] = np.nan, -np.inf, np.inf, -np.inf
    yield x, np.array([0, 1, 2, 5, 6]), {"reduction": "none"}, "nan_inf_rows"
    yield x, np.array([IGNORED, IGNORED, IGNORED, 4, 6]), {}, "nan_inf_ignored"
    confident = np.full((3, 40), -30.0).astype(dtype.numpy)
    confident[np.arange(3), [1, 5, 39]] = 60.0
    yield confident, np.array([1, 5, 0]), {"reduction": "none"}, "confident"


def refusals(op: str, *rest: Array) -> Iterable[ErrorSample]:
    """Yields the refusals of (logits[2, 3], targets[2], *rest)."""
    x, t = ones((2, 3)), np.zeros((2,), np.int64)
    yield ErrorSample((ones(()), t, *rest), {}, ShapeError, f"{op}.*logits.*rank", "scalar")
    yield ErrorSample(
        (x, np.zeros((3,), np.int64), *rest), {}, ShapeError, rf"{op}.*targets.*\(2,\)", "targets_shape"
    )
    yield ErrorSample((x, ones((2,)), *rest), {}, DTypeError, f"{op}.*targets is f32", "float_targets")
    yield ErrorSample(
        (ones((2, 3), DType.I32), t, *rest), {}, DTypeError, f"{op}.*logits is i32", "integer_logits"
    )
    yield ErrorSample(
        (x, t, *rest), {"reduction": "avg"}, ParameterError, f"{op}.*reduction.*mean", "reduction"
    )
    yield ErrorSample((ones((2, 0)), t, *rest), {}, ShapeError, f"{op}.*without columns", "no_columns")
    for bad in (3, -1, 2**32):
        targets = np.array([0, bad])
        match = rf"{op}: a target is no column.*targets\[1\] is {bad}.*0 to 2"
        yield ErrorSample((x, targets, *rest), {}, IndexOutOfRangeError, match, f"target_{bad}")


def need_dtypes(op: str, logits: DType | None, targets: DType | None) -> DType:
    """Returns the dtype of the logits; refuses others than floats, and targets that are not I64."""
    rules.need_dtype(op, "logits", logits, FLOATS)
    rules.need_dtype(op, "targets", targets, (DType.I64,))
    assert logits is not None
    return logits


__all__ = ["PARAMS", "Sample", "cases", "check_logits", "check_targets", "need_dtypes", "refusals"]
