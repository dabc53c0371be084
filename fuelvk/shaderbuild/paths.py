"""Where sources and build output lie."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent

REBUILD = "python build_shaders.py"


def source_root() -> Path | None:
    """Returns the repository root, or None in an installed wheel, which carries no shader sources."""
    root = _PACKAGE.parent
    return root if (root / "shaders").is_dir() and (root / "build_shaders.py").is_file() else None


def output_dir() -> Path:
    """Returns the folder of the build output: FUELVK_SPIRV_DIR, or the one inside the package."""
    chosen = os.environ.get("FUELVK_SPIRV_DIR")
    return Path(chosen).expanduser() if chosen else _PACKAGE / "_spirv"
