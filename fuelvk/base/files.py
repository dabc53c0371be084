"""Files that several processes write: one writer at a time, and a reader sees all of a file or none."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Holds an exclusive lock on ``path`` (created, never removed) for a ``with`` block; waits for others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _acquire(handle)
        yield
    finally:
        os.close(handle)


if os.name == "nt":  # pragma: no cover

    def _acquire(handle: int) -> None:
        import msvcrt

        while True:
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
                return
            except OSError:
                time.sleep(0.1)

else:

    def _acquire(handle: int) -> None:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX)


def replace_file(path: Path, content: bytes) -> None:
    """Writes ``content`` to ``path`` so that a reader sees the old bytes or the new ones, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(content)
    os.replace(temporary, path)
