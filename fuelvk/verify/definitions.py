"""The definitions of the strict headers and of shader files, and what a function is made of.

A text is cut into its definitions at file level: macros, functions, structs, constants. ``Definitions.reached`` is what
an expression needs of them, directly or not; ``digest`` names their content, whatever file they stand in and in
whatever order, without comments and spacing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fuelvk.base.hashing import digest64

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DIRECTIVE = re.compile(r"\s*#\s*(\w+)\s*(.*)")
_MACRO = re.compile(r"(\w+)(?:\(([^)]*)\))?\s*(.*)")
_TOKEN = re.compile(r"\w+|\S")
_NAME = re.compile(r"\b[A-Za-z_]\w*(?:\s*##\s*\w+)*|\w+(?:\s*##\s*\w+)+")
_KERNEL = re.compile(r"UNARY\((\w+), \w+, \d+, (.*)\)")
_GUARD = re.compile(r"\w+_H")


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition: its name, its text, the preprocessor conditions it stands under, outermost first.

    ``uses`` are patterns of the names in it: a pasted name (``C##k``) may be any that fits.
    """

    name: str
    text: str
    conditions: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()

    @property
    def content(self) -> str:
        """The definition without its spacing."""
        return " ".join(_TOKEN.findall(" ".join((*self.conditions, self.text))))


class Definitions:
    """The definitions of several texts, by name."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.all: list[Definition] = []
        for text in texts:
            self.all += _definitions(text)
        self._named: dict[str, list[Definition]] = {}
        for each in self.all:
            self._named.setdefault(each.name, []).append(each)

    def has(self, name: str) -> bool:
        """Says whether a name is defined."""
        return name in self._named

    def kernel(self, op: str) -> str | None:
        """Returns the expression of an op's row in a shader file, ``UNARY(op, ...)``; None where there is none."""
        found = self._named.get(f"UNARY {op}", [])
        return found[0].text if found else None

    def reached(self, expression: str) -> list[Definition]:
        """Returns the definitions an expression needs, in the order in which they were given."""
        waiting = list(_uses(expression))
        tried, found = set(waiting), set()
        while waiting:
            pattern = waiting.pop()
            names = (
                [pattern] if pattern.isidentifier() else [n for n in self._named if re.fullmatch(pattern, n)]
            )
            for name in names:
                for each in self._named.get(name, ()):
                    found.add(each)
                    waiting += (fresh := [u for u in each.uses if u not in tried])
                    tried.update(fresh)
        return [each for each in self.all if each in found]

    def digest(self, expression: str) -> str:
        """Returns 16 hex digits that name the expression and everything it needs."""
        parts = sorted({each.content for each in self.reached(expression)})
        return f"{digest64(' '.join(_TOKEN.findall(expression)), *parts):016x}"


def _uses(text: str, parameters: Iterable[str] = ()) -> tuple[str, ...]:
    """Returns patterns of the names in a text; ``parameters`` are those of the macro it is the body of."""
    given = set(parameters)
    found: dict[str, None] = {}
    for name in _NAME.findall(text):
        pieces = re.split(r"\s*##\s*", name)
        if len(pieces) > 1:
            found["".join(r"\w+" if piece in given else re.escape(piece) for piece in pieces)] = None
        elif name not in given:
            found[name] = None
    return tuple(found)


def _definitions(text: str) -> Iterator[Definition]:
    plain = _COMMENT.sub(" ", text.replace("\r\n", "\n")).replace("\\\n", " ")
    conditions: list[str] = []
    waiting = ""
    for line in plain.split("\n"):
        directive = None if waiting.strip() else _DIRECTIVE.fullmatch(line)
        kernel = None if waiting.strip() else _KERNEL.fullmatch(line.strip())
        if directive is not None:
            word, rest = directive[1], directive[2].strip()
            if word == "define":
                yield from _macro(rest, conditions)
            else:
                _enter(conditions, word, rest)
            continue
        if kernel is not None:
            yield Definition(f"UNARY {kernel[1]}", kernel[2], uses=_uses(kernel[2]))
            continue
        waiting += line + "\n"
        while (end := _end(waiting)) is not None:
            whole, waiting = waiting[:end].strip(), waiting[end:]
            if whole not in ("", ";"):
                stands = _stands(conditions)
                yield Definition(_name_of(whole), whole, stands, _uses(" ".join((*stands, whole))))


def _macro(rest: str, conditions: list[str]) -> Iterator[Definition]:
    found = _MACRO.fullmatch(rest)
    if found is None or (not found[3] and _GUARD.fullmatch(found[1])):
        return
    parameters = [p.strip() for p in (found[2] or "").split(",")]
    stands = _stands(conditions)
    uses = dict.fromkeys((*_uses(found[3], parameters), *_uses(" ".join(stands))))
    yield Definition(found[1], f"#define {rest}", stands, tuple(uses))


def _stands(conditions: list[str]) -> tuple[str, ...]:
    """Returns the conditions without include guards."""
    return tuple(c for c in conditions if not re.fullmatch(r"#ifndef \w+_H", c))


def _enter(conditions: list[str], word: str, rest: str) -> None:
    if word in ("if", "ifdef", "ifndef"):
        conditions.append(f"#{word} {rest}")
    elif word in ("else", "elif"):
        conditions[-1] += f"\n#{word} {rest}".rstrip()
    elif word == "endif":
        conditions.pop()


def _end(text: str) -> int | None:
    """Returns where the first definition of a text ends: behind a function's body, else behind a semicolon."""
    depth, opened = 0, None
    for at, character in enumerate(text):
        if character == "{":
            opened = at if opened is None else opened
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0 and "(" in text[:opened]:
                return at + 1
        elif character == ";" and depth == 0:
            return at + 1
    return None


def _name_of(text: str) -> str:
    head = re.split(r"[({\[=]", text, maxsplit=1)[0]
    if text.lstrip().startswith("typedef"):
        head = text
    names = re.findall(r"\w+", head)
    return str(names[-1])
