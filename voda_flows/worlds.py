"""Which world one is in: where the command line, the scheduler and tests get their object store from."""

from __future__ import annotations

import os
from pathlib import Path

from voda_flows.local.store import LocalStore


def home_folder(home: Path | str | None = None) -> Path:
    """The folder of local mode's state: the one given, else ``VODA_HOME``, else ``~/.voda``; absolute."""
    return Path(home or os.environ.get("VODA_HOME") or Path.home() / ".voda").expanduser().absolute()


def open_store(home: Path | str | None = None) -> LocalStore:
    """The object store of the world one is in.

    Args:
        home: Folder of local mode's state; ``VODA_HOME`` or ``~/.voda`` where none is given.

    Returns:
        The store, usable from all threads. Opening makes the folder and the database where they are missing.

    Raises:
        VodaError: The state cannot be opened; says why and what to do.
    """
    return LocalStore(home_folder(home))
