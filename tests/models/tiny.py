"""A BERT small enough to make on the spot: files as the real package has them, random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from fuelvk.models._bert_config import read_config

WORDS = ("the", "cat", "dog", "sat", "ran", "on", "a", "mat", "road", "far", "##s", "quick")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
LIMIT = 16
CONFIG: dict[str, Any] = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "vocab_size": len(SPECIAL) + len(WORDS),
    "max_position_embeddings": 24,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
}


def write_model(folder: Path, **changes: Any) -> Path:
    """Writes config, tokenizer and seeded weights into ``folder`` and returns it; ``changes`` go to the config."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changes}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": LIMIT}))
    write_tokenizer(folder / "tokenizer.json")
    generator = np.random.default_rng(11)
    weights = {}
    for name, shape in read_config(folder).shapes().items():
        values = generator.standard_normal(shape, dtype=np.float32) * np.float32(0.2)
        weights[name] = values + np.float32(name.endswith("LayerNorm.weight"))
    save_file(weights, str(folder / "model.safetensors"))
    return folder


def write_tokenizer(path: Path) -> None:
    """Writes a word-piece tokenizer that asks for padding, as the real one does."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *WORDS))}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    made.enable_padding(length=20)
    made.save(str(path))
