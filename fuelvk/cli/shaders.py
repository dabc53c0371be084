"""``fuelvk build-shaders``: the shader build, which is also ``python build_shaders.py``."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from fuelvk.base.errors import ParameterError
from fuelvk.cli._output import Result

#: Options of the build itself that have no JSON form.
_TEXT_ONLY = ("list", "watch", "clean")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stem", nargs="*", help="only shaders whose family/stem contains this")
    parser.add_argument("--jobs", type=int, metavar="N", help="compilers at once (default: one per core)")
    parser.add_argument("--check", action="store_true", help="prove that the output is what the sources give")
    for name in _TEXT_ONLY:
        parser.add_argument(f"--{name}", action="store_true", help="see python build_shaders.py --help")


def run(options: argparse.Namespace) -> Result:
    """Builds or checks; called for ``--json`` only, since the build's own command prints for people."""
    from fuelvk.shaderbuild.builder import build, check

    chosen = next((name for name in _TEXT_ONLY if getattr(options, name)), None)
    if chosen is not None:
        raise ParameterError(f"--{chosen} has no JSON form", allowed="--check, or no action to build")
    if options.check:
        differences = list(check(patterns=options.stem, jobs=options.jobs))
        return _result({"differences": differences}, int(bool(differences)))
    report = build(patterns=options.stem, jobs=options.jobs)
    return _result({k: _plain(v) for k, v in dataclasses.asdict(report).items()}, 0)


def _result(data: dict[str, Any], status: int) -> Result:
    return Result(data, lambda: print(data), status)


def _plain(value: Any) -> Any:
    return (
        list(value)
        if isinstance(value, tuple | list)
        else value
        if isinstance(value, int | float)
        else str(value)
    )
