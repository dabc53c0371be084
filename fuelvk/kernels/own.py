"""Kernels of one's own: a compute shader or a Python function becomes a row for a registry, with claim and revision.

docs/own-kernels.md goes through an example. Rows go into a ``FusedKernelRegistry`` beside fuelvk's own
(``register_default_kernels``); ``fv.verify(suite=...)`` holds them to their claims and ``fv.call(kernels=...)`` chooses
among them by what was found.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.hashing import digest64
from fuelvk.graph.types import OpId
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, vulkan
from fuelvk.kernels.types import (
    BackendId,
    BackendImpl,
    CostEstimate,
    CostFunction,
    KernelRevisionHash,
    PrecisionGuarantee,
    Registration,
    Shapes,
)
from fuelvk.shaderbuild import Manifest, build
from fuelvk.shaderbuild.manifest import read_document

__all__ = ["ShaderRef", "VulkanContext", "build_shaders", "free", "python_kernel", "shader", "vulkan_kernel"]

vulkan_kernel = vulkan


def build_shaders(folder: Path, output: Path | None = None) -> Path:
    """Compiles the shaders below ``folder`` and returns where they lie (``folder/built`` by default).

    They are found as fuelvk's own are: ``shaders/glsl/FAMILY/STEM.comp`` or ``shaders/slang/FAMILY/STEM.slang``, each
    with a variant table ``STEM.toml`` beside it, and compiled for both ways to reach buffers. What has not changed is
    not compiled again. Raises ShaderBuildError with the compiler's words.
    """
    target = output if output is not None else folder / "built"
    build(root=folder, output=target)
    return target


def shader(built: Path, stem: str, entry: str = "main", **fixed: str | int) -> ShaderRef:
    """Returns the shader ``stem`` ("FAMILY/STEM") of a build, with some axes of its table fixed."""
    return ShaderRef(stem, entry, fixed, Manifest(built, read_document(built), None))


def free(shapes: Shapes, params: Mapping[str, Any], capabilities: Any) -> CostEstimate:
    """The cost of a kernel that nobody has estimated."""
    return CostEstimate()


def python_kernel(
    op_id: OpId,
    dtypes: tuple[DType, ...],
    function: Callable[..., Any],
    *,
    precision: PrecisionGuarantee,
    cost: CostFunction = free,
    name: str = "cpu.own",
) -> Registration:
    """Returns a row for a Python function of the op's inputs (arrays, None) and parameters (keywords).

    It returns the output, or a tuple of outputs, in the op's output dtypes. The revision is a digest of its source.
    """

    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        results = function(*inputs, **params)
        for target, result in zip(
            outputs, results if isinstance(results, tuple) else (results,), strict=True
        ):
            target[...] = np.asarray(result)

    impl = BackendImpl(
        name=name,
        kernel=kernel,
        dtypes=dtypes,
        cost=cost,
        precision=precision,
        revision=KernelRevisionHash(digest64("own", op_id.name, inspect.getsource(function))),
    )
    return Registration(op_id, BackendId.CPU, impl)
