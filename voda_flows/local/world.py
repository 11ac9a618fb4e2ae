"""This machine as a world. What only some commands ask of it is imported when they do: a listing starts at once."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from scheduler_core.errors import NotFound
from voda_flows.config import DEFAULT_NAMESPACE
from voda_flows.local.processes import is_running, is_stopped, named_by
from voda_flows.local.store import LocalStore
from voda_flows.objects import Object

if TYPE_CHECKING:
    from voda_flows.local.readings import FileLogs, ProcMeter


class LocalWorld:
    """``World`` of local mode.

    Args:
        home: Folder of its state.
    """

    namespace = "default"
    scheduler_namespace = DEFAULT_NAMESPACE
    #: Drivers are on this machine.
    fetch = None
    busy_s = 0.0

    def __init__(self, home: Path) -> None:
        self.home = home

    @cached_property
    def store(self) -> LocalStore:
        """See ``World.store``."""
        if not (self.home / "state.db").exists():
            raise NotFound(f"expected a running `voda up`, found no state in {self.home}\nstart one with `voda up`")
        return LocalStore(self.home)

    @property
    def whole(self) -> LocalStore:
        """See ``World.whole``: the store knows all namespaces."""
        return self.store

    def note(self) -> str:
        """See ``World.note``: empty while the engine runs."""
        if not is_running(self.home):
            return "nothing runs jobs here now; `voda up` starts it again"
        engine = named_by(self.home / "engine.json")
        if engine is not None and is_stopped(engine):
            return f"nothing runs jobs here now: the engine (pid {engine}) was stopped; `voda up` wakes it"
        return ""

    def now(self) -> datetime:
        """See ``World.now``: the engine's clock."""
        from voda_flows.local.clock import EvenClock  # noqa: PLC0415

        return EvenClock(self.home / "clock.json").now()

    def logs(self) -> FileLogs:
        """See ``World.logs``."""
        from voda_flows.local.readings import FileLogs  # noqa: PLC0415

        return FileLogs(self.home)

    def meter(self) -> ProcMeter:
        """See ``World.meter``."""
        from voda_flows.local.readings import ProcMeter  # noqa: PLC0415

        return ProcMeter()

    def check(self, document: Object) -> None:
        """See ``World.check``: what is submitted here is checked by the engine's own rules, before."""

    def remarks(self) -> tuple[str, ...]:
        """See ``World.remarks``: here all is known."""
        return ()

    def close(self) -> None:
        """See ``World.close``: the store goes with its process."""
