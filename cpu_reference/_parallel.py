"""A build step for extension modules of many translation units; used by the builds of the C kernels alone."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from setuptools import Extension
from setuptools.command.build_ext import build_ext


class ParallelBuild(build_ext):
    """Compiles the units of an extension side by side, one per core."""

    def build_extension(self, extension: Extension) -> None:
        if sys.platform != "win32":
            one = self.compiler.compile

            def compile_all(sources: list[str], **options: Any) -> list[str]:
                with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                    made = list(pool.map(lambda source: one([source], **options), sources))
                return [name for names in made for name in names]

            self.compiler.compile = compile_all
        super().build_extension(extension)
