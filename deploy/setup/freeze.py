"""Writes constraints.txt anew from what is installed: versions only, whatever index they came from.

Usage: ``.venv/bin/python -m deploy.setup.freeze`` in the repository's root, after the tests have passed.
Left out: what is built here (Horovod, Voda) and pip itself.
"""

from __future__ import annotations

from importlib.metadata import distributions
from pathlib import Path

NOT_OURS_TO_PIN = {"horovod", "pip", "voda"}
HEADING = "# What was tested together: versions only. From which index they come is the machine's own affair.\n"


def pins() -> list[str]:
    """``name==version`` of all installed packages, sorted; local parts (``+cpu``) belong to an index and go."""
    found = {
        dist.name.lower(): f"{dist.name}=={dist.version.split('+')[0]}"
        for dist in distributions()
        if dist.name.lower() not in NOT_OURS_TO_PIN and "_vendor" not in str(dist.locate_file(""))
    }
    return [found[name] for name in sorted(found)]


if __name__ == "__main__":
    Path("constraints.txt").write_text(HEADING + "\n".join(pins()) + "\n", encoding="utf-8")
