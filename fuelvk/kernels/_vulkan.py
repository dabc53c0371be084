"""What a Vulkan kernel wrapper works with: shader references, the launch context, the registration helper."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import RegistryError
from fuelvk.base.hashing import digest64
from fuelvk.base.shapes import Layout
from fuelvk.graph.types import OpId
from fuelvk.kernels._wrappers import wrapper_digest
from fuelvk.kernels.types import (
    BackendId,
    BackendImpl,
    CostFunction,
    KernelCaps,
    KernelRevisionHash,
    PrecisionGuarantee,
    Registration,
    Shapes,
    admits_all,
)
from fuelvk.shaderbuild import load_manifest
from fuelvk.vulkan.features import CAPABILITY_FEATURES

if TYPE_CHECKING:
    from fuelvk.shaderbuild import Manifest, Variant
    from fuelvk.vulkan import Buffer, Capabilities, Device, Pipeline, Recorder


CONTIGUOUS = KernelCaps()


class ShaderRef:
    """An entry point with some axes fixed (dtype, op); the free ones (mode, width, ...) are chosen per device.

    ``narrower`` says that a variant for fewer lanes than the device's subgroups have will do: its workgroups are that
    small and run in the first lanes of one subgroup.
    """

    def __init__(
        self,
        stem: str,
        entry: str,
        fixed: Mapping[str, str | int],
        manifest: Manifest | None = None,
        narrower: bool = False,
    ) -> None:
        self.stem = stem
        self.entry = entry
        self.fixed = dict(fixed)
        self.narrower = narrower
        manifest = manifest if manifest is not None else load_manifest()
        self.variants: tuple[Variant, ...] = tuple(manifest.variants(stem, **self.fixed))
        if not self.variants or any(entry not in v.entries for v in self.variants):
            raise RegistryError(
                f"no shader variant {stem}:{entry}",
                asked=self.fixed,
                seen=sorted({e for v in manifest.variants(stem) for e in v.entries})
                or "no variant of that stem",
                hint="run python build_shaders.py",
            )
        self._index = {frozenset(v.axes.items()): v for v in self.variants}
        self._free = {name for v in self.variants for name in v.axes} - set(self.fixed)
        self._widths = sorted({int(v.axes["width"]) for v in self.variants if "width" in v.axes})
        self._chosen: dict[tuple[Any, ...], Variant | str] = {}

    @functools.cached_property
    def digest(self) -> int:
        """Digest over every variant this reference can resolve to: they are one implementation."""
        return digest64(self.entry, *sorted(v.digest for v in self.variants))

    def select(self, caps: Capabilities, **free: str | int) -> Variant | str:
        """Returns the variant for a device, or the reason for which there is none."""
        key = (caps, tuple(free.items()))
        found = self._chosen.get(key)
        if found is None:
            found = self._chosen[key] = self._select(caps, free)
        return found

    def _select(self, caps: Capabilities, free: Mapping[str, str | int]) -> Variant | str:
        reason = "no variant for these axes"
        for width in self._width_order(caps):
            axes: dict[str, str | int] = {**self.fixed, **free, "mode": caps.addressing}
            if "width" in self._free and "width" not in free:
                axes["width"] = width
            variant = self._index.get(frozenset(axes.items()))
            if variant is None:
                continue
            missing = _missing(variant, self.entry, caps)
            if missing is None:
                return variant
            reason = missing
        return reason

    def _width_order(self, caps: Capabilities) -> list[int]:
        widths = self._widths or [0]
        exact = [caps.subgroup_width] if caps.subgroup_width in widths and caps.subgroup_width else []
        below = [w for w in reversed(widths) if 0 < w < caps.subgroup_width] if self.narrower else []
        return [*exact, *below, 0]

    def width(self, caps: Capabilities) -> int:
        """Returns the lanes of the variant this device gets."""
        return int(self.variant(caps).axes["width"])

    def workgroup(self, caps: Capabilities, **free: str | int) -> tuple[int, int, int]:
        """Returns the workgroup size of the variant this device gets."""
        return self.variant(caps, **free).entries[self.entry].workgroup

    def variant(self, caps: Capabilities, **free: str | int) -> Variant:
        """Returns the variant for a device; raises RegistryError where ``admits`` should have refused the call."""
        chosen = self.select(caps, **free)
        if isinstance(chosen, str):
            raise RegistryError(
                f"{self.stem}:{self.entry} was dispatched on a device it is not for", seen=chosen
            )
        return chosen


def _missing(variant: Variant, entry: str, caps: Capabilities) -> str | None:
    for capability in variant.capabilities:
        feature = CAPABILITY_FEATURES.get(capability, capability)
        if feature is not None and feature not in caps.features:
            return f"the device lacks {feature} ({capability})"
    x, y, z = variant.entries[entry].workgroup
    if x * y * z > caps.max_invocations:
        return f"needs workgroups of {x * y * z} invocations, the device takes {caps.max_invocations}"
    return None


@functools.cache
def _ref(
    stem: str, entry: str, fixed: tuple[tuple[str, str | int], ...], narrower: bool = False
) -> ShaderRef:
    return ShaderRef(stem, entry, dict(fixed), narrower=narrower)


def spirv(stem: str, entry: str, **fixed: str | int | DType) -> ShaderRef:
    """Returns a reference to ``entry`` of ``stem``; a DType stands for its key. Raises RegistryError if never built."""
    axes = {k: v.key if isinstance(v, DType) else v for k, v in fixed.items()}
    return _ref(stem, entry, tuple(sorted(axes.items())))


def narrower_spirv(stem: str, entry: str, **fixed: str | int | DType) -> ShaderRef:
    """Returns a reference that also takes variants for fewer lanes than the device's subgroups have."""
    return _ref(stem, entry, tuple(sorted(spirv(stem, entry, **fixed).fixed.items())), True)


class Launch(Protocol):
    """What the runtime provides while a plan is recorded."""

    device: Device

    @property
    def recorder(self) -> Recorder: ...
    def scratch(self, nbytes: int) -> Buffer: ...
    def constant(self, data: bytes) -> Buffer: ...
    def prepare(self, source: Buffer, nbytes: int, record: Callable[[Buffer], None], key: str) -> Buffer: ...
    def error_slot(self) -> tuple[Buffer, int]: ...


class VulkanContext:
    """Passed to a kernel wrapper as ``context``: records dispatches and hands out memory for one plan."""

    __slots__ = ("_launch", "_recorder", "caps", "device", "label")

    def __init__(self, launch: Launch, label: str) -> None:
        self._launch = launch
        self._recorder = launch.recorder
        self.device = launch.device
        self.caps = launch.device.caps
        self.label = label

    def dispatch(
        self,
        shader: ShaderRef,
        groups: tuple[int, int, int],
        buffers: Sequence[Buffer],
        writes: int,
        params: bytes,
        *,
        entry: str | None = None,
        also: Sequence[Buffer] = (),
        **free: str | int,
    ) -> None:
        """Records one dispatch; ``writes`` is a bit mask over ``buffers`` of those written.

        ``also`` are buffers that the kernel reads through addresses in a parameter block.
        """
        pipeline = pipeline_of(self.device, shader, entry or shader.entry, len(buffers), free)
        self._launch.recorder.dispatch(pipeline, groups, buffers, writes, params, self.label, also)

    def scratch(self, nbytes: int) -> Buffer:
        """Returns memory that this kernel may use until it returns control to the plan; contents undefined."""
        return self._launch.scratch(nbytes)

    def constant(self, data: bytes) -> Buffer:
        """Returns a buffer holding ``data`` for as long as the recording lives."""
        return self._launch.constant(data)

    def prepare(self, source: Buffer, nbytes: int, record: Callable[[Buffer], None], key: str) -> Buffer:
        """Returns memory filled by ``record`` from ``source``: once when the plan holds ``source`` constant."""
        return self._launch.prepare(source, nbytes, record, key)

    @property
    def error_slot(self) -> tuple[Buffer, int]:
        """The error buffer and the word index that a kernel raises with an atomic maximum (value + 1 seen)."""
        return self._launch.error_slot()

    def fold(self, count: int) -> tuple[int, int, int]:
        """Returns a grid of at least ``count`` workgroups within the device's limits (linear id x + y*gx + z*gx*gy)."""
        limit_x, limit_y, _ = self.caps.max_groups
        if count <= limit_x:
            return max(count, 1), 1, 1
        y = -(-count // limit_x)
        if y <= limit_y:
            return -(-count // y), y, 1
        z = -(-y // limit_y)
        return limit_x, limit_y, z


def pipeline_of(
    device: Device, shader: ShaderRef, entry: str, n_buffers: int, free: Mapping[str, Any]
) -> Pipeline:
    """Returns the device's pipeline for a shader; made on first use."""
    cache = device.shader_pipelines
    key = (shader, entry, tuple(free.items()))
    pipeline = cache.get(key)
    if pipeline is None:
        variant = shader.variant(device.caps, **free)
        width = int(variant.axes.get("width", 0))
        pipeline = cache[key] = device.pipeline(
            f"{variant.name}@{variant.digest:016x}",
            variant.spirv,
            entry,
            n_buffers,
            variant.entries[entry].push_size,
            subgroup=0 if width < device.info.min_subgroup else width,  # fewer lanes than any subgroup has
        )
    return pipeline


def vulkan(
    op_id: OpId,
    dtypes: tuple[DType, ...],
    kernel: Callable[..., None],
    *,
    shaders: Sequence[ShaderRef],
    cost: CostFunction,
    precision: PrecisionGuarantee,
    wrapper: str,
    name: str | None = None,
    caps: KernelCaps = CONTIGUOUS,
    admits: Callable[[Shapes, Mapping[str, Any], Any], str | None] = admits_all,
) -> Registration:
    """Returns a table row for a Vulkan kernel.

    ``shaders`` are all the shaders it may dispatch: they give the revision (with ``wrapper``, the module's
    ``__file__``) and the device features without which the kernel is refused.
    """
    refs = tuple(shaders)

    def refuses(shapes: Shapes, params: Mapping[str, Any], capabilities: Any) -> str | None:
        for ref in refs:
            chosen = ref.select(capabilities)
            if isinstance(chosen, str):
                return chosen
        return admits(shapes, params, capabilities)

    revision = KernelRevisionHash(
        digest64("vulkan", op_id.name, *(r.digest for r in refs), wrapper_digest(wrapper))
    )
    impl = BackendImpl(
        name=name or f"vulkan.{refs[0].stem.rsplit('/', 1)[-1]}",
        kernel=kernel,
        dtypes=dtypes,
        cost=cost,
        precision=precision,
        caps=caps,
        revision=revision,
        admits=refuses,
    )
    return Registration(op_id, BackendId.VULKAN, impl)


def offset_of(layout: Layout | None) -> int:
    """Returns a layout's element offset, 0 for an omitted input."""
    return 0 if layout is None else layout.offset
