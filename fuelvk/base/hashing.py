"""One canonical 64-bit digest for everything that is identified by content."""

from __future__ import annotations

import hashlib

UNTRACKED = 0


def digest64(*parts: bytes | str | int) -> int:
    """Returns a 64-bit digest of ``parts``, each tagged with its type and length-prefixed; never 0.

    Length prefixes keep ("ab", "c") and ("a", "bc") apart. Zero is reserved for "untracked".
    """
    state = hashlib.blake2b(digest_size=8, person=b"fuelvk-rev-1")
    for part in parts:
        if isinstance(part, str):
            tag, raw = b"s", part.encode()
        elif isinstance(part, int):
            tag, raw = b"i", str(part).encode()
        else:
            tag, raw = b"b", bytes(part)
        state.update(tag + len(raw).to_bytes(8, "little") + raw)
    return int.from_bytes(state.digest(), "big") or 1
