"""Rebuilds the shaders; `python build_shaders.py --help` lists what else it can do."""

import sys

from fuelvk.shaderbuild.command import main

if __name__ == "__main__":
    sys.exit(main())
