"""What the ranks tell of the training: where it is, how far this segment has come, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voda_flows.runtime.driver_progress import Progress
from voda_flows.runtime.segment_folder import DONE, FAILED, STOPPED, End

if TYPE_CHECKING:
    from voda_flows.runtime.driver_board import Board
    from voda_flows.runtime.environment import DriverEnvironment
    from voda_flows.runtime.lines import Message

_LEFT = 1  # the exit code that a rank is taken for that ended with 0 and without a word


class Story:
    """The latest that is known.

    Attributes:
        step_s: When the latest known step ended (seconds since the epoch), None before the first.
    """

    def __init__(self, environment: DriverEnvironment, board: Board) -> None:
        self._environment = environment
        self._board = board
        self._progress = Progress(environment.progress_file, environment.epochs)
        self._generation: int | None = None
        self._step = 0
        self._epoch = 0.0
        self._samples_per_s = 0.0
        self._ends: list[Message] = []
        self._left = ""
        self.step_s: float | None = None

    def rank_environment(self) -> dict[str, str]:
        """The variables of section 12 of the contracts that every rank gets."""
        environment = self._environment
        return {
            "VODA_JOB": environment.job,
            "VODA_SEGMENT": str(environment.segment),
            "VODA_CHECKPOINT_ROOT": str(environment.checkpoint_root),
            "VODA_CHECKPOINT_STEPS": str(environment.checkpoint_steps),
            "VODA_EPOCHS": str(environment.epochs),
            "VODA_EPOCH": str(int(self._epoch)),
        }

    def begin(self, joined: Message) -> None:
        """Rank 0 is in a world, its state in place."""
        self._step, self._epoch = int(joined["step"]), float(joined["epoch"])
        self._progress.begin(self._epoch)

    def progress(self, said: Message) -> None:
        """Rank 0 made a step."""
        self._step, self._epoch = int(said["step"]), float(said["epoch"])
        self._samples_per_s = float(said.get("samples_per_s") or 0.0)
        self.step_s = float(said["time_s"])
        self._progress.reach(self._epoch + float(said.get("part") or 0.0))

    def acknowledge(self, generation: int) -> None:
        """The first step at this generation's size is made."""
        self._generation = generation

    def rank_end(self, said: Message) -> None:
        """A rank says how it ends."""
        self._ends.append(said)

    @property
    def is_done(self) -> bool:
        """Whether a rank said that training is done: the others end too, each in its own time."""
        return any(said.get("outcome") == DONE for said in self._ends)

    def all_ended(self, *, stopping: bool) -> End:
        """How the segment ended, now that no rank is left.

        Args:
            stopping: whether a stop was asked for.
        """
        ends = {said.get("outcome"): said for said in reversed(self._ends)}
        for outcome in (DONE, STOPPED):
            if outcome in ends:
                said = ends[outcome]
                return End(outcome, int(said["step"]), float(said["epoch"]), str(said.get("message") or ""))
        message = str(ends.get(FAILED, {}).get("message") or self._left or "all ranks ended without saying why")
        return self.failed(f"stop asked for, but {message}" if stopping else message)

    def failed(self, message: str) -> End:
        """A failed end at the last known place."""
        return End(FAILED, self._step, self._epoch, message)

    def left(self, host: str, code: int, *, joined: bool) -> int:
        """A rank ended without a word: a failure whatever its exit code.

        Args:
            host: whose rank it was.
            code: its exit code.
            joined: whether it was in a world.

        Returns:
            The exit code to take it for.
        """
        self._left = (
            f"{host} ended with exit code {code} in the middle of the training, without a word"
            if joined
            else f"{host}'s command ended with exit code {code} before it joined the training"
            " (a training script calls session.elastic)"
        )
        return code or _LEFT

    def nothing_done(self, outcome: str, message: str) -> End:
        """An end before training began."""
        why = f": {self._left}" if outcome == FAILED and self._left else ""
        return End(outcome, self._step, self._epoch, message + why)

    def end(self, end: End) -> None:
        """The segment has ended: what it did is all it will ever do."""
        self._step, self._epoch = end.step, end.epoch
        self._progress.end(end.epoch)

    def status(self) -> dict[str, Any]:
        """This part of ``GET /status``."""
        return {
            "job": self._environment.job,
            "segment": self._environment.segment,
            "driver_uid": self._environment.pod_uid,
            "generation": self._generation,
            "epoch": self._epoch,
            "step": self._step,
            "samples_per_s": self._samples_per_s,
        }
