"""The demo on this machine: a local world of its own, two nodes with two slots each, gone at the end."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from scheduler_core.errors import Conflict
from voda_flows.control.settings import configure
from voda_flows.local import up as local
from voda_flows.local.processes import is_running
from voda_flows.local.world import LocalWorld
from voda_flows.objects import Object
from voda_flows.worlds import open_local

NODES: Final = "2x2"
#: Quicker than in production, where a minute between two disturbances is nothing.
SETTINGS: Final = {"decide_interval_s": "5"}
#: A demo that is interrupted need not write checkpoints.
_DRAIN_S: Final = 2.0
_HOME: Final = "home"


class LocalStage:
    """This machine, in a world of the demo's own.

    Args:
        home: Empty folder for its state.
        workdir: Folder in which training starts.
        policy: Allocation policy, empty for the usual one.
    """

    namespace = "default"

    def __init__(self, home: Path, workdir: Path, policy: str = "") -> None:
        self._home = home
        self._policy = {"policy": policy} if policy else {}
        self.workdir: Path | None = workdir
        self.world = LocalWorld(home)
        self.options = f"--home {home}"

    def start(self) -> None:
        """Bring it up."""
        configure(open_local(self._home), {**SETTINGS, **self._policy}, where="the demo's settings")
        local.up(self._home, local.read_nodes(NODES))

    def placed(self, workflow: Object) -> Object:
        """See ``Stage.placed``: as it is."""
        return workflow

    def finish(self, *, keep: bool) -> None:
        """See ``Stage.finish``."""
        local.down(self._home, drain_s=_DRAIN_S, purge=not keep)
        if not keep:
            shutil.rmtree(self._home, ignore_errors=True)


def empty_home(folder: Path) -> Path:
    """An empty home of local mode inside the demo's folder; what an earlier demo left there is taken away.

    Raises:
        Conflict: A demo still runs there.
    """
    home = folder / _HOME
    if home.exists() and is_running(home):
        raise Conflict(f"{folder}: expected no demo to run there, one does\nend it with `voda down --home {home}`")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    return home
