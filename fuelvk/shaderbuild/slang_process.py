"""A program that keeps the slang compiler loaded: one module a line, without slangc's start-up of about 0.3 s each.

    python slang_process.py LIBRARY       LIBRARY: the compiler's shared library beside slangc

It runs as a file, in a folder of the sources' choosing, and imports nothing of fuelvk. Each line of stdin is a JSON
object: `arguments` as slangc takes them (no -o, no -depfile) and `output`, the file to write. Each line of stdout
answers one: `status` (0 when the module was written), `words` (warnings and errors) and `files` (what was read).

The calls are those slangc itself makes (slang-deprecated.h, "spCreateSession" and on), on one session for all modules;
a request of its own for each keeps one module from knowing another, so the bytes are slangc's.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

_POINTER = ctypes.c_void_p
#: Places in the table of virtual functions of ISlangBlob: after the three of ISlangUnknown.
_RELEASE, _BYTES, _SIZE = 2, 3, 4


def load(path: str) -> Any:
    """Returns the library with its functions' types set; raises OSError or AttributeError when it is another one."""
    library = ctypes.CDLL(path)
    count, text = ctypes.c_int, ctypes.c_char_p
    code = ctypes.POINTER(_POINTER)
    for name, result, arguments in (
        ("spCreateSession", _POINTER, (text,)),
        ("spCreateCompileRequest", _POINTER, (_POINTER,)),
        ("spDestroyCompileRequest", None, (_POINTER,)),
        ("spProcessCommandLineArguments", count, (_POINTER, ctypes.POINTER(text), count)),
        ("spCompile", count, (_POINTER,)),
        ("spGetDiagnosticOutput", text, (_POINTER,)),
        ("spGetDependencyFileCount", count, (_POINTER,)),
        ("spGetDependencyFilePath", text, (_POINTER, count)),
        ("spGetTargetCodeBlob", count, (_POINTER, count, code)),
        ("spGetEntryPointCodeBlob", count, (_POINTER, count, count, code)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, list(arguments)
    return library


def compile_one(library: Any, session: int, arguments: list[str], output: str) -> dict[str, Any]:
    """Returns the answer for one module, which it has written to ``output`` when the status is 0."""
    request = library.spCreateCompileRequest(session)
    try:
        given = (ctypes.c_char_p * len(arguments))(*[a.encode() for a in arguments])
        status = library.spProcessCommandLineArguments(request, given, len(arguments))
        status = status if status < 0 else library.spCompile(request)
        words = (library.spGetDiagnosticOutput(request) or b"").decode(errors="replace")
        count = library.spGetDependencyFileCount(request)
        files = [os.fsdecode(library.spGetDependencyFilePath(request, i)) for i in range(count)]
        module = b"" if status < 0 else _module(library, request)
    finally:
        library.spDestroyCompileRequest(request)
    if module:
        with open(output, "wb") as file:
            file.write(module)
    return {"status": 0 if module else status or 1, "words": words, "files": files}


def _module(library: Any, request: int) -> bytes:
    """Returns the module of all entry points; one entry point alone is a module of its own to this interface."""
    blob = _POINTER()
    if library.spGetTargetCodeBlob(request, 0, ctypes.byref(blob)) < 0 or not blob.value:
        status = library.spGetEntryPointCodeBlob(request, 0, 0, ctypes.byref(blob))
        if status < 0 or not blob.value:
            return b""
    table = ctypes.cast(ctypes.cast(blob, ctypes.POINTER(_POINTER))[0], ctypes.POINTER(_POINTER))
    start = ctypes.CFUNCTYPE(_POINTER, _POINTER)(table[_BYTES])(blob.value)
    size = ctypes.CFUNCTYPE(ctypes.c_size_t, _POINTER)(table[_SIZE])(blob.value)
    module = ctypes.string_at(start, size)
    ctypes.CFUNCTYPE(ctypes.c_uint32, _POINTER)(table[_RELEASE])(blob.value)
    return module


def main() -> int:
    library = load(sys.argv[1])
    session = library.spCreateSession(None)
    if not session:
        return 1
    # What the library prints itself must not end up among the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        answer = compile_one(library, session, asked["arguments"], asked["output"])
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
