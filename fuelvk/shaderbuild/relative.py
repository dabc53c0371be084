"""SPIR-V with the ids of instructions relative to the last result, which compresses to half of what plain ids leave.

Variants of a shader number the same code differently; how far back an operand lies stays the same. Any word sequence
comes back exactly: what the words mean only decides how well it compresses.
"""

from __future__ import annotations

import struct

_HEADER = 5  # words before the first instruction
# Instructions with a type, a result and operands that are mostly ids: calls, loads, composites, arithmetic, phi.
_RESULTS = frozenset(
    {57, 61, 65, 66, 169, 245, *range(77, 92), *range(109, 125), *range(126, 206), *range(227, 243)}
)
_OPERANDS = frozenset({62, 246, 247, 249, 250})  # store, merges and branches: no result
_LABEL = 248
_MASK = 0xFFFFFFFF


def to_relative(module: bytes) -> bytes:
    """Returns ``module`` (whole little-endian words) with relative ids; `from_relative` undoes it."""
    return _walk(module, forward=True)


def from_relative(content: bytes) -> bytes:
    """Returns the module that `to_relative` made ``content`` of."""
    return _walk(content, forward=False)


def _walk(content: bytes, *, forward: bool) -> bytes:
    words = list(struct.unpack(f"<{len(content) // 4}I", content))
    at, last = _HEADER, 0
    while at < len(words):
        length, op = words[at] >> 16, words[at] & 0xFFFF
        end = min(at + max(length, 1), len(words))
        first = at + 1
        base = last
        if op in _RESULTS and end - at >= 3:
            seen = words[at + 2]
            base = seen if forward else (seen + last) & _MASK
            words[at + 2] = (seen - last) & _MASK if forward else base
            last, first = base, at + 3
        elif op == _LABEL and end - at >= 2:
            seen = words[at + 1]
            last = seen if forward else (seen + last) & _MASK
            words[at + 1] = (seen - base) & _MASK if forward else last
            first = end
        elif op not in _OPERANDS:
            first = end
        words[first:end] = [(base - word) & _MASK for word in words[first:end]]
        at = end
    return struct.pack(f"<{len(words)}I", *words)
