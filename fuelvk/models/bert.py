"""Sentence vectors by a BERT encoder (all-MiniLM-L6-v2), written with ``fv.Tensor`` and ``fv.ops`` only.

A sentence's vector has the same bits alone and in any batch: every op used treats rows apart from each other,
attention masks the padding by key lengths, and the mean is a product with a row of ones and zeros, where
appended zeros change nothing.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fuelvk as fv
from fuelvk.base.errors import FormatError, OutOfDeviceMemoryError, ParameterError
from fuelvk.formats import safetensors
from fuelvk.formats.tokenizer import Tokenizer
from fuelvk.models._bert_config import LAYER, BertConfig, read_config
from fuelvk.models._bert_oracle import oracle_embeddings
from fuelvk.models._files import TOKENIZER, WEIGHTS, model_folder

Array = np.ndarray[Any, Any]

#: Plans kept per encoder: how many, and how many tokens they take in all, padding included. A plan holds some
#: 15 KiB of working memory a token, and weights laid out for its products.
PLANS, PLANNED_TOKENS = 16, 1 << 15


class SentenceEncoder:
    """Texts to vectors on one device.

    ``folder`` holds model.safetensors, config.json and tokenizer.json; without it they are looked for where
    ``model_folder`` says. Arithmetic is F32 and strict. One plan is recorded per batch size and length
    and replayed; the most recent ones are kept.
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
        self._encoder = _Encoder(self.config, _Loader(self._weights(), self.device))
        self._plans: OrderedDict[tuple[int, ...], Callable[..., Any]] = OrderedDict()

    def encode(self, texts: Sequence[str], *, batch_size: int = 32) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Returns the embeddings [len(texts), hidden], in the order of the texts.

        A text above the model's limit is cut with a TruncationWarning. Texts of like length are put into one
        batch, so that little is padded.
        """
        return self.encode_ids(self.tokenizer.encode(texts), batch_size=batch_size)

    def encode_ids(
        self, rows: Sequence[Sequence[int]], *, batch_size: int = 32
    ) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Returns the embeddings of rows of token ids, special tokens included; see ``encode``."""
        if batch_size < 1:
            raise ParameterError("a batch holds at least one text", asked=batch_size, allowed="1 or more")
        odd = next((len(row) for row in rows if not 1 <= len(row) <= self.config.limit), None)
        if odd is not None:
            raise ParameterError(
                "a row of tokens does not fit", seen=odd, allowed=f"1 to {self.config.limit} tokens"
            )
        result = np.empty((len(rows), self.config.hidden), np.float32)
        for places in batches(rows, batch_size):
            result[places] = self._run([rows[i] for i in places])
        return result

    def oracle(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Returns what the embeddings of ``texts`` should be: a float64 forward pass in NumPy."""
        return oracle_embeddings(self.config, self._weights(), self.tokenizer.encode(texts))

    def _weights(self) -> Mapping[str, Array]:
        """Returns the weights as F32, checked against the config; narrower floats are widened exactly."""
        path, expected = self.folder / WEIGHTS, self.config.shapes()
        weights = safetensors.load(path, expected)
        safetensors.check_shapes(path, weights, expected)
        return {name: w.astype(np.float32, copy=False) for name, w in weights.items()}

    def _run(self, rows: Sequence[Sequence[int]]) -> Array:
        """Runs one batch. The padding's ids are 0 and reach no result."""
        lengths = np.array([len(row) for row in rows], np.uint32)
        ids = np.zeros((len(rows), int(lengths.max())), np.int32)
        for line, row in zip(ids, rows, strict=True):
            line[: len(row)] = row
        kept = (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.float32)
        counts = lengths.astype(np.float32)[:, None]
        try:
            out: Array = self._plan(ids.shape)(ids, lengths, kept, counts).numpy()
        except OutOfDeviceMemoryError:
            self._plans.clear()
            out = self._plan(ids.shape)(ids, lengths, kept, counts).numpy()
        return out

    def _plan(self, shape: tuple[int, ...]) -> Callable[..., Any]:
        found = self._plans.get(shape)
        if found is None:
            found = self._plans[shape] = fv.compile(self._encoder, device=self.device)
            while len(self._plans) > 1 and self._too_many_plans():
                self._plans.popitem(last=False)
        self._plans.move_to_end(shape)
        return found

    def _too_many_plans(self) -> bool:
        return len(self._plans) > PLANS or sum(map(math.prod, self._plans)) > PLANNED_TOKENS


@dataclass(frozen=True, slots=True)
class _Loader:
    """Puts weights on a device, once."""

    weights: Mapping[str, Array]
    device: Any

    def put(self, name: str) -> Any:
        return fv.asarray(self.weights[name], device=self.device).realize()

    def linear(self, name: str) -> _Linear:
        """Returns a linear layer; files hold weights as [out, in], products want [in, out]."""
        turned = fv.asarray(np.ascontiguousarray(self.weights[f"{name}.weight"].T), device=self.device)
        return _Linear(turned.realize(), self.put(f"{name}.bias"))

    def norm(self, name: str, eps: float) -> _Norm:
        return _Norm(self.put(f"{name}.weight"), self.put(f"{name}.bias"), eps)


@dataclass(frozen=True, slots=True)
class _Linear:
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


class _Layer:
    """One transformer layer over tokens [B*S, hidden]."""

    def __init__(self, config: BertConfig, load: _Loader, prefix: str) -> None:
        self.heads, self.size = config.heads, config.head_size
        self.query = load.linear(f"{prefix}attention.self.query")
        self.key = load.linear(f"{prefix}attention.self.key")
        self.value = load.linear(f"{prefix}attention.self.value")
        self.mix = load.linear(f"{prefix}attention.output.dense")
        self.mix_norm = load.norm(f"{prefix}attention.output.LayerNorm", config.eps)
        self.widen = load.linear(f"{prefix}intermediate.dense")
        self.narrow = load.linear(f"{prefix}output.dense")
        self.narrow_norm = load.norm(f"{prefix}output.LayerNorm", config.eps)

    def __call__(self, x: Any, lengths: Any) -> Any:
        x = self.mix_norm(x + self.mix(self.attention(x, lengths)))
        return self.narrow_norm(x + self.narrow(fv.ops.gelu_erf(self.widen(x))))

    def attention(self, x: Any, lengths: Any) -> Any:
        """Returns the mixed values [B*S, hidden]; keys past a text's length are masked."""
        q, k, v = (self.split(y(x), lengths.shape[0]) for y in (self.query, self.key, self.value))
        mixed = fv.ops.flash_attn(q, k, v, None, lengths, scale=1.0 / math.sqrt(self.size))
        return mixed.transpose(0, 2, 1, 3).reshape(x.shape)

    def split(self, y: Any, batch: int) -> Any:
        """Returns [B, heads, S, head size] of [B*S, hidden]."""
        return y.reshape(batch, y.shape[0] // batch, self.heads, self.size).transpose(0, 2, 1, 3)


class _Encoder:
    """The compiled function: ids [B, S], lengths [B], kept [B, S], counts [B, 1] to vectors [B, hidden].

    ``kept`` is 1 at tokens and 0 at padding, ``counts`` the lengths as floats.
    """

    def __init__(self, config: BertConfig, load: _Loader) -> None:
        self.hidden, self.normalize = config.hidden, config.normalize
        self.words = load.put("embeddings.word_embeddings.weight")
        # Every token is of type 0, so that its row belongs to the positions for good.
        kinds = load.put("embeddings.token_type_embeddings.weight")[0:1]
        self.places = (load.put("embeddings.position_embeddings.weight")[0 : config.limit] + kinds).realize()
        self.norm = load.norm("embeddings.LayerNorm", config.eps)
        self.layers = tuple(_Layer(config, load, LAYER.format(i)) for i in range(config.layers))

    def __call__(self, ids: Any, lengths: Any, kept: Any, counts: Any) -> Any:
        batch, longest = ids.shape
        words = fv.ops.index_select(self.words, ids.reshape(batch * longest), axis=0)
        x = words.reshape(batch, longest, self.hidden) + self.places[0:longest]
        x = self.norm(x.reshape(batch * longest, self.hidden))
        for layer in self.layers:
            x = layer(x, lengths)
        total = kept.reshape(batch, 1, longest) @ x.reshape(batch, longest, self.hidden)
        mean = total.reshape(batch, self.hidden) / counts
        return unit(mean) if self.normalize else mean


def unit(x: Any) -> Any:
    """Returns rows scaled to length 1; a row of zeros stays."""
    length = fv.ops.sqrt(fv.ops.sum(fv.ops.sqr(x), axes=(-1,), keepdims=True))
    return x / fv.ops.maximum(length, fv.asarray(1e-12, dtype=x.dtype, device=x.device))


def batches(rows: Sequence[Sequence[int]], size: int) -> Iterator[list[int]]:
    """Yields the places of the rows of each batch, rows of like length together, longest first."""
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    for start in range(0, len(order), size):
        yield order[start : start + size]
