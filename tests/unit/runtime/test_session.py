"""A session over several ranks, in threads: crashes, resizes and stops against the same steps made by one process."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tests.unit.runtime.worlds import Hub, ThreadWorld, in_threads
from voda_flows.runtime import checkpoints, session
from voda_flows.runtime.sampler import Sampler
from voda_flows.runtime.session_link import Link
from voda_flows.runtime.session_loop import Session
from voda_flows.runtime.session_options import Options
from voda_flows.runtime.session_world import Alone
from voda_flows.runtime.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SAMPLES, BATCH, EPOCHS, RATE = 53, 4, 2, 0.01
NORM = 0.3  # gradients here are longer
INPUTS = torch.linspace(-1, 1, SAMPLES * 3, dtype=torch.float64).reshape(SAMPLES, 3).sin()
TARGETS = INPUTS.sum(1, keepdim=True).square()


class RecordingLink(Link):
    """Keeps what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[dict[str, Any]] = []

    def send(self, kind: str, **fields: object) -> None:
        """Keep it."""
        self.sent.append({"type": kind, **fields})

    def said(self, kind: str) -> list[dict[str, Any]]:
        """What was sent of one type."""
        return [message for message in self.sent if message["type"] == kind]


@dataclass
class Trainer:
    """One rank: a linear model in double precision, and what happens to it before which step."""

    world: ThreadWorld | Alone
    options: Options = field(default_factory=lambda: Options(scale_lr="none"))
    before_step: Callable[[Trainer], None] = lambda _trainer: None
    clip: bool = False
    seen: list[tuple[int, list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        model = torch.nn.Linear(3, 1, dtype=torch.float64)
        torch.nn.init.constant_(model.weight, 0.1)
        torch.nn.init.zeros_(model.bias)
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
        self.sampler = Sampler(SAMPLES, BATCH)
        self.state = State(model=model, optimizer=optimizer, sampler=self.sampler)
        self.link = RecordingLink()
        self.session = Session(self.state, self.options, self.world, self.link)

    def run(self) -> None:
        """Train; a stop ends it."""
        self.session.run(self.train)

    def train(self, state: State) -> None:
        """An ordinary loop."""
        for epoch in self.session.epochs(EPOCHS):
            for indices in self.sampler:
                self.before_step(self)
                state.optimizer.zero_grad()
                loss = (state.model(INPUTS[indices]) - TARGETS[indices]).square().mean()
                loss.backward()
                if self.clip:
                    self.session.average_gradients()
                    torch.nn.utils.clip_grad_norm_(state.model.parameters(), NORM)
                state.optimizer.step()
                if self.sampler.current().weight:
                    self.seen.append((epoch, indices))
                self.session.commit(loss)
            self.session.report("epoch", {})

    @property
    def weights(self) -> list[float]:
        """The model, to compare."""
        return torch.cat([p.detach().flatten() for p in self.state.model.parameters()]).tolist()


def in_one_process(sizes: Sequence[int], rates: Sequence[float], norm: float = 1e9) -> list[float]:
    """Weights after the steps of worlds of `sizes`, one entry a step (the last one on and on)."""
    trainer = Trainer(Alone())
    plan = list(zip(sizes, rates, strict=True))
    state, step = trainer.state, 0
    for epoch in range(EPOCHS):
        trainer.sampler.start(epoch)
        order = [index for indices in trainer.sampler for index in indices]
        position = 0
        while position < SAMPLES:
            size, rate = plan[min(step, len(plan) - 1)]
            batch = order[position : position + BATCH * size]
            state.optimizer.param_groups[0]["lr"] = rate
            state.optimizer.zero_grad()
            (state.model(INPUTS[batch]) - TARGETS[batch]).square().mean().backward()
            torch.nn.utils.clip_grad_norm_(state.model.parameters(), norm)
            state.optimizer.step()
            position += len(batch)
            step += 1
    return trainer.weights


def each_sample_once(trainers: Sequence[Trainer]) -> bool:
    """Whether all ranks together saw every sample of every epoch exactly once."""
    seen = sorted((epoch, index) for trainer in trainers for epoch, indices in trainer.seen for index in indices)
    return seen == [(epoch, index) for epoch in range(EPOCHS) for index in range(SAMPLES)]


def reset_at(*steps: int) -> Callable[[Trainer], None]:
    """Told to leave the world in these steps, as by an agent."""

    def before(trainer: Trainer) -> None:
        if trainer.state.step + 1 in steps:
            trainer.link.reset.set()

    return before


def test_three_ranks_make_the_steps_of_one() -> None:
    """With uneven last steps too: the weighted average of gradients is the gradient of the whole step's mean loss."""
    hub = Hub([["a", "b", "c"]])
    trainers = [Trainer(ThreadWorld(hub, name)) for name in "abc"]
    in_threads([trainer.run for trainer in trainers])

    assert trainers[0].weights == pytest.approx(in_one_process([3], [RATE]), abs=1e-12)
    assert trainers[0].weights == trainers[1].weights == trainers[2].weights
    assert each_sample_once(trainers)


def test_resizes_lose_nothing() -> None:
    """2 -> 3 -> 1 -> 2: as if one process had made the steps with those batches; every sample once an epoch."""
    hub = Hub([["a", "b"], ["a", "b", "c"], ["b"], ["b", "d"]])
    told = reset_at(3, 5, 9)  # any rank may be the one that is told
    trainers = [Trainer(ThreadWorld(hub, name), before_step=told) for name in "abcd"]
    in_threads([trainer.run for trainer in trainers])
    survivor, newcomer = trainers[1], trainers[3]

    assert survivor.weights == pytest.approx(in_one_process([2] * 3 + [3] * 2 + [1] * 4 + [2], [RATE] * 10), abs=1e-12)
    assert newcomer.weights == survivor.weights
    assert each_sample_once(trainers)
    changes = [(m["from_size"], m["to_size"], m["steps_lost"]) for m in survivor.link.said("resized")]
    assert changes == [(2, 3, 0), (3, 1, 0), (1, 2, 0)]


def test_a_crash_goes_back_to_the_last_commit() -> None:
    """With commits every 3 steps, a crash in step 5 costs steps 4 and 5, and nothing of the result."""
    hub = Hub([["a", "b", "c"], ["b", "c"]])

    def crash(trainer: Trainer) -> None:
        world = trainer.world
        if trainer.state.step == 4 and isinstance(world, ThreadWorld) and (world.rank, world.size) == (0, 3):
            world.dies = True

    options = Options(scale_lr="none", commit_every=3)
    trainers = [Trainer(ThreadWorld(hub, name), options, crash) for name in "abc"]

    def dies() -> None:
        with pytest.raises(SystemExit):
            trainers[0].run()

    in_threads([dies, *[trainer.run for trainer in trainers[1:]]])

    assert trainers[1].weights == pytest.approx(in_one_process([3] * 3 + [2], [RATE] * 4), abs=1e-12)
    assert trainers[1].weights == trainers[2].weights
    assert [(m["from_size"], m["to_size"], m["steps_lost"]) for m in trainers[1].link.said("resized")] == [(3, 2, 2)]


def test_learning_rate_follows_the_world_and_stays_as_it_was_in_the_state() -> None:
    """The optimizer steps with base rate times size; schedules and checkpoints see the base rate."""
    hub = Hub([["a", "b"], ["a"]])
    trainers = [Trainer(ThreadWorld(hub, n), Options(scale_lr="linear"), before_step=reset_at(4)) for n in "ab"]
    in_threads([trainer.run for trainer in trainers])

    assert trainers[0].weights == pytest.approx(in_one_process([2] * 4 + [1], [RATE * 2] * 4 + [RATE]), abs=1e-12)
    assert trainers[0].state.optimizer.param_groups[0]["lr"] == RATE


def test_gradients_can_be_clipped_after_they_are_averaged() -> None:
    """All ranks clip the gradient of the whole step, which the optimizer's step then does not average again."""
    hub = Hub([["a", "b"]])
    trainers = [Trainer(ThreadWorld(hub, name), clip=True) for name in "ab"]
    in_threads([trainer.run for trainer in trainers])

    assert trainers[0].weights == pytest.approx(in_one_process([2], [RATE], NORM), abs=1e-12)
    assert trainers[0].weights != pytest.approx(in_one_process([2], [RATE]), abs=1e-3)


def test_after_training_the_optimizer_is_the_scripts_own() -> None:
    """A script may train twice with one optimizer: its steps are then averaged and scaled once, not twice."""
    trainer = Trainer(Alone())
    trainer.run()
    optimizer = trainer.state.optimizer

    assert not optimizer._optimizer_step_pre_hooks
    assert not optimizer._optimizer_step_post_hooks


def test_a_stop_told_to_one_rank_stops_all_at_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any rank may be told: all leave after the same step, with a checkpoint of it, and say so."""
    monkeypatch.setenv("VODA_CHECKPOINT_ROOT", str(tmp_path))
    hub = Hub([["a", "b"]])
    trainers = [Trainer(ThreadWorld(hub, name)) for name in "ab"]

    def stop(trainer: Trainer) -> None:
        if trainer.state.step == 4:
            trainer.link.ask_to_stop()

    trainers[1].before_step = stop

    def stopped(trainer: Trainer) -> Callable[[], None]:
        def run() -> None:
            with pytest.raises(SystemExit) as end:
                trainer.run()
            assert end.value.code == 0

        return run

    in_threads([stopped(trainer) for trainer in trainers])
    found = checkpoints.newest_good(tmp_path)

    assert [trainer.link.said("end")[0]["outcome"] for trainer in trainers] == ["stopped"] * 2
    assert [trainer.state.step for trainer in trainers] == [5, 5]
    assert found is not None
    assert (found.manifest.step, found.manifest.done) == (5, False)


def test_resumed_at_another_size_it_still_sees_each_sample_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint of two ranks is gone on from by three."""
    monkeypatch.setenv("VODA_CHECKPOINT_ROOT", str(tmp_path))
    first = [Trainer(ThreadWorld(hub, name)) for hub in [Hub([["a", "b"]])] for name in "ab"]
    first[0].before_step = lambda trainer: trainer.link.ask_to_stop() if trainer.state.step == 3 else None

    def until_stopped(trainer: Trainer) -> Callable[[], None]:
        def run() -> None:
            with pytest.raises(SystemExit):
                trainer.run()

        return run

    in_threads([until_stopped(trainer) for trainer in first])
    second = [Trainer(ThreadWorld(hub, name)) for hub in [Hub([["a", "b", "c"]])] for name in "abc"]
    in_threads([trainer.run for trainer in second])

    assert second[0].weights == pytest.approx(in_one_process([2] * 4 + [3], [RATE] * 5), abs=1e-12)
    assert each_sample_once([*first, *second])
    stopped, joined, ended = first[0].link.said("end")[0], second[0].link.said("joined")[0], second[0].link.said("end")
    assert [(said["epoch"], round(said["part"] * SAMPLES)) for said in (stopped, joined)] == [(0, 32), (0, 32)]
    assert ended == [{"type": "end", "outcome": "done", "step": 11, "epoch": 2, "part": 0.0, "message": ""}]


def test_rows_say_what_was_trained() -> None:
    """One row per N steps and one per epoch, from rank 0, with the loss over all ranks' samples."""
    hub = Hub([["a", "b"]])
    options = Options(scale_lr="linear", report_every=5, measure_gradient=True)
    trainers = [Trainer(ThreadWorld(hub, name), options) for name in "ab"]
    in_threads([trainer.run for trainer in trainers])
    rows = [message["row"] for message in trainers[0].link.said("row")]

    assert trainers[1].link.said("row") == []
    assert [(r["kind"], r["epoch"], r["step"], r["steps"], r["samples"], r["batch"]) for r in rows] == [
        ("step", 0, 5, 5, 40, 8.0),
        ("epoch", 0, 7, 7, 53, 53 / 7),
        ("step", 1, 10, 5, 77, 37 / 5),
        ("epoch", 1, 14, 7, 106, 53 / 7),
    ]
    assert {(r["world_size"], r["learning_rate"], r["validation_loss"]) for r in rows} == {(2, RATE * 2, None)}
    assert all(r["loss"] > 0 and r["compute_s"] > 0 and r["communication_s"] > 0 for r in rows)
    assert all(r["gradient_square"] is not None and r["gradient_variance"] is not None for r in rows)


def test_what_a_script_raises_is_told() -> None:
    """The agent hears the end of the traceback, and the process ends with the error itself."""
    trainer = Trainer(Alone())

    def fail(_trainer: Trainer) -> None:
        raise RuntimeError("shapes do not match")

    trainer.before_step = fail
    with pytest.raises(RuntimeError, match="shapes do not match"):
        trainer.run()
    end = trainer.link.said("end")[0]

    assert (end["outcome"], end["message"].splitlines()[-1]) == ("failed", "RuntimeError: shapes do not match")


def test_an_ordinary_script_needs_nobody() -> None:
    """Without an agent the decorated function just trains."""
    model = torch.nn.Linear(3, 1, dtype=torch.float64)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    sampler = session.Sampler(SAMPLES, BATCH)
    state = session.State(model=model, optimizer=optimizer, sampler=sampler)

    @session.elastic()
    def train(state: session.State) -> dict[str, object]:
        for _ in session.epochs(state, 2):
            for indices in sampler:
                optimizer.zero_grad()
                loss = (model(INPUTS[indices]) - TARGETS[indices]).square().mean()
                loss.backward()
                optimizer.step()
                session.commit(state, loss)
            row = session.report(state, validation_loss=float("nan"), accuracy=0.5)
        assert (session.rank(), session.size(), session.total(2.0)) == (0, 1, [2.0])
        return row

    row = train(state)

    assert (row["samples"], row["metrics"], row["validation_loss"]) == (2 * SAMPLES, {"accuracy": 0.5}, None)
    assert row["gradient_bytes"] == (3 + 1) * 8


def test_outside_of_a_session_the_error_says_where_to_go() -> None:
    """`commit` without `elastic` is a mistake that is easily made."""
    model = torch.nn.Linear(1, 1)
    state = session.State(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))

    with pytest.raises(session.NotInSession, match=r"decorated with @session\.elastic"):
        session.commit(state)


@pytest.mark.parametrize("wrong", [{"commit_every": 0}, {"report_every": -1}, {"scale_lr": "cubic"}])
def test_wrong_options_are_named(wrong: dict[str, Any]) -> None:
    """Ranges are checked where options are made."""
    with pytest.raises(ValueError, match="expected commit_every >= 1, report_every >= 0 and scale_lr one of"):
        Options(**wrong)


def test_resume_puts_the_newest_checkpoint_into_a_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later step of a workflow evaluates what was trained; where nothing was, it is told so."""
    monkeypatch.setenv("VODA_CHECKPOINT_ROOT", str(tmp_path / "job"))
    trained, other = Trainer(Alone()), Trainer(Alone())
    trained.run()

    assert session.resume(other.state)
    assert other.weights == trained.weights
    assert not session.resume(other.state, tmp_path / "nothing")
