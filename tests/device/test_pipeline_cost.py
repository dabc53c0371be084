"""No pipeline takes minutes or gigabytes to create, on any driver: compilers differ in what they cannot bear."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuelvk.shaderbuild import load_manifest
from fuelvk.vulkan import DeviceInfo

pytestmark = [pytest.mark.device, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
SECONDS, MEGABYTES = 30.0, 300.0


@pytest.mark.skipif(os.name != "posix", reason="needs limits of a process")
@pytest.mark.parametrize("mode", ["bda", "ssbo"])
@pytest.mark.parametrize("stem", load_manifest().stems)
def test_pipelines_are_made_soon(stem: str, mode: str, info: DeviceInfo, tmp_path: Path) -> None:
    """In a process of its own, since a driver's compiler cannot be interrupted; without the driver's own cache."""
    if mode == "bda" and "bda" not in info.features:
        pytest.skip("needs buffer device addresses")
    environment = {**os.environ, "MESA_SHADER_CACHE_DISABLE": "true", "FUELVK_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.pipeline_cost", mode, stem],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    finished = [row for row in rows if len(row) > 2]
    assert 2 * len(finished) == len(rows), f"{rows[-1]} did not end"
    assert done.returncode == 0, done.stderr
    assert [row for row in finished if row[2] > SECONDS or row[3] > MEGABYTES] == []
