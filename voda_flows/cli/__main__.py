"""``python -m voda_flows.cli`` is ``voda``."""

from __future__ import annotations

import sys

from voda_flows.cli import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
