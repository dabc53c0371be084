"""``fuelvk embed TEXT... | --file F``: sentences to vectors, with what ran, how fast and how exact."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import fuelvk as fv
from fuelvk.base.errors import FormatError, ParameterError
from fuelvk.cli._output import Result, console, working
from fuelvk.cli.profile import kernel_rows, show_kernels
from fuelvk.models.bert import SentenceEncoder
from fuelvk.runtime.profile import Profile

#: Largest difference from the float64 forward pass that counts as right.
ORACLE_BAR = 2e-6
#: Above this many sentences the table shows nearest neighbours, not every pair.
MATRIX_LIMIT = 16
_MIN_RUNS, _MIN_SECONDS = 5, 1.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="sentences")
    parser.add_argument("--file", metavar="F", help="a text file with one sentence per line; - reads stdin")
    parser.add_argument("--device", help="device, as in FUELVK_DEVICE")
    parser.add_argument(
        "--model", metavar="DIR", help="folder of the model (default: FUELVK_MODEL_DIR, the cache)"
    )
    parser.add_argument(
        "--batch-size", type=int, default=32, metavar="N", help="texts per batch (default: 32)"
    )
    parser.add_argument(
        "--oracle",
        type=int,
        default=32,
        metavar="N",
        help="compare the first N texts with float64 (default: 32)",
    )


def run(options: argparse.Namespace) -> Result:
    texts = _texts(options)
    with working("loading the model"):
        encoder = SentenceEncoder(options.model, device=options.device)
    with working("embedding"):
        vectors = encoder.encode(texts, batch_size=options.batch_size)
        seconds = _median_seconds(encoder, texts, options.batch_size)
        with fv.profile() as kernels:
            again = encoder.encode(texts, batch_size=options.batch_size)
    compared = texts[: max(options.oracle, 0)]
    with working("computing the float64 oracle"):
        worst = float(np.abs(vectors[: len(compared)] - encoder.oracle(compared)).max()) if compared else None
    same = vectors.tobytes() == again.tobytes()
    good = same and (worst is None or worst <= ORACLE_BAR)
    data = {
        "device": {"spec": encoder.device.spec, "name": encoder.device.name},
        "model": str(encoder.folder),
        "texts": texts,
        "embeddings": vectors.tolist(),
        "cosine": (vectors @ vectors.T).tolist(),
        "sentences_per_second": len(texts) / seconds,
        "kernels": kernel_rows(kernels),
        "oracle": {"texts": len(compared), "largest_difference": worst, "bar": ORACLE_BAR},
        "same_bits_on_second_run": same,
    }
    return Result(data, lambda: _show(data, vectors, kernels), 0 if good else 1)


def _texts(options: argparse.Namespace) -> list[str]:
    """Returns the sentences of the command line, then those of the file, empty lines left out."""
    texts = list(options.texts)
    if options.file is not None:
        try:
            content = (
                sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8")
            )
        except (OSError, UnicodeDecodeError) as error:
            raise FormatError(
                f"{options.file} cannot be read", seen=error, allowed="a UTF-8 text file"
            ) from error
        texts += [line.strip() for line in content.splitlines() if line.strip()]
    if not texts:
        raise ParameterError("there is nothing to embed", allowed="sentences as arguments, or --file")
    return texts


def _median_seconds(encoder: SentenceEncoder, texts: list[str], batch_size: int) -> float:
    """Returns the median time of embedding all texts, tokenizing included, plans recorded before."""
    times: list[float] = []
    while len(times) < _MIN_RUNS or sum(times) < _MIN_SECONDS:
        start = time.perf_counter()
        encoder.encode(texts, batch_size=batch_size)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _show(data: dict[str, Any], vectors: np.ndarray[Any, Any], kernels: Profile) -> None:
    texts: list[str] = data["texts"]
    console().print(f"device  {data['device']['spec']}: {data['device']['name']}")
    console().print(f"model   {data['model']}\n")
    for number, text in enumerate(texts, 1):
        console().print(f"{number:4d}  {text if len(text) <= 100 else text[:97] + '...'}")
    print()
    if len(texts) <= MATRIX_LIMIT:
        _show_matrix(vectors)
    else:
        _show_neighbours(vectors)
    show_kernels(kernels)
    print(f"{data['sentences_per_second']:.1f} sentences/s (median, tokenizing included)")
    oracle = data["oracle"]
    if oracle["largest_difference"] is not None:
        verdict = "within" if oracle["largest_difference"] <= ORACLE_BAR else "ABOVE"
        print(
            f"largest difference from the float64 oracle: {oracle['largest_difference']:.2e}, {verdict} {ORACLE_BAR:g}"
            + ("" if oracle["texts"] == len(texts) else f" (of the first {oracle['texts']} texts)")
        )
    print(f"second run: {'the same bits' if data['same_bits_on_second_run'] else 'OTHER BITS'}")


def _show_matrix(vectors: np.ndarray[Any, Any]) -> None:
    """Prints the cosine of every pair; fits 80 columns for up to 14 sentences."""
    cosine = vectors @ vectors.T
    print("cosine" + "".join(f"{n:5d}" for n in range(1, len(cosine) + 1)))
    for number, row in enumerate(cosine, 1):
        print(f"{number:6d}" + "".join(f"{_short(value):>5}" for value in row))
    print()


def _short(value: float) -> str:
    """Returns a cosine in four characters."""
    return f"{value:.2f}".replace("0.", ".", 1)


def _show_neighbours(vectors: np.ndarray[Any, Any], count: int = 3) -> None:
    """Prints the nearest other sentences of each."""
    cosine = vectors @ vectors.T
    np.fill_diagonal(cosine, -np.inf)
    print("nearest by cosine")
    for number, row in enumerate(cosine, 1):
        nearest = np.argsort(-row, kind="stable")[:count]
        print(f"{number:6d}: " + ", ".join(f"{i + 1} ({row[i]:.2f})" for i in nearest))
    print()
