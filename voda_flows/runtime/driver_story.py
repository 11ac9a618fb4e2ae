"""What the ranks tell of the training: where it is, how far this segment has come, and how it ended."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from voda_flows.runtime.checkpoint import RESIZE, read_verdicts
from voda_flows.runtime.driver_progress import Places, Progress
from voda_flows.runtime.segment_folder import DONE, FAILED, STOPPED, End

if TYPE_CHECKING:
    from voda_flows.runtime.driver_board import Board
    from voda_flows.runtime.driver_roster import Roster
    from voda_flows.runtime.environment import DriverEnvironment
    from voda_flows.runtime.lines import Message


class Story:
    """The latest that is known.

    Attributes:
        step_s: When the latest known step ended (seconds since the epoch), None before the first.
    """

    def __init__(self, environment: DriverEnvironment, board: Board) -> None:
        self._environment = environment
        self._board = board
        kept = environment.segment_folder / "progress.json"
        places = Places(shown=environment.progress_file, kept=kept, output=environment.progress_output)
        earlier = read_verdicts(environment.checkpoint_root, environment.segment)
        # A segment without a verdict may have been lost.
        went_on = len(earlier) == environment.segment and all(verdict.state == RESIZE for verdict in earlier)
        self._progress = Progress(places, environment.epochs, lowers=went_on)
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
        self._step, self._epoch = int(joined["step"]), _epochs(joined)
        self._progress.begin(self._epoch)

    def progress(self, said: Message) -> None:
        """Rank 0 made a step."""
        self._step, self._epoch = int(said["step"]), _epochs(said)
        self._samples_per_s = float(said.get("samples_per_s") or 0.0)
        self.step_s = float(said["time_s"])
        self._progress.reach(self._epoch)

    def acknowledge(self, generation: int) -> None:
        """The first step at this generation's size is made."""
        self._generation = generation

    def rank_end(self, host: str, said: Message) -> str:
        """A rank says how it ends; why it failed, empty where it did not."""
        self._ends.append(said)
        words = str(said.get("message") or "").strip().splitlines()
        return f"{host} failed: {words[-1] if words else 'it does not say why'}" if said["outcome"] == FAILED else ""

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
                return End(outcome, int(said["step"]), _epochs(said), str(said.get("message") or ""))
        message = str(ends.get(FAILED, {}).get("message") or self._left or "all ranks ended without saying why")
        return self.failed(f"stop asked for, but {message}" if stopping else message)

    def failed(self, message: str) -> End:
        """A failed end at the last known place."""
        return End(FAILED, self._step, self._epoch, message)

    def left(self, host: str, code: int, *, joined: bool, lost: str = "") -> str:
        """A rank ended without a word: a failure whatever its exit code.

        Args:
            host: whose rank it was.
            code: its exit code.
            joined: whether it was in a world.
            lost: why its agent is taken for lost, empty where the agent told of the end.

        Returns:
            What happened, for people.
        """
        if lost:
            self._left = f"{host}'s agent was lost ({lost}), and its rank with it"
        elif joined:
            self._left = f"{host} {_ended(code)} in the middle of the training, without a word"
        else:
            self._left = (
                f"{host}'s command {_ended(code)} before it joined the training"
                " (a training script calls session.elastic)"
            )
        return self._left

    def nothing_done(self, message: str) -> End:
        """A stop before training began."""
        return End(STOPPED, self._step, self._epoch, message)

    def too_few(self, ready: int, wanted: int, roster: Roster) -> End:
        """A failure before training began: so many workers stand at the door, and so many are needed."""
        why = "".join(f": {failure}" for failure in roster.failures()[-1:])
        message = f"expected at least {wanted} workers to start, got {ready}{why}"
        return End(FAILED, self._step, self._epoch, message, failed_starts=0 if ready else roster.most_restarts())

    def end(self, end: End) -> None:
        """The segment has ended."""
        self._step, self._epoch = end.step, end.epoch

    def settle(self) -> None:
        """Tell Argo that what this segment did is all it will ever do.

        After ``end.json``, which alone says where a segment that began anew after a loss has come to.
        """
        self._progress.end(self._epoch)

    def status(self) -> dict[str, Any]:
        """This part of ``GET /status``."""
        return {
            "job": self._environment.job,
            "segment": self._environment.segment,
            "driver_uid": self._environment.pod_uid,
            "generation": self._generation,
            "epoch": int(self._epoch),
            "step": self._step,
            "samples_per_s": self._samples_per_s,
        }


def _epochs(said: Message) -> float:
    """Epochs done where a rank is, of the present one its part."""
    return float(said["epoch"]) + float(said.get("part") or 0.0)


def _ended(code: int) -> str:
    """How a process ended, in words: its exit code, or the signal that ended it."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
