"""Shader variant tables to SPIR-V and a manifest, and the manifest's reader.

The reader (`load_manifest`) is what the runtime uses: it needs no compiler, no NumPy and a few milliseconds.
The builder (`build`) is what `python build_shaders.py` and the wheel build use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fuelvk.shaderbuild.manifest import EntryInfo, Manifest, Variant, load_manifest

if TYPE_CHECKING:
    from fuelvk.shaderbuild.builder import BuildReport, build

__all__ = ["BuildReport", "EntryInfo", "Manifest", "Variant", "build", "load_manifest"]


def __getattr__(name: str) -> Any:
    if name in ("BuildReport", "build"):
        import importlib

        return getattr(importlib.import_module("fuelvk.shaderbuild.builder"), name)
    raise AttributeError(f"module 'fuelvk.shaderbuild' has no attribute {name!r}")
