"""Creates every pipeline of one stem that a device can have, and prints what each cost: run as a program.

    python -m tests.support.pipeline_cost MODE STEM

One line a pipeline: variant, entry point, CPU seconds, megabytes the process grew by. A pipeline that takes more than
LIMIT seconds of CPU ends the process; its name is the last line, without figures.
"""

from __future__ import annotations

import json
import resource
import sys
import time

from fuelvk.kernels._vulkan import _missing
from fuelvk.shaderbuild import load_manifest
from fuelvk.vulkan import enumerate_devices, match_device, open_device

LIMIT = 60


def main(mode: str, stem: str) -> None:
    before = resource.getrlimit(resource.RLIMIT_CPU)[1]
    with open_device(match_device(enumerate_devices().devices), addressing=mode) as device:
        for variant in load_manifest().variants(stem, mode=mode):
            width = int(variant.axes.get("width", 0))
            if width not in (0, device.caps.subgroup_width):
                continue
            for name, entry in variant.entries.items():
                if _missing(variant, name, device.caps) is not None:
                    continue
                print(json.dumps([variant.name, name]), flush=True)
                used, held = time.process_time(), _held()
                resource.setrlimit(resource.RLIMIT_CPU, (int(used) + LIMIT + 1, before))
                buffers = max(len(entry.bindings), 1)
                device.pipeline(variant.name, variant.spirv, name, buffers, entry.push_size, subgroup=width)
                print(
                    json.dumps([variant.name, name, time.process_time() - used, _held() - held]), flush=True
                )


def _held() -> float:
    """Returns the most memory this process has held, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
