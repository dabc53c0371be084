"""The test matrix: what a driver or the runtime reads once per process, one child pytest process per row.

Drivers are looked for at run time; a row whose driver is missing is reported as absent.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from pathlib import Path

from pick_driver import hardware, installed, lavapipes

WIDTHS = (128, 256, 512)  # bits of lavapipe's vectors: subgroups of 4, 8 and 16
DEFAULT_WIDTH = 256
MODES = ("bda", "ssbo")
DEVICE_TESTS = ("tests/device", "tests/matrix")


@dataclass(frozen=True, slots=True)
class Config:
    """One process: the driver, what it is told, which tests, and the share of their cases that runs."""

    name: str
    driver: str
    tests: tuple[str, ...] = DEVICE_TESTS
    share: float = 1.0
    environment: dict[str, str] = field(default_factory=dict)


def drivers() -> dict[str, Path | None]:
    """Returns the ICD file per driver name, None where it is missing on a system that should have it.

    `lavapipe` is the newest; `distribution` the system's own, where that is another; `gpu` a real one.
    """
    fetched = Path(os.environ["FUELVK_CACHE_DIR"]) / "drivers"
    found = lavapipes(fetched)
    swiftshader = fetched / "swiftshader_icd.json"
    table: dict[str, Path | None] = {
        "lavapipe": found[0] if found else None,
        "swiftshader": swiftshader if swiftshader.is_file() else None,
    }
    if len(found) > 1:
        table["distribution"] = found[1]
    if installed() and (real := hardware()):
        table["gpu"] = real[0]
    return table


def sampled() -> list[Config]:
    """Returns the ordinary run: the whole suite once, then each driver, width and mode on some cases."""
    return [
        Config("main", "lavapipe", ("tests",)),
        Config("gpu", "gpu"),
        Config("validation", "lavapipe", share=0.15, environment=_told(mode="ssbo", validation="sync")),
        Config("ssbo", "lavapipe", share=0.1, environment=_told(mode="ssbo")),
        Config("width-128", "lavapipe", share=0.1, environment=_told(width=128, mode="bda")),
        Config("width-512", "lavapipe", share=0.1, environment=_told(width=512, mode="bda")),
        Config("distribution", "distribution", share=0.04, environment=_told(mode="ssbo")),
        Config("distribution-bda", "distribution", share=0.04, environment=_told(mode="bda")),
        Config("swiftshader", "swiftshader", share=0.1, environment=_told(mode="ssbo")),
        Config("swiftshader-bda", "swiftshader", share=0.1, environment=_told(mode="bda")),
    ]


def full() -> list[Config]:
    """Returns every driver under every width and mode on all cases, and validation over all of them."""
    rows = [
        Config("main", "lavapipe", ("tests",)),
        Config("gpu", "gpu"),
        Config("gpu-ssbo", "gpu", environment=_told(mode="ssbo")),
    ]
    for driver, width, mode in itertools.product(("lavapipe", "distribution"), WIDTHS, MODES):
        rows.append(Config(f"{driver}-{width}-{mode}", driver, environment=_told(width=width, mode=mode)))
    rows += [Config(f"swiftshader-{mode}", "swiftshader", environment=_told(mode=mode)) for mode in MODES]
    rows += [
        Config(f"validation-{driver}-{mode}", driver, environment=_told(mode=mode, validation="sync"))
        for driver, mode in itertools.product(("lavapipe", "swiftshader"), MODES)
    ]
    return rows


def _told(*, width: int = DEFAULT_WIDTH, mode: str = "auto", validation: str = "0") -> dict[str, str]:
    return {
        "LP_NATIVE_VECTOR_WIDTH": str(width),
        "FUELVK_ADDRESSING": mode,
        "FUELVK_VALIDATION": validation,
    }
