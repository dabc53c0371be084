"""What a BERT sentence model's files say about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuelvk.base.errors import FormatError, UnsupportedError
from fuelvk.models._files import CONFIG, PIPELINE, POOLING, SENTENCES, read_json

LAYER = "encoder.layer.{}."


@dataclass(frozen=True, slots=True)
class BertConfig:
    """Sizes of a BERT encoder; ``limit`` is the number of tokens a text may have, the special ones included.

    ``normalize`` says whether embeddings are scaled to length 1.
    """

    hidden: int
    layers: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    token_types: int
    eps: float
    limit: int
    normalize: bool

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns every weight the encoder reads, with its shape as the file holds it."""
        h, i = self.hidden, self.intermediate
        table: dict[str, tuple[int, ...]] = {
            "embeddings.word_embeddings.weight": (self.vocabulary, h),
            "embeddings.position_embeddings.weight": (self.positions, h),
            "embeddings.token_type_embeddings.weight": (self.token_types, h),
            "embeddings.LayerNorm.weight": (h,),
            "embeddings.LayerNorm.bias": (h,),
        }
        linear = {
            "attention.self.query": (h, h),
            "attention.self.key": (h, h),
            "attention.self.value": (h, h),
            "attention.output.dense": (h, h),
            "intermediate.dense": (i, h),
            "output.dense": (h, i),
        }
        for layer in range(self.layers):
            prefix = LAYER.format(layer)
            for name, shape in linear.items():
                table[f"{prefix}{name}.weight"] = shape
                table[f"{prefix}{name}.bias"] = shape[:1]
            for norm in ("attention.output.LayerNorm", "output.LayerNorm"):
                table[f"{prefix}{norm}.weight"] = table[f"{prefix}{norm}.bias"] = (h,)
        return table


def read_config(folder: Path) -> BertConfig:
    """Returns the config of the model in ``folder``.

    Raises FormatError for a missing or damaged file and UnsupportedError for a variant that is not built here
    (another activation, position embedding or pooling), since ignoring it would give wrong vectors.
    """
    path = folder / CONFIG
    raw = read_json(path)
    _require(path, raw, "model_type", "bert")
    _require(path, raw, "hidden_act", "gelu")
    _require(path, raw, "position_embedding_type", "absolute")
    pooling = folder / POOLING
    modes = (
        {k for k, v in read_json(pooling).items() if k.startswith("pooling_mode_") and v}
        if pooling.exists()
        else None
    )
    if modes is not None and modes != {"pooling_mode_mean_tokens"}:
        raise UnsupportedError(
            f"{pooling} asks for a pooling not built here", seen=sorted(modes), allowed="mean tokens"
        )
    sentences = folder / SENTENCES
    positions = _number(path, raw, "max_position_embeddings")
    limit = _number(sentences, read_json(sentences), "max_seq_length") if sentences.exists() else positions
    pipeline = folder / PIPELINE
    steps = (
        [str(step.get("type", "")) for step in read_json(pipeline, list)]
        if pipeline.exists()
        else ["Normalize"]
    )
    config = BertConfig(
        hidden=_number(path, raw, "hidden_size"),
        layers=_number(path, raw, "num_hidden_layers"),
        heads=_number(path, raw, "num_attention_heads"),
        intermediate=_number(path, raw, "intermediate_size"),
        vocabulary=_number(path, raw, "vocab_size"),
        positions=positions,
        token_types=_number(path, raw, "type_vocab_size"),
        eps=_number(path, raw, "layer_norm_eps", float),
        limit=min(limit, positions),
        normalize=any(step.rpartition(".")[2] == "Normalize" for step in steps),
    )
    if config.hidden % config.heads:
        raise FormatError(
            f"{path}: hidden_size is no multiple of num_attention_heads", seen=(config.hidden, config.heads)
        )
    return config


def _require(path: Path, raw: dict[str, Any], key: str, value: str) -> None:
    if raw.get(key, value) != value:
        raise UnsupportedError(f"{path}: this {key} is not built here", seen=raw[key], allowed=value)


def _number(path: Path, raw: dict[str, Any], key: str, kind: type = int) -> Any:
    value = raw.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0 or kind(value) != value:
        raise FormatError(f"{path}: {key} should be a positive number", seen=value)
    return kind(value)
