"""``python -m fuelvk``: the same as the ``fuelvk`` command."""

from __future__ import annotations

import sys

from fuelvk.cli import main

if __name__ == "__main__":
    sys.exit(main())
