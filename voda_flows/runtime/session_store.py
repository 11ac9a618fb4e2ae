"""The job's checkpoints as the session uses them: PyTorch in the file, `checkpoints` around it.

Where they are and for whom they are comes from the environment (docs/contracts.md, section 3); without it a script
runs by itself and keeps nothing.
"""

from __future__ import annotations

import os
import pickle
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from voda_flows.runtime import checkpoints
from voda_flows.runtime.state import capture_random

if TYPE_CHECKING:
    from collections.abc import Mapping

    from voda_flows.runtime.session_world import World
    from voda_flows.runtime.state import State


@dataclass(frozen=True)
class Store:
    """Where a job keeps its checkpoints.

    Attributes:
        root: the job's folder; None where nothing is kept.
        job: `<workflow uid>/<job-name>`; None takes any.
        segment: the segment that this process writes for.
    """

    root: Path | None
    job: str | None
    segment: int

    @classmethod
    def from_environment(cls) -> Store:
        """The store that the job's pods are told of."""
        root = os.environ.get("VODA_CHECKPOINT_ROOT")
        segment = int(os.environ.get("VODA_SEGMENT") or 0)
        return cls(Path(root) if root else None, os.environ.get("VODA_JOB"), segment)

    @property
    def folder(self) -> Path | None:
        """The segment's folder."""
        return None if self.root is None else checkpoints.segment_folder(self.root, self.segment)

    def load(self, state: State) -> list[Mapping[str, object]] | None:
        """Put the newest good checkpoint into `state`.

        Returns:
            Random streams by rank; None where there is no checkpoint.

        Raises:
            ValueError: the checkpoint is of another script or data set.
        """
        import torch

        found = checkpoints.newest_good(self.root, self.job) if self.root is not None else None
        if found is None:
            return None
        body = torch.load(found.state, map_location="cpu", weights_only=True)
        state.apply(cast("dict[str, object]", body["state"]))
        return [cast("Mapping[str, object]", streams) for streams in body["random"]]

    def write(self, state: State, world: World, *, done: bool) -> None:
        """Write a checkpoint: rank 0 does, the others give it their random streams and wait until it is safe.

        Raises:
            Fenced: a later segment has begun.
        """
        import torch

        if self.root is None:
            return
        streams = [pickle.loads(data) for data in world.collect_bytes(pickle.dumps(capture_random()))]  # noqa: S301
        if world.rank == 0:
            body = {"state": state.capture(), "random": streams}
            manifest = checkpoints.Manifest(
                job=self.job or "",
                segment=self.segment,
                step=state.step,
                epoch=state.epoch,
                world_size=world.size,
                time_s=time.time(),
                done=done,
            )
            checkpoints.write(self.root, manifest, lambda path: torch.save(body, path))
        world.collect([1.0])  # nobody goes on, or ends, before it is safe
