"""``python -m voda_flows.cli`` is ``voda``."""

from __future__ import annotations

from voda_flows.cli import main

if __name__ == "__main__":
    main()
