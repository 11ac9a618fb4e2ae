"""Training that was stopped at a checkpoint and resumed is the training that never was stopped, bit by bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from tests.e2e.ranks import Message, Rank, run
from voda_flows.runtime import checkpoints, packing

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = {
    "digits": "workloads.digits --epochs 2 --width 4 --batch 64 --report-every 3",
    "chartransformer": (
        "workloads.chartransformer --epochs 2 --text-bytes 20000 --context 16 --width 16 --layers 1 --batch 32"
        " --report-every 3 --warmup-samples 200"
    ),
}


def train(command: str, size: int, root: Path, segment: int = 0, stop_in_epoch: int | None = None) -> list[Rank]:
    """One segment of a job; told to stop once it is in the given epoch."""
    environment = {"VODA_CHECKPOINT_ROOT": str(root), "VODA_JOB": "u/train", "VODA_SEGMENT": str(segment)}

    def stop(rank: Rank, message: Message) -> None:
        if message["type"] == "row" and message["row"]["epoch"] == stop_in_epoch:
            rank.tell("stop")

    ranks = run(command.split(), size, environment, stop)
    assert [rank.process.exitcode for rank in ranks] == [0] * size
    return ranks


def final_state(root: Path) -> tuple[int, object, list[torch.Tensor]]:
    """Everything in the newest checkpoint: its step, the plain values, the tensors."""
    found = checkpoints.newest_good(root, "u/train")
    assert found is not None
    assert found.manifest.done
    values, tensors = packing.pack(torch.load(found.state, weights_only=True))
    return found.manifest.step, values, tensors


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("workload", COMMANDS)
def test_resumed_is_never_stopped(workload: str, size: int, tmp_path: Path) -> None:
    """Model, optimizer, schedule, sampler and every rank's random numbers end up the same, bit by bit."""
    train(COMMANDS[workload], size, tmp_path / "through")
    stopped = train(COMMANDS[workload], size, tmp_path / "stopped", stop_in_epoch=1)
    resumed = train(COMMANDS[workload], size, tmp_path / "stopped", segment=1)
    step, values, tensors = final_state(tmp_path / "through")
    other_step, other_values, other_tensors = final_state(tmp_path / "stopped")

    ends = [rank.said("end")[0] for rank in stopped]
    assert [end["outcome"] for end in ends] == ["stopped"] * size
    assert 0 < ends[0]["step"] < step == other_step
    assert [rank.said("joined")[0]["step"] for rank in resumed] == [ends[0]["step"]] * size
    assert other_values == values
    assert all(torch.equal(one, other) for one, other in zip(tensors, other_tensors, strict=True))
