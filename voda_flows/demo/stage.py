"""Where the demo plays: what differs between this machine (``local_stage``) and a cluster (``cluster_stage``)."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from voda_flows.objects import Object
from voda_flows.world import World


class Stage(Protocol):
    """Where the demo plays."""

    @property
    def world(self) -> World:
        """The world."""
        ...

    @property
    def namespace(self) -> str:
        """Namespace of the demo's jobs."""
        ...

    @property
    def options(self) -> str:
        """How ``voda`` is told of this world."""
        ...

    @property
    def workdir(self) -> Path | None:
        """Folder in which training starts; None where images say that."""
        ...

    def start(self) -> None:
        """Make it ready.

        Raises:
            VodaError: The demo cannot play here; says why.
        """
        ...

    def placed(self, workflow: Object) -> Object:
        """A Workflow as it is to be submitted here."""
        ...

    def finish(self, *, keep: bool) -> None:
        """End what still runs; unless it is kept, take away what there was."""
        ...
