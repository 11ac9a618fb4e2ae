"""The one thing a training script calls: turns an ordinary PyTorch loop into an elastic job.

::

    sampler = session.Sampler(len(images), batch=32)
    state = session.State(model=model, optimizer=optimizer, sampler=sampler)

    @session.elastic()
    def train(state):
        for epoch in session.epochs(state, 10):
            for indices in sampler:
                optimizer.zero_grad()
                loss = loss_of(model(images[indices]), labels[indices])
                loss.backward()
                optimizer.step()
                session.commit(state, loss)
            session.report(state, validation_loss=validate(model))

    train(state)

Alone (`python script.py`) this is a world of one rank. Started by an agent it is one rank of an elastic job: the
optimizer's steps average gradients over all ranks, `train` is entered anew when ranks come and go, with the state
where it was, a stop leaves a checkpoint, and the next start goes on from it.
docs/guides/your-own-script.md is the guide; workloads/README.md has what lies underneath.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Callable, TypeVar

from voda_flows.runtime.sampler import Sampler
from voda_flows.runtime.session_arguments import arguments
from voda_flows.runtime.session_link import open_link
from voda_flows.runtime.session_loop import Session
from voda_flows.runtime.session_options import Options
from voda_flows.runtime.session_store import Store
from voda_flows.runtime.session_world import open_world
from voda_flows.runtime.state import State, Stateful

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import torch

    from voda_flows.runtime.reports import Row

__all__ = [
    "Options",
    "Sampler",
    "State",
    "Stateful",
    "arguments",
    "average_gradients",
    "commit",
    "device",
    "elastic",
    "epochs",
    "job_epochs",
    "part_of",
    "rank",
    "report",
    "resume",
    "size",
    "total",
]

Result = TypeVar("Result")
_running: list[Session] = []  # at most one: a process is one rank


class NotInSession(RuntimeError):
    """A function that needs the other ranks was called outside of an elastic function."""


def elastic(options: Options | None = None) -> Callable[[Callable[[State], Result]], Callable[[State], Result]]:
    """Make a training function elastic.

    The function takes the state, is entered anew in each world, and must go on from the state (`epochs` and the
    sampler do). What is costly to set up belongs before it. When the job is stopped at a checkpoint, the call does
    not return: the process ends with exit code 0.

    Args:
        options: how often to commit, checkpoint, report; how to scale the learning rate.
    """

    def decorate(train: Callable[[State], Result]) -> Callable[[State], Result]:
        @functools.wraps(train)
        def run(state: State) -> Result:
            session = Session(state, options or Options(), open_world(), open_link())
            _running.append(session)
            try:
                return session.run(train)
            finally:
                _running.remove(session)

        return run

    return decorate


def epochs(state: State, count: int) -> Iterator[int]:
    """The epochs still to be trained, of `count` in all: on a resume or after a resize it goes on where it was."""
    return _session(state).epochs(count)


def commit(state: State, loss: torch.Tensor | float | None = None) -> None:
    """End a step: to be called once after every batch of the sampler.

    Counts the step and its samples, keeps the state in memory, writes the checkpoints and rows that are due; leaves
    the training function when the job is stopped or resized, on all ranks after the same step.

    Args:
        state: the script's.
        loss: the mean loss over this rank's samples, for the report.
    """
    _session(state).commit(loss)


def average_gradients(state: State) -> None:
    """Average the gradients over the ranks now, for a script that looks at them before the optimizer's step.

    Clipping needs it: every rank must clip the same gradient. Without this call the step itself averages.
    """
    _session(state).average_gradients()


def report(state: State, **metrics: float) -> Row:
    """Write the report row for the steps since the last one, usually at the end of an epoch; all ranks together.

    Args:
        state: the script's.
        metrics: the script's own figures, equal on all ranks (see `total`); `validation_loss` is known by name.

    Returns:
        The row, as in workloads/README.md.
    """
    return _session(state).report("epoch", metrics)


def total(*values: float) -> list[float]:
    """Sums of `values` over all ranks: how a figure that each rank has a part of is put together."""
    return _session(None).total([float(value) for value in values])


def part_of(count: int) -> range:
    """This rank's part of `count` things that the ranks share out, such as validation samples."""
    world = _session(None).world
    return range(world.rank, count, world.size)


def rank() -> int:
    """This process's number in the present world, from 0."""
    return _session(None).world.rank


def size() -> int:
    """Ranks in the present world."""
    return _session(None).world.size


def resume(state: State, root: Path | None = None) -> bool:
    """Put a job's newest good checkpoint into `state`, outside of training: to evaluate or to export a model.

    An elastic function does this by itself when a job starts.

    Args:
        state: with the same parts as in training.
        root: the job's checkpoint folder; default `VODA_CHECKPOINT_ROOT`.

    Returns:
        Whether there was one.
    """
    store = Store.from_environment() if root is None else Store(root, None, 0)
    return store.load(state) is not None


def device() -> torch.device:
    """The rank's own device: a CUDA device where one is visible, else the CPU."""
    import torch

    if not torch.cuda.is_available():
        return torch.device("cpu")
    local_rank = int(os.environ.get("HOROVOD_LOCAL_RANK") or 0)
    return torch.device("cuda", local_rank % torch.cuda.device_count())


def job_epochs(default: int) -> int:
    """The job's input `epochs`, or `default` where the script is run by itself."""
    return int(os.environ.get("VODA_EPOCHS") or default)


def _session(state: State | None) -> Session:
    if not _running or (state is not None and _running[-1].state is not state):
        message = (
            "session: expected to be called inside a function decorated with @session.elastic() and with its state,"
            " found no such session; move the call into the training function and pass the state that it was given"
        )
        raise NotInSession(message)
    return _running[-1]
