"""Compute pipelines on first use, their layouts, and the driver's pipeline cache on disk."""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from fuelvk.base.errors import FuelvkError, ParameterError, UnsupportedError
from fuelvk.vulkan.debug import Debug
from fuelvk.vulkan.features import COMPUTE_STAGE, DeviceInfo
from fuelvk.vulkan.loader import Api, check
from fuelvk.vulkan.modules import with_float_controls

_STORAGE_BUFFER = 7
_PUSH_DESCRIPTOR = 0x1
_MAGIC = b"fuelvk-pipelines-1\n"
#: Drivers that cache elsewhere return a blob of little more than its 32-byte header.
_SMALLEST_CACHE = 64
_LARGEST_PUSH = 256


#: Kernels written for a subgroup width take every lane to be there; workgroups are multiples of the width.
_REQUIRE_FULL_SUBGROUPS = 0x2


class Layout:
    """A pipeline layout.

    The push range, and in storage-buffer mode one set of ``n_buffers`` storage buffers.
    """

    __slots__ = ("handle", "n_buffers", "set_layout")

    def __init__(self, handle: Any, set_layout: Any, n_buffers: int) -> None:
        self.handle = handle
        self.set_layout = set_layout
        self.n_buffers = n_buffers


class Pipeline:
    """A compute pipeline: what ``Recorder.dispatch`` binds."""

    __slots__ = ("entry", "handle", "key", "layout", "layout_handle", "n_buffers", "push_size")

    def __init__(
        self, key: str, entry: str, handle: Any, layout: Layout, n_buffers: int, push_size: int
    ) -> None:
        self.key = key
        self.entry = entry
        self.handle = handle
        self.layout = layout
        self.layout_handle = layout.handle
        self.n_buffers = n_buffers
        self.push_size = push_size

    def __repr__(self) -> str:
        return f"Pipeline({self.key}:{self.entry})"


class PipelineStore:
    """Creates and keeps the modules, layouts and pipelines of one device.

    Safe to use from several threads.
    """

    def __init__(
        self, api: Api, device: Any, info: DeviceInfo, debug: Debug, addressing: str, cache: Path | None
    ) -> None:
        self.api = api
        self.device = device
        self.info = info
        self.debug = debug
        self.addressing = addressing
        self.push_limit = min(info.limits.max_push_constants, _LARGEST_PUSH)
        self._lock = threading.Lock()
        self._pipelines: dict[tuple[Any, ...], Pipeline] = {}
        self._pending: dict[tuple[Any, ...], Future[Pipeline]] = {}
        self._modules: dict[str, Any] = {}
        self._layouts: dict[int, Layout] = {}
        self._path = cache / f"{info.fingerprint}.bin" if cache is not None else None
        self._stored = _read_cache(self._path)
        self._cache = self._create_cache(self._stored)

    def __len__(self) -> int:
        return len(self._pipelines)

    def pipeline(
        self,
        key: str,
        spirv: Callable[[], bytes],
        entry: str,
        n_buffers: int,
        push_size: int,
        spec: tuple[int, ...] = (),
        subgroup: int = 0,
    ) -> Pipeline:
        """Returns the pipeline of an entry point, creating it on first use; see ``Device.pipeline``."""
        identity = (key, entry, n_buffers, spec, subgroup)
        found = self._pipelines.get(identity)
        if found is not None:
            return found
        with self._lock:
            pending = self._pending.get(identity)
            mine = pending is None
            if pending is None:
                pending = self._pending[identity] = Future()
        if not mine:
            return pending.result()
        try:
            made = self._create(key, spirv, entry, n_buffers, push_size, spec, subgroup)
        except BaseException as error:
            pending.set_exception(error)
            with self._lock:
                del self._pending[identity]
            raise
        self._pipelines[identity] = made
        pending.set_result(made)
        return made

    def layout(self, n_buffers: int) -> Layout:
        """Returns the layout for a number of buffers; in device-address mode they all share one."""
        count = n_buffers if self.addressing == "ssbo" else 0
        with self._lock:
            found = self._layouts.get(count)
            if found is None:
                found = self._layouts[count] = self._create_layout(count)
            return found

    def close(self) -> None:
        """Writes the pipeline cache where that is worth it, and destroys everything."""
        a, null = self.api, self.api.null
        with contextlib.suppress(FuelvkError):  # a lost device has no cache to give
            self._save_cache()
        for pipeline in self._pipelines.values():
            a.lib.vkDestroyPipeline(self.device, pipeline.handle, null)
        for module in self._modules.values():
            a.lib.vkDestroyShaderModule(self.device, module, null)
        for layout in self._layouts.values():
            a.lib.vkDestroyPipelineLayout(self.device, layout.handle, null)
            if layout.set_layout is not None:
                a.lib.vkDestroyDescriptorSetLayout(self.device, layout.set_layout[0], null)
        a.lib.vkDestroyPipelineCache(self.device, self._cache, null)
        self._pipelines.clear()
        self._modules.clear()
        self._layouts.clear()

    def _create_layout(self, n_buffers: int) -> Layout:
        a = self.api
        set_layout = None
        if n_buffers:
            if n_buffers > self.info.limits.max_storage_buffers:
                raise UnsupportedError(
                    "more storage buffers than the device binds",
                    asked=n_buffers,
                    allowed=self.info.limits.max_storage_buffers,
                )
            bindings = a.ffi.new("VkDescriptorSetLayoutBinding[]", n_buffers)
            for i in range(n_buffers):
                bindings[i].binding = i
                bindings[i].descriptorType = _STORAGE_BUFFER
                bindings[i].descriptorCount = 1
                bindings[i].stageFlags = COMPUTE_STAGE
            pushed = "push_descriptor" in self.info.features
            info = a.new(
                "VkDescriptorSetLayoutCreateInfo",
                flags=_PUSH_DESCRIPTOR if pushed else 0,
                bindingCount=n_buffers,
                pBindings=bindings,
            )
            set_layout = a.ffi.new("VkDescriptorSetLayout*")
            check(
                a.lib.vkCreateDescriptorSetLayout(self.device, info, a.null, set_layout),
                "vkCreateDescriptorSetLayout",
            )
        push = a.ffi.new(
            "VkPushConstantRange*", {"stageFlags": COMPUTE_STAGE, "offset": 0, "size": self.push_limit}
        )
        info = a.new(
            "VkPipelineLayoutCreateInfo",
            setLayoutCount=1 if set_layout is not None else 0,
            pSetLayouts=set_layout if set_layout is not None else a.null,
            pushConstantRangeCount=1,
            pPushConstantRanges=push,
        )
        cell = a.ffi.new("VkPipelineLayout*")
        check(a.lib.vkCreatePipelineLayout(self.device, info, a.null, cell), "vkCreatePipelineLayout")
        return Layout(cell[0], set_layout, n_buffers)

    def _module(self, key: str, spirv: Callable[[], bytes]) -> Any:
        with self._lock:
            found = self._modules.get(key)
        if found is not None:
            return found
        code = with_float_controls(spirv(), self.info.float_controls)
        a = self.api
        cell = a.ffi.new("VkShaderModule*")
        words = a.ffi.new("char[]", code)
        info = a.new("VkShaderModuleCreateInfo", codeSize=len(code), pCode=a.ffi.cast("uint32_t*", words))
        check(a.lib.vkCreateShaderModule(self.device, info, a.null, cell), "vkCreateShaderModule")
        with self._lock:
            kept = self._modules.setdefault(key, cell[0])
        if kept is not cell[0] and kept != cell[0]:
            a.lib.vkDestroyShaderModule(self.device, cell[0], a.null)
        self.debug.name(a, self.device, "module", kept, key)
        return kept

    def _create(
        self,
        key: str,
        spirv: Callable[[], bytes],
        entry: str,
        n_buffers: int,
        push_size: int,
        spec: tuple[int, ...],
        subgroup: int,
    ) -> Pipeline:
        if push_size > self.push_limit:
            raise ParameterError(
                "too many push constants", asked=f"{push_size} bytes", allowed=self.push_limit
            )
        a = self.api
        layout = self.layout(n_buffers)
        module = self._module(key, spirv)
        name = a.ffi.new("char[]", entry.encode())
        info = a.new("VkComputePipelineCreateInfo", layout=layout.handle)
        stage = info.stage
        stage.sType = a.vk.VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO
        stage.stage = COMPUTE_STAGE
        stage.module = module
        stage.pName = name
        constants = self._specialization(spec)
        if constants:
            stage.pSpecializationInfo = constants[0]
        required = self._required_subgroup(subgroup)
        if required is not None:
            stage.pNext = required
        if subgroup and "full_subgroups" in self.info.features:
            stage.flags = _REQUIRE_FULL_SUBGROUPS
        cell = a.ffi.new("VkPipeline*")
        try:
            check(
                a.lib.vkCreateComputePipelines(self.device, self._cache, 1, info, a.null, cell),
                "vkCreateComputePipelines",
            )
        except FuelvkError as error:
            error.add_note(f"while creating the pipeline {key}:{entry} on {self.info.name}")
            raise
        self.debug.name(a, self.device, "pipeline", cell[0], f"{key}:{entry}")
        return Pipeline(key, entry, cell[0], layout, n_buffers, push_size)

    def _specialization(self, spec: tuple[int, ...]) -> tuple[Any, ...]:
        if not spec:
            return ()
        a = self.api
        data = a.ffi.new("uint32_t[]", [value & 0xFFFFFFFF for value in spec])
        entries = a.ffi.new(
            "VkSpecializationMapEntry[]",
            [{"constantID": i, "offset": 4 * i, "size": 4} for i in range(len(spec))],
        )
        info = a.ffi.new(
            "VkSpecializationInfo*",
            {"mapEntryCount": len(spec), "pMapEntries": entries, "dataSize": 4 * len(spec), "pData": data},
        )
        return info, entries, data

    def _required_subgroup(self, width: int) -> Any:
        info = self.info
        if not width or info.min_subgroup == info.max_subgroup == width:
            return None
        if "size_control" not in info.features or not info.min_subgroup <= width <= info.max_subgroup:
            raise UnsupportedError(
                "the device cannot be asked for this subgroup width",
                asked=width,
                allowed=f"{info.min_subgroup} to {info.max_subgroup}"
                if "size_control" in info.features
                else f"{info.subgroup_size}, which is not guaranteed",
            )
        return self.api.new("VkPipelineShaderStageRequiredSubgroupSizeCreateInfo", requiredSubgroupSize=width)

    def _create_cache(self, data: bytes) -> Any:
        a = self.api
        cell = a.ffi.new("VkPipelineCache*")
        raw = a.ffi.new("char[]", data) if data else a.null
        info = a.new("VkPipelineCacheCreateInfo", initialDataSize=len(data), pInitialData=raw)
        check(a.lib.vkCreatePipelineCache(self.device, info, a.null, cell), "vkCreatePipelineCache")
        return cell[0]

    def _save_cache(self) -> None:
        if self._path is None or not self._pipelines:
            return
        a = self.api
        size = a.ffi.new("size_t*")
        check(a.lib.vkGetPipelineCacheData(self.device, self._cache, size, a.null), "vkGetPipelineCacheData")
        if size[0] < _SMALLEST_CACHE:
            return
        data = a.ffi.new("char[]", size[0])
        check(a.lib.vkGetPipelineCacheData(self.device, self._cache, size, data), "vkGetPipelineCacheData")
        blob = bytes(a.ffi.buffer(data, size[0]))
        if blob != self._stored:
            _write_cache(self._path, blob)


def _read_cache(path: Path | None) -> bytes:
    """Returns the blob of a cache file; empty when it is missing or damaged."""
    if path is None:
        return b""
    try:
        raw = path.read_bytes()
    except OSError:
        return b""
    head = len(_MAGIC) + 32 + 8
    if len(raw) < head or not raw.startswith(_MAGIC):
        return b""
    digest, (size,) = raw[len(_MAGIC) : head - 8], struct.unpack("<Q", raw[head - 8 : head])
    blob = raw[head:]
    intact = len(blob) == size and hashlib.blake2b(blob, digest_size=32).digest() == digest
    return blob if intact else b""


def _write_cache(path: Path, blob: bytes) -> None:
    """Replaces a cache file in one step; a folder that cannot be written costs the cache, nothing else."""
    raw = _MAGIC + hashlib.blake2b(blob, digest_size=32).digest() + struct.pack("<Q", len(blob)) + blob
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(raw)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
