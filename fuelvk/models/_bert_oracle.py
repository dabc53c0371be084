"""A float64 forward pass of BERT in plain NumPy: what an embedding should be.

It shares no code with the model: one text at a time, no padding, no masks, softmax written out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fuelvk.models._bert_config import LAYER, BertConfig

Array = np.ndarray[Any, Any]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def oracle_embeddings(
    config: BertConfig, weights: Mapping[str, Array], rows: Sequence[Sequence[int]]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Returns the embeddings [len(rows), hidden] of token id rows, computed in float64 throughout."""
    wide = {
        name: np.asarray(w, dtype=np.float64) for name, w in weights.items() if "word_embeddings" not in name
    }
    words = weights["embeddings.word_embeddings.weight"]
    vectors = [_embed(config, wide, np.asarray(words[list(row)], dtype=np.float64)) for row in rows]
    return np.stack(vectors) if vectors else np.zeros((0, config.hidden))


def _embed(config: BertConfig, w: Mapping[str, Array], words: Array) -> Array:
    n = len(words)
    x = (
        words
        + w["embeddings.position_embeddings.weight"][:n]
        + w["embeddings.token_type_embeddings.weight"][0]
    )
    x = _norm(x, w, "embeddings.LayerNorm", config.eps)
    for layer in range(config.layers):
        prefix = LAYER.format(layer)
        q, k, v = (
            _linear(x, w, f"{prefix}attention.self.{name}")
            .reshape(n, config.heads, config.head_size)
            .swapaxes(0, 1)
            for name in ("query", "key", "value")
        )
        scores = q @ k.swapaxes(1, 2) / math.sqrt(config.head_size)
        kept = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (kept / kept.sum(axis=-1, keepdims=True)) @ v
        mixed = _linear(mixed.swapaxes(0, 1).reshape(n, config.hidden), w, f"{prefix}attention.output.dense")
        x = _norm(x + mixed, w, f"{prefix}attention.output.LayerNorm", config.eps)
        inner = _linear(x, w, f"{prefix}intermediate.dense")
        inner = 0.5 * inner * (1.0 + _erf(inner / math.sqrt(2.0)))
        x = _norm(x + _linear(inner, w, f"{prefix}output.dense"), w, f"{prefix}output.LayerNorm", config.eps)
    mean = x.sum(axis=0) / n
    if not config.normalize:
        return np.asarray(mean)
    return np.asarray(mean / max(float(np.sqrt((mean * mean).sum())), 1e-12))


def _linear(x: Array, w: Mapping[str, Array], name: str) -> Array:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def _norm(x: Array, w: Mapping[str, Array], name: str, eps: float) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + eps)
    scaled: Array = centred / spread * w[f"{name}.weight"] + w[f"{name}.bias"]
    return scaled
