"""What a physical device is and can do: identity, features, limits, memory heaps."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from fuelvk.base.hashing import digest64
from fuelvk.vulkan.loader import Api

COMPUTE_STAGE = 0x20
QUEUE_COMPUTE = 0x2
QUEUE_TRANSFER = 0x4

DEVICE_TYPES = {0: "other", 1: "integrated", 2: "discrete", 3: "virtual", 4: "cpu"}

#: Feature name -> (structure, field). All of a row's rows are enabled when the device has them.
_FIELDS: tuple[tuple[str, str, str], ...] = (
    ("f64", "core", "shaderFloat64"),
    ("i64", "core", "shaderInt64"),
    ("i16", "core", "shaderInt16"),
    ("storage16", "v11", "storageBuffer16BitAccess"),
    ("uniform_storage16", "v11", "uniformAndStorageBuffer16BitAccess"),
    # Not for data: some validation layers take a pointer to 16-bit elements in a push block for one of them.
    ("push16", "v11", "storagePushConstant16"),
    ("push8", "v12", "storagePushConstant8"),
    ("variable_pointers_storage", "v11", "variablePointersStorageBuffer"),
    ("variable_pointers", "v11", "variablePointers"),
    ("storage8", "v12", "storageBuffer8BitAccess"),
    ("uniform_storage8", "v12", "uniformAndStorageBuffer8BitAccess"),
    ("i64_atomics", "v12", "shaderBufferInt64Atomics"),
    ("f16", "v12", "shaderFloat16"),
    ("i8", "v12", "shaderInt8"),
    ("scalar_layout", "v12", "scalarBlockLayout"),
    ("std_uniform_layout", "v12", "uniformBufferStandardLayout"),
    ("subgroup_extended_types", "v12", "shaderSubgroupExtendedTypes"),
    ("subgroup_broadcast_dynamic", "v12", "subgroupBroadcastDynamicId"),
    ("host_query_reset", "v12", "hostQueryReset"),
    ("timeline", "v12", "timelineSemaphore"),
    ("bda", "v12", "bufferDeviceAddress"),
    ("memory_model", "v12", "vulkanMemoryModel"),
    ("memory_model_device_scope", "v12", "vulkanMemoryModelDeviceScope"),
    ("size_control", "v13", "subgroupSizeControl"),
    ("full_subgroups", "v13", "computeFullSubgroups"),
    ("zero_workgroup_memory", "v13", "shaderZeroInitializeWorkgroupMemory"),
    ("integer_dot", "v13", "shaderIntegerDotProduct"),
    ("maintenance4", "v13", "maintenance4"),
    ("sync2", "v13", "synchronization2"),
    ("size_control", "size", "subgroupSizeControl"),
    ("full_subgroups", "size", "computeFullSubgroups"),
    ("coopmat", "coopmat", "cooperativeMatrix"),
)

_STRUCTURES = {
    "v11": "VkPhysicalDeviceVulkan11Features",
    "v12": "VkPhysicalDeviceVulkan12Features",
    "v13": "VkPhysicalDeviceVulkan13Features",
    "size": "VkPhysicalDeviceSubgroupSizeControlFeatures",
    "coopmat": "VkPhysicalDeviceCooperativeMatrixFeaturesKHR",
}

#: Bits of VkSubgroupFeatureFlags.
_SUBGROUP = {
    "subgroup_basic": 0x1,
    "subgroup_vote": 0x2,
    "subgroup_arithmetic": 0x4,
    "subgroup_ballot": 0x8,
    "subgroup_shuffle": 0x10,
    "subgroup_shuffle_relative": 0x20,
    "subgroup_clustered": 0x40,
    "subgroup_quad": 0x80,
}

#: Extensions that are switched on when present; each is a feature of the same short name.
EXTENSIONS = {
    "push_descriptor": "VK_KHR_push_descriptor",
    "memory_budget": "VK_EXT_memory_budget",
    "coopmat": "VK_KHR_cooperative_matrix",
    "size_control": "VK_EXT_subgroup_size_control",
}

#: SPIR-V capability -> the feature (by name here) that a device must have; None: always there for compute.
CAPABILITY_FEATURES: dict[str, str | None] = {
    "Shader": None,
    "Matrix": None,
    "Float16": "f16",
    "Float64": "f64",
    "Int8": "i8",
    "Int16": "i16",
    "Int64": "i64",
    "StorageBuffer16BitAccess": "storage16",
    "UniformAndStorageBuffer16BitAccess": "uniform_storage16",
    "StorageBuffer8BitAccess": "storage8",
    "UniformAndStorageBuffer8BitAccess": "uniform_storage8",
    "PhysicalStorageBufferAddresses": "bda",
    "VariablePointersStorageBuffer": "variable_pointers_storage",
    "VariablePointers": "variable_pointers",
    "Int64Atomics": "i64_atomics",
    "VulkanMemoryModel": "memory_model",
    "VulkanMemoryModelDeviceScope": "memory_model_device_scope",
    "GroupNonUniform": "subgroup_basic",
    "GroupNonUniformVote": "subgroup_vote",
    "GroupNonUniformArithmetic": "subgroup_arithmetic",
    "GroupNonUniformBallot": "subgroup_ballot",
    "GroupNonUniformShuffle": "subgroup_shuffle",
    "GroupNonUniformShuffleRelative": "subgroup_shuffle_relative",
    "GroupNonUniformClustered": "subgroup_clustered",
    "GroupNonUniformQuad": "subgroup_quad",
    "CooperativeMatrixKHR": "coopmat",
    "DotProduct": "integer_dot",
    "DotProductInput4x8Bit": "integer_dot",
    "DotProductInput4x8BitPacked": "integer_dot",
    "DotProductInputAll": "integer_dot",
    "SignedZeroInfNanPreserve": None,
    "RoundingModeRTE": None,
    "DenormPreserve": None,
}


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a device that matter to compute. Sizes in bytes."""

    max_invocations: int
    max_workgroup: tuple[int, int, int]
    max_groups: tuple[int, int, int]
    max_shared_memory: int
    max_push_constants: int
    max_storage_buffers: int
    max_storage_range: int
    max_buffer_size: int
    max_allocation: int
    max_allocations: int
    storage_alignment: int
    atom_size: int
    timestamp_period: float
    timestamp_bits: int
    max_subgroups: int


@dataclass(frozen=True, slots=True)
class FloatControls:
    """Which SPIR-V float execution modes are offered, per float width in bits."""

    denorm_independence: int
    rounding_independence: int
    denorm_preserve: frozenset[int]
    rounding_rte: frozenset[int]
    signed_zero_inf_nan: frozenset[int]


@dataclass(frozen=True, slots=True)
class Heap:
    """One memory heap."""

    size: int
    device_local: bool


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A Vulkan device as found, before it is opened.

    Two drivers may share name and version; driver_info differs.
    """

    index: int
    name: str
    type: str
    driver_id: int
    driver_name: str
    driver_info: str
    driver_version: int
    vendor_id: int
    device_id: int
    api_version: tuple[int, int, int]
    uuid: bytes
    features: frozenset[str]
    subgroup_size: int
    min_subgroup: int
    max_subgroup: int
    limits: Limits
    heaps: tuple[Heap, ...]
    float_controls: FloatControls
    queue_family: int
    extensions: frozenset[str] = field(repr=False, default=frozenset())

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that change with device, driver, driver build or subgroup width."""
        return _fingerprint(
            self.vendor_id,
            self.device_id,
            self.driver_id,
            self.driver_version,
            self.name,
            self.driver_name,
            self.driver_info,
            self.subgroup_size,
            self.uuid.hex(),
        )

    @property
    def memory(self) -> int:
        """Bytes in the largest device-local heap."""
        return max((heap.size for heap in self.heaps if heap.device_local), default=0)

    def lacking(self, capabilities: tuple[str, ...] | frozenset[str] | list[str]) -> list[str]:
        """Returns the SPIR-V capabilities, by name, that this device does not offer."""
        return [
            name
            for name in capabilities
            if (need := CAPABILITY_FEATURES.get(name, name)) is not None and need not in self.features
        ]


@functools.lru_cache(maxsize=64)
def _fingerprint(*parts: str | int) -> str:
    return f"{digest64(*parts):016x}"


def describe(api: Api, handle: Any, index: int, disabled: frozenset[str]) -> tuple[DeviceInfo | None, str]:
    """Returns what a physical device is, or None and the reason why it cannot be used."""
    lib, ffi = api.lib, api.ffi
    core = ffi.new("VkPhysicalDeviceProperties*")
    lib.vkGetPhysicalDeviceProperties(handle, core)
    name = api.text(core.deviceName)
    version = (core.apiVersion >> 22 & 0x7F, core.apiVersion >> 12 & 0x3FF, core.apiVersion & 0xFFF)
    if version < (1, 2, 0):
        return None, f"{name}: offers Vulkan {version[0]}.{version[1]}, fuelvk needs 1.2"
    extensions = frozenset(
        api.text(e.extensionName)
        for e in api.listed("vkEnumerateDeviceExtensionProperties", "VkExtensionProperties", handle, api.null)
    )
    family, timestamp_bits = _compute_family(api, handle)
    if family < 0:
        return None, f"{name}: has no queue that computes"

    p11, p12 = api.new("VkPhysicalDeviceVulkan11Properties"), api.new("VkPhysicalDeviceVulkan12Properties")
    sizes = api.new("VkPhysicalDeviceSubgroupSizeControlProperties")
    maintenance = api.new("VkPhysicalDeviceMaintenance4Properties")
    has_13 = version >= (1, 3, 0)
    chain = [p11, p12]
    if has_13 or EXTENSIONS["size_control"] in extensions:
        chain.append(sizes)
    if has_13 or "VK_KHR_maintenance4" in extensions:
        chain.append(maintenance)
    for first, second in pairwise(chain):
        first.pNext = second
    lib.vkGetPhysicalDeviceProperties2(handle, api.new("VkPhysicalDeviceProperties2", pNext=chain[0]))

    found = _features(api, handle, extensions, has_13)
    if "timeline" not in found:
        return None, f"{name}: has no timeline semaphores"
    if p11.subgroupSupportedStages & COMPUTE_STAGE:
        found |= {key for key, bit in _SUBGROUP.items() if p11.subgroupSupportedOperations & bit}
    if not sizes.requiredSubgroupSizeStages & COMPUTE_STAGE:
        found.discard("size_control")
    found |= {key for key in ("push_descriptor", "memory_budget") if EXTENSIONS[key] in extensions}

    return DeviceInfo(
        index=index,
        name=name,
        type=DEVICE_TYPES.get(core.deviceType, "other"),
        driver_id=p12.driverID,
        driver_name=api.text(p12.driverName),
        driver_info=api.text(p12.driverInfo),
        driver_version=core.driverVersion,
        vendor_id=core.vendorID,
        device_id=core.deviceID,
        api_version=version,
        uuid=bytes(ffi.buffer(core.pipelineCacheUUID)),
        features=frozenset(found - disabled),
        subgroup_size=p11.subgroupSize,
        min_subgroup=sizes.minSubgroupSize or p11.subgroupSize,
        max_subgroup=sizes.maxSubgroupSize or p11.subgroupSize,
        limits=_limits(core.limits, p11, sizes, maintenance, timestamp_bits),
        heaps=_heaps(api, handle),
        float_controls=_float_controls(p12),
        queue_family=family,
        extensions=extensions,
    ), ""


def _compute_family(api: Api, handle: Any) -> tuple[int, int]:
    count = api.ffi.new("uint32_t*")
    api.lib.vkGetPhysicalDeviceQueueFamilyProperties(handle, count, api.null)
    families = api.ffi.new("VkQueueFamilyProperties[]", count[0])
    api.lib.vkGetPhysicalDeviceQueueFamilyProperties(handle, count, families)
    for index in range(count[0]):
        if families[index].queueFlags & QUEUE_COMPUTE:
            return index, families[index].timestampValidBits
    return -1, 0


def feature_chain(api: Api, extensions: frozenset[str], has_13: bool) -> dict[str, Any]:
    """Returns the linked feature structures of a device by their short names.

    "core" is the head of the chain.
    """
    names = ["v11", "v12"] + (
        ["v13"] if has_13 else ["size"] if EXTENSIONS["size_control"] in extensions else []
    )
    if EXTENSIONS["coopmat"] in extensions:
        names.append("coopmat")
    chain = {name: api.new(_STRUCTURES[name]) for name in names}
    parts = list(chain.values())
    for first, second in pairwise(parts):
        first.pNext = second
    chain["head"] = api.new("VkPhysicalDeviceFeatures2", pNext=parts[0])
    chain["core"] = chain["head"].features
    return chain


def _features(api: Api, handle: Any, extensions: frozenset[str], has_13: bool) -> set[str]:
    chain = feature_chain(api, extensions, has_13)
    api.lib.vkGetPhysicalDeviceFeatures2(handle, chain["head"])
    return {key for key, structure, name in _FIELDS if structure in chain and getattr(chain[structure], name)}


def enabled_chain(api: Api, info: DeviceInfo, robust: bool) -> dict[str, Any]:
    """Returns the feature structures for device creation.

    Every feature of ``info`` switched on, nothing else.
    """
    chain = feature_chain(api, info.extensions, info.api_version >= (1, 3, 0))
    for key, structure, name in _FIELDS:
        if structure in chain and key in info.features:
            setattr(chain[structure], name, 1)
    chain["core"].robustBufferAccess = int(robust)
    return chain


def _limits(limits: Any, p11: Any, sizes: Any, maintenance: Any, timestamp_bits: int) -> Limits:
    return Limits(
        max_invocations=limits.maxComputeWorkGroupInvocations,
        max_workgroup=tuple(limits.maxComputeWorkGroupSize),
        max_groups=tuple(limits.maxComputeWorkGroupCount),
        max_shared_memory=limits.maxComputeSharedMemorySize,
        max_push_constants=limits.maxPushConstantsSize,
        max_storage_buffers=min(
            limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers
        ),
        max_storage_range=limits.maxStorageBufferRange,
        max_buffer_size=maintenance.maxBufferSize or p11.maxMemoryAllocationSize,
        max_allocation=p11.maxMemoryAllocationSize,
        max_allocations=limits.maxMemoryAllocationCount,
        storage_alignment=limits.minStorageBufferOffsetAlignment,
        atom_size=limits.nonCoherentAtomSize,
        timestamp_period=limits.timestampPeriod,
        timestamp_bits=timestamp_bits,
        max_subgroups=sizes.maxComputeWorkgroupSubgroups,
    )


def _float_controls(p12: Any) -> FloatControls:
    def widths(prefix: str) -> frozenset[int]:
        return frozenset(bits for bits in (16, 32, 64) if getattr(p12, f"{prefix}Float{bits}"))

    return FloatControls(
        denorm_independence=p12.denormBehaviorIndependence,
        rounding_independence=p12.roundingModeIndependence,
        denorm_preserve=widths("shaderDenormPreserve"),
        rounding_rte=widths("shaderRoundingModeRTE"),
        signed_zero_inf_nan=widths("shaderSignedZeroInfNanPreserve"),
    )


def _heaps(api: Api, handle: Any) -> tuple[Heap, ...]:
    memory = api.ffi.new("VkPhysicalDeviceMemoryProperties*")
    api.lib.vkGetPhysicalDeviceMemoryProperties(handle, memory)
    return tuple(
        Heap(memory.memoryHeaps[i].size, bool(memory.memoryHeaps[i].flags & 1))
        for i in range(memory.memoryHeapCount)
    )
