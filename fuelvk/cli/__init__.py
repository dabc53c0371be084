"""The ``fuelvk`` command: tables for people, ``--json`` for programs.

Exit status: 0 done, 1 a check failed or a device or file did, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from fuelvk.base.errors import FuelvkError, ParameterError, UnknownNameError

__all__ = ["main"]

#: Command -> (module, help). A module has ``configure(parser)`` and ``run(options)``, and is imported when needed.
COMMANDS: dict[str, tuple[str, str]] = {
    "devices": ("devices", "list the Vulkan devices and the CPU reference"),
    "doctor": ("doctor", "check loader, drivers, compilers, caches and run a smoke dispatch"),
    "ops": ("ops", "list the ops with their implementations and claims"),
    "explain": ("explain", "say which kernel would run for a call, and why not the others"),
    "verify": ("verify", "hold kernels to their claims on a device, and keep what was found"),
    "embed": ("embed", "turn sentences into vectors with all-MiniLM-L6-v2"),
    "profile": ("profile", "run one op and show the time of its kernels"),
    "build-shaders": ("shaders", "compile the shaders of a source tree"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["build-shaders"] and "--json" not in given:
        from fuelvk.shaderbuild.command import main as build_shaders

        return build_shaders(given[1:])
    options = _parser(given).parse_args(given)
    module = import_module(f"fuelvk.cli.{COMMANDS[options.command][0]}")
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            result = module.run(options)
        except FuelvkError as error:
            return _failed(error, options.json)
        except KeyboardInterrupt:
            return 130
    try:
        if options.json:
            json.dump(result.data, sys.stdout, indent=2)
            print()
        else:
            result.show()
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough; the interpreter must not flush into the closed pipe either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return int(result.status)


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """Returns the parser; only the command that is used has its options filled in."""
    from fuelvk import __version__

    parser = argparse.ArgumentParser(
        prog="fuelvk",
        description="A Vulkan-first GPU compute runtime whose kernels state how exact they are.",
    )
    parser.add_argument("--version", action="version", version=f"fuelvk {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, words) in COMMANDS.items():
        command = commands.add_parser(name, help=words, description=words.capitalize() + ".")
        command.add_argument("--json", action="store_true", help="print JSON instead of tables")
        if name in given:
            import_module(f"fuelvk.cli.{module}").configure(command)
    return parser


def _failed(error: FuelvkError, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"error": {"class": type(error).__name__, "message": str(error)}}, indent=2))
    else:
        print(f"error: {error}", file=sys.stderr)
    return 2 if isinstance(error, ParameterError | UnknownNameError) else 1


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)
