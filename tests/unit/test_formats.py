"""Readers of weights and tokenizers: right values, and messages that name file, expectation and offset."""

from __future__ import annotations

import json
import struct
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import FormatError, ParameterError
from fuelvk.formats import safetensors
from fuelvk.formats.tokenizer import Tokenizer, TruncationWarning
from tests.models.tiny import write_tokenizer

ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "f32": np.arange(6, dtype=np.float32).reshape(2, 3),
    "f16": np.array([1.5, -2], np.float16),
    "bf16": np.array([[0.5], [3.0]], ml_dtypes.bfloat16),
    "i64": np.array(7, np.int64),
    "empty": np.zeros((0, 4), np.float32),
}


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "some.safetensors"
    save_file(ARRAYS, str(path))
    return path


def rewrite(path: Path, change: Any) -> None:
    """Applies ``change`` to the parsed header and writes the file anew."""
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + length :])


def test_every_tensor_comes_back_with_dtype_and_bits(weights: Path) -> None:
    found = safetensors.load(weights)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


def test_some_tensors_can_be_picked(weights: Path) -> None:
    assert list(safetensors.load(weights, ["i64", "f16"])) == ["i64", "f16"]


def test_header_gives_dtype_and_shape(weights: Path) -> None:
    assert safetensors.read_header(weights)["bf16"] == (DType.BF16, (2, 1))


def test_missing_file() -> None:
    with pytest.raises(FormatError, match=r"no such weight file; asked: .*nowhere.safetensors"):
        safetensors.load("/nowhere.safetensors")


def test_missing_tensor_offers_the_closest(weights: Path) -> None:
    with pytest.raises(
        FormatError, match=r"lacks 1 of the tensors asked for; asked: f31;.*did you mean 'f32'"
    ):
        safetensors.load(weights, ["f31"])


@pytest.mark.parametrize("keep", [0, 5, 8, 40])
def test_file_cut_in_the_header(weights: Path, keep: int) -> None:
    weights.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(
        FormatError, match="some.safetensors is not a safetensors file, or was cut short.*offset 0"
    ):
        safetensors.load(weights)


def test_file_cut_in_the_data_names_the_tensor_and_the_end(weights: Path) -> None:
    size = len(weights.read_bytes())
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(FormatError, match=rf"should end at offset {size}; seen: a file of {size - 1} bytes"):
        safetensors.load(weights)


def test_header_that_is_no_json_names_the_offset(weights: Path) -> None:
    raw = bytearray(weights.read_bytes())
    raw[8 + 3] = 0xFF
    weights.write_bytes(raw)
    with pytest.raises(FormatError, match="header is damaged at offset 11"):
        safetensors.load(weights)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda h: h["f32"].update(dtype="F33"), "f32 has a dtype not taken; seen: F33"),
        (lambda h: h["f32"].update(shape=[2, 4]), "f32 at offset .* does not hold its shape"),
        (lambda h: h["f32"].pop("data_offsets"), "row of f32 is damaged"),
        (lambda h: h["f32"].update(data_offsets=[-24, 0]), "does not hold its shape"),
        (lambda h: h.update(f32=3), "row of f32 is damaged"),
    ],
)
def test_damaged_rows_are_named(weights: Path, change: Any, match: str) -> None:
    rewrite(weights, change)
    with pytest.raises(FormatError, match=match):
        safetensors.load(weights)


def test_rows_that_overlap_are_left_to_the_package(weights: Path) -> None:
    rewrite(weights, lambda h: h["f32"].update(data_offsets=[2, 26]))
    with pytest.raises(FormatError, match="cannot be read as safetensors"):
        safetensors.load(weights)


@pytest.fixture
def tokenizer_file(tmp_path: Path) -> Path:
    path = tmp_path / "tokenizer.json"
    write_tokenizer(path)
    return path


def test_nothing_is_padded_and_short_texts_do_not_warn(tokenizer_file: Path) -> None:
    tokenizer = Tokenizer(tokenizer_file, limit=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tokenizer.encode(["The cat sat", ""]) == [[2, 4, 5, 7, 3], [2, 3]]
    assert tokenizer.vocabulary == 16


def test_a_long_text_is_cut_with_both_ends_kept(tokenizer_file: Path) -> None:
    tokenizer = Tokenizer(tokenizer_file, limit=5)
    with pytest.warns(
        TruncationWarning, match="has 12 tokens, the model takes 5: the last 7 tokens were dropped"
    ):
        rows = tokenizer.encode(["cat " * 10, "dog"])
    assert rows == [[2, 5, 5, 5, 3], [2, 6, 3]]


def test_tokenizer_refuses_what_it_cannot_use(tokenizer_file: Path, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such tokenizer file"):
        Tokenizer(tmp_path / "none.json", limit=8)
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(FormatError, match="bad.json is not a tokenizer.json"):
        Tokenizer(tmp_path / "bad.json", limit=8)
    with pytest.raises(ParameterError, match="no room for text"):
        Tokenizer(tokenizer_file, limit=2)
    with pytest.raises(ParameterError, match="texts are strings; seen: int"):
        Tokenizer(tokenizer_file, limit=8).encode(["cat", 5])  # type: ignore[list-item]
