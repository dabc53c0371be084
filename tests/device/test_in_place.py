"""INPLACE_AFFINE writes over what nobody else reads, and over nothing that anybody may look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.optimizer.plan import Ref, SlotKind, Step
from fuelvk.runtime.devices import VulkanDevice
from fuelvk.runtime.executor import Program

pytestmark = pytest.mark.device
X = np.random.default_rng(3).standard_normal((64, 640)).astype(np.float32)
MUL, ADD = np.float32(2.5), np.float32(0.75)


def affine(x: Any) -> Any:
    return x * float(MUL) + float(ADD)


def with_itself(x: Any) -> Any:
    value = abs(x)
    return value, affine(value)


def rounded(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Two roundings in F32, by NumPy."""
    return x * MUL + ADD


def planned(
    function: Callable[[Any], Any], device: VulkanDevice
) -> tuple[Program, list[np.ndarray[Any, Any]]]:
    """The program of a compiled function, and what it gives for X, which must be as before."""
    x = fv.asarray(X, device=device)
    compiled = fv.compile(function, device=device)
    results = compiled(x)
    found = [r.numpy() for r in (results if isinstance(results, tuple) else (results,))]
    assert np.array_equal(x.numpy(), X)
    return next(iter(compiled._captured.values()))[0], found


def places(step: Step) -> tuple[Ref, Ref]:
    given = step.inputs[0]
    assert given is not None
    return given, step.outputs[0]


def affine_steps(program: Program) -> list[tuple[Ref, Ref]]:
    return [places(s) for s in program.plan.steps if s.op.name == "inplace_affine"]


def test_an_intermediate_value_is_written_over(gpu: VulkanDevice) -> None:
    program, (y,) = planned(lambda x: -affine(abs(x)), gpu)
    ((given, result),) = affine_steps(program)
    assert given.slot == result.slot
    assert program.plan.slots[given.slot].kind is SlotKind.TEMP
    assert np.array_equal(y, -rounded(np.abs(X)))
    assert program.plan.arena_bytes == X.nbytes


def test_a_chain_that_ends_in_the_result_stays_in_its_memory(gpu: VulkanDevice) -> None:
    program, (y,) = planned(lambda x: affine(affine(affine(abs(x)))), gpu)
    steps = affine_steps(program)
    assert len({ref.slot for pair in steps for ref in pair}) == 1
    assert program.plan.slots[steps[0][0].slot].kind is SlotKind.OUTPUT
    assert program.plan.arena_bytes == 0
    assert np.array_equal(y, rounded(rounded(rounded(np.abs(X)))))


def test_readers_before_do_not_matter_and_readers_after_forbid_it(gpu: VulkanDevice) -> None:
    def function(x: Any) -> Any:
        value = abs(x)
        return affine(value) / value

    program, (y,) = planned(function, gpu)
    ((given, result),) = affine_steps(program)
    assert given.slot != result.slot
    assert np.array_equal(y, rounded(np.abs(X)) / np.abs(X))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (affine, (rounded(X),)),
        (with_itself, (np.abs(X), rounded(np.abs(X)))),
        (lambda x: affine(abs(x).T), (rounded(np.abs(X).T),)),
        (lambda x: affine(abs(x)[:32]), (rounded(np.abs(X)[:32]),)),
        (lambda x: affine(abs(x)[1:, 3:]), (rounded(np.abs(X)[1:, 3:]),)),
        (
            lambda x: affine(abs(x)[:1].broadcast_to((9, 640))),
            (rounded(np.broadcast_to(np.abs(X)[:1], (9, 640))),),
        ),
    ],
    ids=["argument", "result too", "transposed", "first rows", "part", "broadcast"],
)
def test_what_somebody_holds_or_a_part_is_left_alone(
    function: Callable[[Any], Any], expected: tuple[np.ndarray[Any, Any], ...], gpu: VulkanDevice
) -> None:
    program, found = planned(function, gpu)
    ((given, result),) = affine_steps(program)
    assert given.slot != result.slot
    for got, want in zip(found, expected, strict=True):
        assert np.array_equal(got, want)


def test_a_computed_tensor_and_the_inputs_of_a_call_keep_their_elements(gpu: VulkanDevice) -> None:
    value = abs(fv.asarray(X, device=gpu)).realize()
    assert np.array_equal(affine(value).numpy(), rounded(np.abs(X)))
    assert np.array_equal(value.numpy(), np.abs(X))
    host = X.copy()
    got = fv.call("inplace_affine", host, mul=float(MUL), add=float(ADD), device=gpu)
    assert np.array_equal(got, rounded(X))
    assert np.array_equal(host, X)


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
def test_other_types_in_place(dtype: str, gpu: VulkanDevice) -> None:
    given = fv.asarray(X, device=gpu).astype(dtype).realize()
    compiled = fv.compile(lambda x: affine(abs(x)), device=gpu)
    got = compiled(given).numpy()
    want = fv.call("affine", np.abs(given.numpy()), mul=float(MUL), add=float(ADD), device="cpu")
    assert got.tobytes() == want.tobytes()


def test_c_kernels_get_two_memories(cpu: Any) -> None:
    x = fv.asarray(X, device=cpu)
    compiled = fv.compile(lambda v: -affine(abs(v)), device=cpu)
    assert np.array_equal(compiled(x).numpy(), -rounded(np.abs(X)))
    program = next(iter(compiled._captured.values()))[0]
    ((given, result),) = affine_steps(program)
    assert given.slot != result.slot
