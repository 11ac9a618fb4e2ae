"""The log of driver and agent: one line per event on stderr, time first, apart from whatever the user's script logs.

The logger has its own handler and does not propagate, so a training script that is forked from an agent finds the
root logger as in a new process.
"""

from __future__ import annotations

import logging
import sys


def open_log(name: str) -> logging.Logger:
    """The logger ``voda.<name>``, writing to stderr."""
    log = logging.getLogger(f"voda.{name}")
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter(f"%(asctime)s.%(msecs)03d {name} %(message)s", datefmt="%H:%M:%S"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
    return log
