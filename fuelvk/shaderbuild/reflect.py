"""What a SPIR-V module asks for and offers, read from its words (SPIR-V specification, section 2.3 and 3)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from fuelvk.base.errors import ShaderBuildError
from fuelvk.shaderbuild.manifest import EntryInfo

_MAGIC = 0x07230203

_FUNCTION, _FUNCTION_END, _CALL = 54, 56, 57
_CONTRACTIBLE = {129, 131, 133, 142}  # FAdd FSub FMul VectorTimesScalar

_BUILT_IN, _WORKGROUP_SIZE = 11, 25
_SPEC_ID, _ARRAY_STRIDE, _BINDING, _DESCRIPTOR_SET, _OFFSET, _NO_CONTRACTION = 1, 6, 33, 34, 35, 42
_PUSH_CONSTANT, _LOCAL_SIZE, _GL_COMPUTE = 9, 17, 5

# Which operands of an instruction may name a module-scope variable, as word indices after the opcode word.
# Kept exact, so that a literal which happens to equal a variable's id is not taken for a use.
_POINTER_OPERANDS: dict[int, tuple[int, ...]] = {
    60: (2,),  # ImageTexelPointer
    61: (2,),  # Load
    62: (0,),  # Store
    63: (0, 1),  # CopyMemory
    65: (2,),  # AccessChain
    66: (2,),  # InBoundsAccessChain
    67: (2,),  # PtrAccessChain
    68: (2,),  # ArrayLength
    83: (2,),  # CopyObject
    227: (2,),  # AtomicLoad
    228: (0,),  # AtomicStore
    **dict.fromkeys(range(229, 243), (2,)),  # AtomicExchange .. AtomicXor
    6035: (2,),  # AtomicFAddEXT
}

_CAPABILITIES = {
    0: "Matrix",
    1: "Shader",
    9: "Float16",
    10: "Float64",
    11: "Int64",
    12: "Int64Atomics",
    22: "Int16",
    39: "Int8",
    61: "GroupNonUniform",
    62: "GroupNonUniformVote",
    63: "GroupNonUniformArithmetic",
    64: "GroupNonUniformBallot",
    65: "GroupNonUniformShuffle",
    66: "GroupNonUniformShuffleRelative",
    67: "GroupNonUniformClustered",
    68: "GroupNonUniformQuad",
    4433: "StorageBuffer16BitAccess",
    4434: "UniformAndStorageBuffer16BitAccess",
    4435: "StoragePushConstant16",
    4448: "StorageBuffer8BitAccess",
    4449: "UniformAndStorageBuffer8BitAccess",
    4450: "StoragePushConstant8",
    4464: "DenormPreserve",
    4465: "DenormFlushToZero",
    4466: "SignedZeroInfNanPreserve",
    4467: "RoundingModeRTE",
    4468: "RoundingModeRTZ",
    5345: "VulkanMemoryModel",
    5346: "VulkanMemoryModelDeviceScope",
    5347: "PhysicalStorageBufferAddresses",
    6019: "DotProduct",
    6022: "CooperativeMatrixKHR",
    6033: "AtomicFloat32AddEXT",
}


@dataclass(frozen=True, slots=True)
class Reflection:
    """Facts of one module.

    ``push`` lists (member, offset, size in bytes) of the push-constant block, ``spec`` (id, type) of the
    specialization constants. ``contractible`` counts float additions, subtractions and multiplications,
    ``no_contraction`` those of them that forbid fusing.
    """

    version: tuple[int, int]
    entries: dict[str, EntryInfo]
    capabilities: tuple[str, ...]
    push: tuple[tuple[str, int, int], ...]
    spec: tuple[tuple[int, str], ...]
    contractible: int
    no_contraction: int


@dataclass(slots=True)
class _Module:
    names: dict[int, str] = field(default_factory=dict)
    member_names: dict[tuple[int, int], str] = field(default_factory=dict)
    decorations: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    offsets: dict[tuple[int, int], int] = field(default_factory=dict)
    capabilities: list[int] = field(default_factory=list)
    entry_points: list[tuple[int, str]] = field(default_factory=list)
    local_sizes: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    types: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    constants: dict[int, int] = field(default_factory=dict)
    specs: list[tuple[int, int, int]] = field(default_factory=list)
    variables: dict[int, tuple[int, int]] = field(default_factory=dict)
    uses: dict[int, set[int]] = field(default_factory=dict)
    contractible: list[int] = field(default_factory=list)
    sized_by_constant: bool = False


def reflect(spirv: bytes) -> Reflection:
    """Returns what `Reflection` lists; raises ShaderBuildError when this is no compute module we can use."""
    words = _words(spirv)
    module = _Module()
    function = 0
    for opcode, operands in _instructions(words):
        if opcode == _FUNCTION:
            function = operands[1]
            module.uses[function] = set()
        elif opcode == _FUNCTION_END:
            function = 0
        elif function:
            _body(module, function, opcode, operands)
        else:
            _declaration(module, opcode, operands)
    return Reflection(
        version=((words[1] >> 16) & 0xFF, (words[1] >> 8) & 0xFF),
        entries={name: _entry(module, function, name) for function, name in module.entry_points},
        capabilities=tuple(sorted(_CAPABILITIES.get(c, str(c)) for c in set(module.capabilities))),
        push=_push(module),
        spec=_spec(module),
        contractible=len(module.contractible),
        no_contraction=sum((i, _NO_CONTRACTION) in module.decorations for i in module.contractible),
    )


def _words(spirv: bytes) -> tuple[int, ...]:
    if len(spirv) < 20 or len(spirv) % 4:
        raise ShaderBuildError(
            "not a SPIR-V module", seen=f"{len(spirv)} bytes", allowed="whole words after a header of five"
        )
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    if words[0] != _MAGIC:
        raise ShaderBuildError(
            "not a SPIR-V module", seen=f"magic {words[0]:#010x}", allowed=f"{_MAGIC:#010x}"
        )
    return words


def _instructions(words: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    at = 5
    while at < len(words):
        count = words[at] >> 16
        if count == 0 or at + count > len(words):
            raise ShaderBuildError(
                "damaged SPIR-V", seen=f"an instruction of {count} words at word {at} of {len(words)}"
            )
        yield words[at] & 0xFFFF, words[at + 1 : at + count]
        at += count


def _text(words: tuple[int, ...]) -> str:
    raw = struct.pack(f"<{len(words)}I", *words)
    return raw[: raw.index(0)].decode()


def _declaration(module: _Module, opcode: int, ops: tuple[int, ...]) -> None:
    match opcode:
        case 17:  # Capability
            module.capabilities.append(ops[0])
        case 15 if ops[0] == _GL_COMPUTE:  # EntryPoint
            module.entry_points.append((ops[1], _text(ops[2:])))
        case 16 if ops[1] == _LOCAL_SIZE:  # ExecutionMode
            module.local_sizes[ops[0]] = (ops[2], ops[3], ops[4])
        case 5:  # Name
            module.names[ops[0]] = _text(ops[1:])
        case 6:  # MemberName
            module.member_names[ops[0], ops[1]] = _text(ops[2:])
        case 71:  # Decorate
            module.decorations[ops[0], ops[1]] = ops[2:]
        case 72 if ops[2] == _OFFSET:  # MemberDecorate
            module.offsets[ops[0], ops[1]] = ops[3]
        case 20 | 21 | 22 | 23 | 24 | 28 | 29 | 30 | 32:  # types
            module.types[ops[0]] = (opcode, ops[1:])
        case 43:  # Constant
            module.constants[ops[1]] = ops[2]
        case 48 | 49:  # SpecConstantTrue, SpecConstantFalse
            module.specs.append((ops[1], ops[0], int(opcode == 48)))
        case 50:  # SpecConstant
            module.constants[ops[1]] = ops[2]
            module.specs.append((ops[1], ops[0], ops[2]))
        case 51 if module.decorations.get((ops[1], _BUILT_IN)) == (_WORKGROUP_SIZE,):  # SpecConstantComposite
            module.sized_by_constant = True
        case 59:  # Variable
            module.variables[ops[1]] = (ops[0], ops[2])


def _body(module: _Module, function: int, opcode: int, ops: tuple[int, ...]) -> None:
    uses = module.uses[function]
    if opcode == _CALL:
        uses.update(ops[2:])
    elif opcode in _CONTRACTIBLE:
        module.contractible.append(ops[1])
    else:
        uses.update(ops[i] for i in _POINTER_OPERANDS.get(opcode, ()) if i < len(ops))


def _reachable(module: _Module, function: int) -> set[int]:
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        current = waiting.pop()
        for used in module.uses.get(current, ()):
            if used not in seen:
                seen.add(used)
                if used in module.uses:
                    waiting.append(used)
    return seen


def _entry(module: _Module, function: int, name: str) -> EntryInfo:
    size = module.local_sizes.get(function)
    if size is None or module.sized_by_constant:
        raise ShaderBuildError(
            "an entry point has no literal workgroup size",
            seen=name,
            hint="write the numbers in the source: a specialization constant there needs Vulkan 1.3",
        )
    used = _reachable(module, function)
    push_size, bindings = 0, []
    for variable, (pointer, storage) in module.variables.items():
        if variable not in used:
            continue
        if storage == _PUSH_CONSTANT:
            push_size = max(push_size, _extent(module, module.types[pointer][1][1]))
        elif (variable, _BINDING) in module.decorations:
            if module.decorations.get((variable, _DESCRIPTOR_SET), (0,))[0] != 0:
                raise ShaderBuildError(
                    "a buffer is not in descriptor set 0", seen=module.names.get(variable, variable)
                )
            bindings.append(module.decorations[variable, _BINDING][0])
    return EntryInfo(size, push_size, tuple(sorted(bindings)))


def _push(module: _Module) -> tuple[tuple[str, int, int], ...]:
    blocks = {module.types[p][1][1] for p, storage in module.variables.values() if storage == _PUSH_CONSTANT}
    if len(blocks) > 1:
        raise ShaderBuildError("a module has several push-constant blocks", seen=len(blocks), allowed=1)
    return tuple(
        (module.member_names.get((block, i), str(i)), module.offsets[block, i], _size(module, member))
        for block in blocks
        for i, member in enumerate(module.types[block][1])
    )


def _extent(module: _Module, struct_type: int) -> int:
    members = module.types[struct_type][1]
    return max((module.offsets[struct_type, i] + _size(module, m) for i, m in enumerate(members)), default=0)


def _size(module: _Module, type_id: int) -> int:
    opcode, ops = module.types[type_id]
    match opcode:
        case 21 | 22:  # TypeInt, TypeFloat
            return ops[0] // 8
        case 23:  # TypeVector
            return ops[1] * _size(module, ops[0])
        case 32:  # TypePointer
            return 8
        case 28:  # TypeArray
            return module.constants[ops[1]] * module.decorations[type_id, _ARRAY_STRIDE][0]
        case 30:  # TypeStruct
            return _extent(module, type_id)
    raise ShaderBuildError(
        "a push-constant member of a type the build cannot measure", seen=f"SPIR-V type opcode {opcode}"
    )


def _spec(module: _Module) -> tuple[tuple[int, str], ...]:
    found = []
    for result, type_id, _ in module.specs:
        if (result, _SPEC_ID) in module.decorations:
            opcode, ops = module.types[type_id]
            kind = {21: "i" if len(ops) > 1 and ops[1] else "u", 22: "f"}.get(opcode, "bool")
            found.append(
                (module.decorations[result, _SPEC_ID][0], kind if kind == "bool" else f"{kind}{ops[0]}")
            )
    return tuple(sorted(found))
