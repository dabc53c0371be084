"""Texts to token ids by a ``tokenizer.json``, through the ``tokenizers`` package."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fuelvk.base.errors import FormatError, ParameterError


class TruncationWarning(UserWarning):
    """A text was longer than the model takes; says how many tokens were dropped."""


class Tokenizer:
    """A tokenizer that pads nothing and truncates at ``limit`` tokens, the special ones included."""

    def __init__(self, path: str | Path, *, limit: int) -> None:
        """Reads a ``tokenizer.json``; raises FormatError when it is missing or damaged."""
        from tokenizers import Tokenizer as Backend

        self.path = Path(path)
        self.limit = limit
        if not self.path.is_file():
            raise FormatError("there is no such tokenizer file", asked=self.path, allowed="a tokenizer.json")
        try:
            self._backend: Any = Backend.from_file(str(self.path))
        except Exception as error:  # the package raises bare Exception
            raise FormatError(f"{self.path} is not a tokenizer.json", seen=error) from error
        special = self._backend.num_special_tokens_to_add(False)
        if limit <= special:
            raise ParameterError(
                "the token limit leaves no room for text", asked=limit, allowed=f"above {special}"
            )
        self._backend.no_padding()
        self._backend.enable_truncation(limit)
        self._special = int(special)

    @property
    def vocabulary(self) -> int:
        """How many ids there are, added tokens included."""
        return int(self._backend.get_vocab_size())

    def encode(self, texts: Iterable[str]) -> list[list[int]]:
        """Returns the ids of each text; a text above the limit is cut, with a TruncationWarning."""
        texts = [texts] if isinstance(texts, str) else list(texts)
        wrong = next((t for t in texts if not isinstance(t, str)), None)
        if wrong is not None:
            raise ParameterError("texts are strings", seen=type(wrong).__name__, allowed="str")
        broken = next((t for t in texts if any("\ud800" <= c <= "\udfff" for c in t)), None)
        if broken is not None:
            raise ParameterError(
                "a text is not valid Unicode", seen=ascii(broken[:40]), hint="decode it as UTF-8"
            )
        rows: list[list[int]] = []
        for text, encoding in zip(texts, self._backend.encode_batch(texts), strict=True):
            dropped = sum(len(part.ids) - self._special for part in encoding.overflowing)
            if dropped:
                warnings.warn(
                    f"the text {text[:40]!r}... has {len(encoding.ids) + dropped} tokens, "
                    f"the model takes {self.limit}: the last {dropped} tokens were dropped",
                    TruncationWarning,
                    stacklevel=2,
                )
            rows.append(list(encoding.ids))
        return rows
