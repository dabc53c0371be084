"""Compiler processes that stay: as many as are asked at once, ended together."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fuelvk.shaderbuild.toolchain import Tool

_PROGRAM = Path(__file__).with_name("slang_process.py")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a process said of one module: 0 when it is written, the compiler's words, the files it read."""

    status: int
    words: str
    files: tuple[str, ...]


@dataclass(slots=True)
class Resident:
    """The compiler library beside a tool's program, loaded in processes of its own; threads may share this.

    A process works in the folder of its first call. One that dies is not asked again; its module is the caller's to
    compile another way.
    """

    library: Path
    environment: tuple[tuple[str, str], ...]
    _idle: list[subprocess.Popen[str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def beside(cls, tool: Tool) -> Resident | None:
        """Returns the processes for a tool, None where no library lies beside it."""
        found = sorted(tool.program.parent.glob("libslang-compiler.so.*"))
        return cls(found[0], tool.environment) if len(found) == 1 and os.name == "posix" else None

    def ask(self, arguments: Sequence[str], output: Path, cwd: Path) -> Answer | None:
        """Returns the answer for one module; None when the process ended instead of giving one."""
        with self._lock:
            process = self._idle.pop() if self._idle else None
        process = process or self._start(cwd)
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps({"arguments": list(arguments), "output": str(output)}) + "\n")
            process.stdin.flush()
            said = json.loads(process.stdout.readline())
        except (OSError, ValueError):
            _end(process)
            return None
        with self._lock:
            self._idle.append(process)
        return Answer(said["status"], said["words"], tuple(said["files"]))

    def close(self) -> None:
        """Ends the processes; the next call starts others."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            _end(process)

    def _start(self, cwd: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-I", str(_PROGRAM), str(self.library)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **dict(self.environment)},
            cwd=cwd,
            text=True,
        )


def _end(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
