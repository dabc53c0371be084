"""Option values that several commands take."""

from __future__ import annotations

import argparse
import ast
from typing import Any

from fuelvk.base.errors import ParameterError
from fuelvk.base.shapes import Shape
from fuelvk.optimizer.tolerance import Tolerance


def add_call_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that describe one call of an op."""
    parser.add_argument("op", metavar="OP", help="name of an op, e.g. softmax_last_dim")
    parser.add_argument(
        "--shape",
        action="append",
        metavar="SHAPE",
        help="shape of an input, e.g. 8x1024; once per input, '-' for one left out, 'scalar' for a 0-d one",
    )
    parser.add_argument("--dtype", default="f32", help="dtype of the float inputs (default: f32)")
    parser.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="parameter of the op"
    )
    parser.add_argument("--device", help="device, as in FUELVK_DEVICE")
    parser.add_argument(
        "--tolerance", default="strict", help="strict, rel:1e-5 or abs:1e-3 (default: strict)"
    )


def shape(text: str) -> Shape | None:
    """Returns "8x1024" as (8, 1024), "scalar" as (), "-" as None; raises ParameterError."""
    if text == "-":
        return None
    if text == "scalar":
        return ()
    parts = text.lower().replace(",", "x").split("x")
    if all(part.strip().isdigit() for part in parts):
        return tuple(int(part) for part in parts)
    raise ParameterError(
        "not a shape", asked=text, allowed="extents joined by x, such as 8x1024; 'scalar'; '-'"
    )


def tolerance(text: str) -> Tolerance:
    """Returns "strict", "rel:1e-5" or "abs:1e-3" as a Tolerance; raises ParameterError."""
    kind, _, bound = text.partition(":")
    makers = {"rel": Tolerance.relative, "abs": Tolerance.absolute}
    if text == "strict":
        return Tolerance.strict()
    try:
        return makers[kind](float(bound))
    except (KeyError, ValueError):
        raise ParameterError(
            "not a tolerance", asked=text, allowed="strict, rel:BOUND or abs:BOUND"
        ) from None


def params(texts: list[str]) -> dict[str, Any]:
    """Returns ["eps=1e-5", "axis=0"] as a dictionary; values are Python literals, or else plain words."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise ParameterError("not a parameter", asked=text, allowed="NAME=VALUE")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
    return found
