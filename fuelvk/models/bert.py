"""Sentence vectors by a BERT encoder (all-MiniLM-L6-v2), written with ``fv.Tensor`` and ``fv.ops`` only.

A sentence's vector has the same bits alone and in any batch: every op used treats rows apart from each other, attention
masks the padding by key lengths, and the mean is a product with a row of ones and zeros, where appended zeros change
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fuelvk as fv
from fuelvk.base.errors import FormatError, ParameterError
from fuelvk.formats import safetensors
from fuelvk.formats.tokenizer import Tokenizer
from fuelvk.models._bert_config import LAYER, BertConfig, read_config
from fuelvk.models._bert_oracle import oracle_embeddings
from fuelvk.models._files import TOKENIZER, WEIGHTS, model_folder

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class _Linear:
    """``x @ weight + bias``; the weight lies as [in, out]."""

    weight: Any
    bias: Any

    def __call__(self, x: Any) -> Any:
        return fv.ops.fused_linear(x, self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class _Norm:
    weight: Any
    bias: Any
    eps: float

    def __call__(self, x: Any) -> Any:
        return fv.ops.layer_norm_last_dim(x, self.weight, self.bias, eps=self.eps)


@dataclass(frozen=True, slots=True)
class _Layer:
    query: _Linear
    key: _Linear
    value: _Linear
    mix: _Linear
    mix_norm: _Norm
    widen: _Linear
    narrow: _Linear
    narrow_norm: _Norm


class SentenceEncoder:
    """Texts to vectors on one device.

    ``folder`` holds model.safetensors, config.json and tokenizer.json (``model_folder`` says where they are looked for
    otherwise). Arithmetic is F32, strict; one plan is recorded per (texts in a batch, longest text) and replayed.
    """

    def __init__(self, folder: str | Path | None = None, *, device: Any = None) -> None:
        self.folder = model_folder(folder)
        self.config: BertConfig = read_config(self.folder)
        self.tokenizer = Tokenizer(self.folder / TOKENIZER, limit=self.config.limit)
        if self.tokenizer.vocabulary > self.config.vocabulary:
            raise FormatError(
                f"{self.folder}: the tokenizer knows more tokens than the model",
                seen=self.tokenizer.vocabulary,
                allowed=f"at most {self.config.vocabulary}",
            )
        self.device = fv.device(device)
        self._weights = _load(self.folder / WEIGHTS, self.config)
        self._words = self._put("embeddings.word_embeddings.weight")
        self._places = (
            self._put("embeddings.position_embeddings.weight")
            + self._put("embeddings.token_type_embeddings.weight")[0:1]
        ).realize()
        self._embedding_norm = self._norm("embeddings.LayerNorm")
        self._layers = tuple(self._layer(LAYER.format(i)) for i in range(self.config.layers))
        self._forward = fv.compile(self._vectors)

    def encode(self, texts: Sequence[str], *, batch_size: int = 32) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Returns the embeddings [len(texts), hidden], in the order of the texts.

        A text above the model's limit is cut with a TruncationWarning. Texts are put into batches by length, longest
        first, so that little is padded.
        """
        return self.encode_ids(self.tokenizer.encode(texts), batch_size=batch_size)

    def encode_ids(
        self, rows: Sequence[Sequence[int]], *, batch_size: int = 32
    ) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Returns the embeddings of token id rows; see ``encode``."""
        if batch_size < 1:
            raise ParameterError("a batch holds at least one text", asked=batch_size, allowed=">= 1")
        result = np.empty((len(rows), self.config.hidden), np.float32)
        for places in _batches(rows, batch_size):
            result[places] = self._run([rows[i] for i in places])
        return result

    def oracle(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Returns what the embeddings of ``texts`` should be: a float64 forward pass in NumPy."""
        return oracle_embeddings(self.config, self._weights, self.tokenizer.encode(texts))

    def _run(self, rows: Sequence[Sequence[int]]) -> Array:
        """Runs one batch; the padding's ids are 0 and reach no result."""
        lengths = np.array([len(row) for row in rows], np.uint32)
        ids = np.zeros((len(rows), int(lengths.max())), np.int32)
        for line, row in zip(ids, rows, strict=True):
            line[: len(row)] = row
        kept = (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.float32)
        counts = lengths.astype(np.float32)[:, None]
        out: Array = self._forward(*(fv.asarray(a, device=self.device) for a in (ids, lengths, kept, counts))).numpy()
        return out

    def _vectors(self, ids: Any, lengths: Any, kept: Any, counts: Any) -> Any:
        """Returns the embeddings [B, hidden] of ids [B, S]; ``kept`` [B, S] is 1 at tokens and 0 at padding."""
        batch, longest = ids.shape
        hidden = self.config.hidden
        words = fv.ops.index_select(self._words, ids.reshape((batch * longest,)), axis=0)
        x = words.reshape((batch, longest, hidden)) + self._places[0:longest]
        x = self._embedding_norm(x.reshape((batch * longest, hidden)))
        for layer in self._layers:
            x = layer.mix_norm(x + layer.mix(self._attention(layer, x, lengths, batch)))
            x = layer.narrow_norm(x + layer.narrow(fv.ops.gelu_erf(layer.widen(x))))
        mean = kept.reshape((batch, 1, longest)) @ x.reshape((batch, longest, hidden))
        mean = mean.reshape((batch, hidden)) / counts
        return _unit(mean) if self.config.normalize else mean

    def _attention(self, layer: _Layer, x: Any, lengths: Any, batch: int) -> Any:
        """Returns the mixed values [B*S, hidden] of one layer."""
        heads, size = self.config.heads, self.config.head_size

        def split(y: Any) -> Any:
            return fv.ops.transpose(y.reshape((batch, -1, heads, size)), axes=(0, 2, 1, 3))

        mixed = fv.ops.flash_attn(
            split(layer.query(x)),
            split(layer.key(x)),
            split(layer.value(x)),
            None,
            lengths,
            scale=1.0 / math.sqrt(size),
        )
        return fv.ops.transpose(mixed, axes=(0, 2, 1, 3)).reshape(x.shape)

    def _put(self, name: str, *, turned: bool = False) -> Any:
        """Returns a weight on the device; ``turned`` swaps its two axes once, here, not in every call."""
        weight = self._weights[name]
        return fv.asarray(np.ascontiguousarray(weight.T) if turned else weight, device=self.device).realize()

    def _norm(self, name: str) -> _Norm:
        return _Norm(self._put(f"{name}.weight"), self._put(f"{name}.bias"), self.config.eps)

    def _linear(self, name: str) -> _Linear:
        return _Linear(self._put(f"{name}.weight", turned=True), self._put(f"{name}.bias"))

    def _layer(self, prefix: str) -> _Layer:
        return _Layer(
            query=self._linear(f"{prefix}attention.self.query"),
            key=self._linear(f"{prefix}attention.self.key"),
            value=self._linear(f"{prefix}attention.self.value"),
            mix=self._linear(f"{prefix}attention.output.dense"),
            mix_norm=self._norm(f"{prefix}attention.output.LayerNorm"),
            widen=self._linear(f"{prefix}intermediate.dense"),
            narrow=self._linear(f"{prefix}output.dense"),
            narrow_norm=self._norm(f"{prefix}output.LayerNorm"),
        )


def _unit(x: Any) -> Any:
    """Returns rows scaled to length 1."""
    return x / fv.ops.sqrt(fv.ops.sum(fv.ops.sqr(x), axes=(-1,), keepdims=True))


def _batches(rows: Sequence[Sequence[int]], size: int) -> Iterator[list[int]]:
    """Yields the places of the rows of each batch, rows of like length together."""
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _load(path: Path, config: BertConfig) -> Mapping[str, Array]:
    """Returns the model's weights as F32, checked against the config; narrower floats are widened exactly."""
    expected = config.shapes()
    weights = safetensors.load(path, expected)
    safetensors.check_shapes(path, weights, expected)
    return {name: w.astype(np.float32, copy=False) for name, w in weights.items()}
