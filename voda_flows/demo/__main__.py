"""``python -m voda_flows.demo`` is ``voda demo``."""

from __future__ import annotations

import sys

from voda_flows.cli import run

if __name__ == "__main__":
    sys.exit(run(["demo", *sys.argv[1:]]))
