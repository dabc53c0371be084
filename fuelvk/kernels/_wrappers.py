"""The Python half of a kernel's revision: its wrapper module and the modules of ``kernels/ops`` that one is built from.

Not covered, because every kernel shares it and the tests of the runtime hold it: the launch context (``_vulkan``), the
registration of C kernels (``_cpu``), the graph and the runtime; costs and claims, which change no result.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from fuelvk.base.hashing import digest64

_OPS = Path(__file__).parent / "ops"
_IMPORT = re.compile(
    r"^[ \t]*(?:from fuelvk\.kernels\.ops(?:\.(\w+))? import (\([^)]*\)|[^\n#]*)|import fuelvk\.kernels\.ops\.(\w+))",
    re.MULTILINE,
)
_NAME = re.compile(r"(\w+)(?:\s+as\s+\w+)?\s*(?:,|$)")


@functools.cache
def _source(path: Path) -> tuple[bytes, frozenset[Path]]:
    """Returns a module's bytes and the modules of ``kernels/ops`` it imports anywhere in its text."""
    source = path.read_bytes()
    found: set[str] = set()
    for module, names, plain in _IMPORT.findall(source.decode()):
        found.update([module or plain] if module or plain else _NAME.findall(names.strip("()").strip()))
    return source, frozenset(p for name in found if (p := _OPS / f"{name}.py").is_file())


@functools.cache
def _digest(path: Path) -> int:
    return digest64(path.name, _source(path)[0])


def wrapper_modules(file: str) -> frozenset[Path]:
    """Returns the modules of ``kernels/ops`` that the module ``file`` imports, directly or through one another."""
    found: set[Path] = set()
    waiting = [Path(file)]
    while waiting:
        new = _source(waiting.pop())[1] - found
        found |= new
        waiting += new
    return frozenset(found - {Path(file)})


@functools.cache
def wrapper_digest(file: str) -> int:
    """Returns a digest of the module ``file`` (its bytes, not its name) and of its ``wrapper_modules``."""
    return digest64(_source(Path(file))[0], *(_digest(path) for path in sorted(wrapper_modules(file))))
