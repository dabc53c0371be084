"""The shader build command, behind `python build_shaders.py` and `fuelvk build-shaders`."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fuelvk.base.errors import FuelvkError, ShaderBuildError
from fuelvk.shaderbuild.builder import build, check
from fuelvk.shaderbuild.manifest import MANIFEST, Manifest, Variant, read_document
from fuelvk.shaderbuild.paths import REBUILD, output_dir, source_root
from fuelvk.shaderbuild.tables import discover


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status: 0 done, 1 broken or out of date, 2 wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        if options.clean:
            return _clean()
        if options.list:
            return _list(options.stem)
        if options.check:
            return _check(options.stem, options.jobs, options.share)
        if options.watch:
            return _watch(options.stem, options.jobs)
        return _build(options.stem, options.jobs)
    except FuelvkError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="build_shaders.py",
        description="Compiles the shaders under shaders/ to SPIR-V and a manifest, as far as they changed.",
    )
    parser.add_argument("stem", nargs="*", help="build only shaders whose family/stem contains this")
    parser.add_argument("--jobs", type=int, metavar="N", help="compilers at once (default: one per core)")
    parser.add_argument(
        "--share",
        type=_share,
        default=1.0,
        metavar="P",
        help="with --check: compile this share of the variants (0 to 1), of the rest compare what they were built from",
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--check", action="store_true", help="prove that the output is what the sources give; writes nothing"
    )
    action.add_argument(
        "--list", action="store_true", help="print every variant and its state; compiles nothing"
    )
    action.add_argument(
        "--watch", action="store_true", help="build again whenever a file under shaders/ changes"
    )
    action.add_argument("--clean", action="store_true", help="delete the output")
    return parser


def _share(text: str) -> float:
    share = float(text)
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return share


class _Meter:
    """Progress on stderr: one line that is rewritten on a terminal, one line every few seconds elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._started = self._last = time.perf_counter()
        self._open = False

    def __call__(self, done: int, total: int, name: str) -> None:
        now = time.perf_counter()
        if self._terminal:
            print(f"\r\x1b[K[{done}/{total}] {name[:90]}", end="", file=sys.stderr, flush=True)
            self._open = True
        elif now - self._last > 5:
            # The slowest come first: what is left takes less time each than what is done, at first much less.
            left = (now - self._started) / done * (total - done)
            estimate = f" at most {left:.0f} s left" if 5 * done > total else ""
            print(f"[{done}/{total}]{estimate}", file=sys.stderr, flush=True)
            self._last = now

    def close(self) -> None:
        if self._open:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _build(stems: Sequence[str], jobs: int | None) -> int:
    meter = _Meter()
    try:
        report = build(patterns=stems, jobs=jobs, progress=meter)
    finally:
        meter.close()
    for words in report.warnings:
        print(words, file=sys.stderr)
    print(
        f"{report.variants} variants: {report.compiled} compiled, {report.reused} unchanged, "
        f"{report.seconds:.1f} s, in {_short(report.output)}"
    )
    return 0


def _check(stems: Sequence[str], jobs: int | None, share: float) -> int:
    meter, started = _Meter(), time.perf_counter()
    try:
        wrong = check(patterns=stems, jobs=jobs, share=share, progress=meter)
    finally:
        meter.close()
    for line in wrong:
        print(line)
    extent = "" if share == 1 else f", {share:.0%} of it compiled again"
    whole = f"the output is what the sources give{extent}"
    verdict = f"{len(wrong)} differences; run `{REBUILD}`" if wrong else whole
    print(f"{verdict} ({time.perf_counter() - started:.1f} s)")
    return 1 if wrong else 0


def _list(stems: Sequence[str]) -> int:
    root = source_root()
    if root is None:
        raise ShaderBuildError(
            "there are no shader sources here", hint="run this in a clone of the repository"
        )
    output = output_dir()
    built: dict[str, Variant] = {}
    if (output / MANIFEST).is_file():
        built = {v.name: v for v in Manifest(output, read_document(output), root)}
    count = 0
    for table in discover(root, stems):
        for variant in table.expand():
            count += 1
            made = built.get(variant.name)
            print(f"{_state(made):8} {variant.name}  {_facts(made)}".rstrip())
    print(f"{count} variants")
    return 0


def _state(variant: Variant | None) -> str:
    if variant is None:
        return "missing"
    try:
        variant.spirv()
    except ShaderBuildError as error:
        return "stale" if "older" in error.message else "damaged"
    return "built"


def _facts(variant: Variant | None) -> str:
    if variant is None:
        return ""
    entries = " ".join(f"{name}({'x'.join(map(str, e.workgroup))})" for name, e in variant.entries.items())
    return f"{variant.digest:016x} {_short(variant.file)} {entries}"


def _watch(stems: Sequence[str], jobs: int | None) -> int:
    root = source_root()
    if root is None:
        raise ShaderBuildError(
            "there are no shader sources here", hint="run this in a clone of the repository"
        )
    print("watching shaders/; stop with Ctrl-C", flush=True)
    seen: dict[Path, int] = {}
    while True:
        now = {p: p.stat().st_mtime_ns for p in (root / "shaders").rglob("*") if p.is_file()}
        if now != seen:
            seen = now
            try:
                _build(stems, jobs)
            except FuelvkError as error:
                print(f"error: {error}", file=sys.stderr, flush=True)
        time.sleep(0.5)


def _clean() -> int:
    output = output_dir()
    if output.is_dir():
        if not (output / MANIFEST).is_file() and any(p for p in output.iterdir() if p.name != ".lock"):
            raise ShaderBuildError(
                "this folder was not made by the shader build", seen=str(output), hint="delete it by hand"
            )
        shutil.rmtree(output)
    print(f"{_short(output)} is gone")
    return 0


def _short(path: Path) -> str:
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)
