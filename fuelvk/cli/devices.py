"""``fuelvk devices``."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from fuelvk.base import env
from fuelvk.cli._output import Result, size, table
from fuelvk.runtime import probe
from fuelvk.runtime.devices import devices
from fuelvk.vulkan import enumerate_devices, match_device


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--features", action="store_true", help="list the features of each device")


def default_spec() -> str:
    """Returns the device that is used when none is named; raises UnknownNameError when FUELVK_DEVICE fits none."""
    wanted = env.get("FUELVK_DEVICE")
    found = enumerate_devices().devices
    if wanted == "cpu" or (wanted is None and not found):
        return "cpu"
    return f"vulkan:{match_device(found, wanted).index}"


def _verdicts() -> dict[str, str]:
    """Returns what earlier probes found; no device is opened to find out."""
    rows = {}
    for info in enumerate_devices().devices:
        known = probe.stored(info)
        rows[f"vulkan:{info.index}"] = "not run yet" if known is None else known.summary()
    return rows


def run(options: argparse.Namespace) -> Result:
    found = devices()
    default = default_spec()
    verdicts = _verdicts()
    data = {"devices": [asdict(row) for row in found], "problems": list(found.problems), "default": default}
    data["probe"] = verdicts

    def show() -> None:
        table(
            ("", "device", "name", "type", "driver", "memory"),
            [
                ("*" if r.spec == default else "", r.spec, r.name, r.type, r.driver, size(r.memory_bytes))
                for r in found
            ],
        )
        if options.features:
            for row in found:
                print(f"{row.spec}: {', '.join(row.features) or 'every dtype, no device features'}\n")
        for spec, words in verdicts.items():
            print(f"{spec}: probe of strict arithmetic {words}")
        for problem in found.problems:
            print(f"not used: {problem}")
        print("* is used when no device is named (FUELVK_DEVICE overrides)")

    return Result(data, show)
