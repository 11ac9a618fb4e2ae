"""The driver's bookkeeping: progress, resize records, worlds, lives, notice board, segment folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from voda_flows.runtime.document import Allocation, Worker
from voda_flows.runtime.driver_board import Board
from voda_flows.runtime.driver_http import answer
from voda_flows.runtime.driver_progress import Places, Progress
from voda_flows.runtime.driver_resizes import Resize, Resizes, kind_of
from voda_flows.runtime.driver_roster import DRAINING, GONE, READY, RUNNING, STARTING, Life, Roster
from voda_flows.runtime.driver_story import Story
from voda_flows.runtime.driver_world import World
from voda_flows.runtime.environment import read_driver
from voda_flows.runtime.errors import Fenced
from voda_flows.runtime.launch import Member
from voda_flows.runtime.segment_folder import End, claim, write_end

UNJOINED = "before it joined the training (a training script calls session.elastic)"
DRIVER = {
    "VODA_JOB": "uid/train", "VODA_SEGMENT": "0", "VODA_POD_UID": "d1", "VODA_POD_IP": "127.1.0.5",
    "VODA_KEY_FILE": "k", "VODA_ALLOCATION_FILE": "a", "VODA_CHECKPOINT_ROOT": "c", "VODA_COMMAND": "python t.py",
}  # fmt: skip


def _worker(name: str, slots: int = 1) -> Worker:
    return Worker(id=name, role="worker", address="127.1.0.5", node="n0", slots=slots)


def _allocation(*names: str) -> Allocation:
    workers = tuple(_worker(name) for name in names)
    return Allocation(job="j", driver_uid="d", segment=0, generation=1, min_workers=1, workers=workers, stop=None)


def bar(folder: Path, *, lowers: bool = True, clock: Callable[[], float] | None = None) -> Progress:
    """Progress of ten epochs, written whenever it is told."""
    places = Places(shown=folder / "progress", kept=folder / "kept", output=folder / "output")
    return Progress(places, epochs=10, lowers=lowers, clock=clock or count(0, 10).__next__)


def test_progress_counts_what_this_segment_had_before_it(tmp_path: Path) -> None:
    """M is what remained at its begin; a segment that ends lowers M to what it did, and N is less than M before."""
    path = tmp_path / "progress"
    progress = bar(tmp_path)
    written = []
    progress.begin(4.0)
    written.append(path.read_text())
    progress.reach(5.5)
    written.append(path.read_text())
    progress.reach(10.0)
    written.append(path.read_text())
    progress.end(10.0)
    written.append(path.read_text())

    assert written == ["0/600", "150/600", "599/600", "600/600"]
    assert (tmp_path / "output").read_text() == "600/600 600"


def test_segment_that_ends_without_a_step_leaves_nothing_that_counts_as_done(tmp_path: Path) -> None:
    """Argo counts a pod that succeeds as full: what it says last must be next to nothing."""
    progress = bar(tmp_path)
    progress.begin(4.0)
    progress.end(4.0)

    assert (tmp_path / "progress").read_text() == "0/1"
    assert (tmp_path / "output").read_text() == "0/600 0"


def test_what_is_lost_and_done_again_takes_nothing_back(tmp_path: Path) -> None:
    """The furthest that was shown stays; where the segment really ended is said beside it."""
    progress = bar(tmp_path)
    progress.begin(4.0)
    progress.reach(5.5)
    progress.reach(5.0)
    seen = (tmp_path / "progress").read_text()
    progress.end(5.25)

    assert (seen, (tmp_path / "progress").read_text()) == ("150/600", "150/150")
    assert (tmp_path / "output").read_text() == "150/600 125"


def test_a_driver_in_the_place_of_a_lost_one_goes_on_from_what_that_has_shown(tmp_path: Path) -> None:
    """To Argo they are one node: the second began at a checkpoint before, and shows no less."""
    first = bar(tmp_path)
    first.begin(4.0)
    first.reach(5.5)
    second = bar(tmp_path)
    second.begin(5.0)
    begun = (tmp_path / "progress").read_text()
    second.reach(5.75)

    assert (begun, (tmp_path / "progress").read_text()) == ("150/600", "175/600")


def test_after_a_loss_nothing_is_lowered(tmp_path: Path) -> None:
    """Where a segment began could not be told from it: the sum of those before is not where it was."""
    progress = bar(tmp_path, lowers=False)
    progress.begin(4.0)
    progress.reach(5.5)
    progress.end(5.5)

    assert (tmp_path / "progress").read_text() == "150/600"
    assert (tmp_path / "output").read_text() == "150/600 150"


def test_a_volume_that_takes_nothing_ends_no_training(tmp_path: Path) -> None:
    """Progress is for people to look at: it goes on where it can."""
    (tmp_path / "kept.new").mkdir()
    progress = bar(tmp_path)
    progress.begin(4.0)
    progress.reach(5.5)

    assert (tmp_path / "progress").read_text() == "150/600"


def test_what_nobody_could_have_read_is_not_written(tmp_path: Path) -> None:
    """Argo reads every few seconds: between two looks the volume is left alone."""
    now = [0.0]
    progress = bar(tmp_path, clock=lambda: now[0])
    progress.begin(0.0)
    for now[0], epoch in ((0.5, 0.1), (1.5, 0.2), (1.9, 0.3)):
        progress.reach(epoch)

    assert (tmp_path / "progress").read_text() == "20/1000"


def test_a_stop_within_an_epoch_takes_nothing_back(tmp_path: Path) -> None:
    """A segment ends and the next one begins at the part of the epoch that its ranks name, not at the whole one."""
    written = []
    for number, (began, ended) in enumerate([((0, 0.0), (4, 0.59)), ((4, 0.59), (4, 0.75))]):
        path = tmp_path / f"progress-{number}"
        story = Story(read_driver({**DRIVER, "VODA_EPOCHS": "10", "ARGO_PROGRESS_FILE": str(path)}), Board())
        story.begin({"step": 0, "epoch": began[0], "part": began[1]})
        written.append(path.read_text())
        story.rank_end("w0", {"outcome": "stopped", "step": 9, "epoch": ended[0], "part": ended[1]})
        story.end(story.all_ended(stopping=True))
        story.settle()
        written.append(path.read_text())

    assert written == ["0/1000", "459/459", "0/541", "16/16"]
    assert story.status()["epoch"] == 4


def test_progress_of_nothing_is_not_written(tmp_path: Path) -> None:
    """Argo refuses 0/0; before training begins there is nothing to say."""
    progress = bar(tmp_path)
    progress.reach(1.0)
    progress.begin(10.0)
    progress.end(10.0)

    assert not (tmp_path / "progress").exists()


@pytest.mark.parametrize(
    ("sizes", "crashed", "kind"),
    [((0, 2), False, "start"), ((2, 3), False, "grow"), ((3, 2), False, "shrink"), ((3, 2), True, "replace"),
     ((2, 3), True, "replace"), ((2, 2), False, "replace")],
)  # fmt: skip
def test_a_change_of_the_world_has_one_name(sizes: tuple[int, int], crashed: bool, kind: str) -> None:
    """Growth and shrinking are meant; whatever a crash brings is a replacement."""
    assert kind_of(*sizes, crashed=crashed) == kind


def test_a_resize_is_recorded_once_by_who_was_in_both_worlds() -> None:
    """Standing still is from last step to first step, a step's own time apart; later tellers change nothing."""
    kept: list[dict[str, Any]] = []
    resizes = Resizes(kept.append)
    told = {"from_size": 2, "to_size": 3, "last_step_s": 10.0, "first_step_s": 10.25, "step_time_s": 0.05,
            "steps_lost": 1}  # fmt: skip
    resizes.begin(Resize(generation=2, kind="grow", from_size=2, to_size=3, document_s=9.5, decided_s=10.1))
    resizes.first_step(10.25)
    resizes.resized({**told, "to_size": 2})
    resizes.resized(told)
    resizes.resized({**told, "last_step_s": 1.0})

    assert resizes.records() == kept
    assert [(record["last_step_s"], record["first_step_s"], record["steps_lost"]) for record in kept] == [
        (10.0, 10.25, 1)
    ]
    assert kept[0]["still_s"] == pytest.approx(0.2)


def test_a_world_that_made_no_step_is_no_size_to_come_from() -> None:
    """Of three, one crashes and another is slow to leave: the record of the world of two says three as well."""
    resizes = Resizes(lambda _record: None)
    stepped = resizes.from_size(3)
    resizes.begin(Resize(generation=1, kind="replace", from_size=stepped, to_size=2, document_s=9.5, decided_s=9.6))
    unstepped = resizes.from_size(2)
    resizes.begin(Resize(generation=1, kind="replace", from_size=unstepped, to_size=2, document_s=9.5, decided_s=9.9))
    resizes.resized({"to_size": 2, "last_step_s": 9.4, "first_step_s": 10.0, "step_time_s": 0.1, "steps_lost": 0})

    assert [(record["from_size"], record["to_size"]) for record in resizes.records()] == [(3, 2)]
    assert resizes.from_size(2) == 2


def test_a_world_is_made_in_order() -> None:
    """Only its own rank 0 makes it join, and only after that a step counts."""
    world = World()
    world.leave(5.0)
    world.decide((Member("w0", 0, 0), Member("w1", 0, 1)))

    seen = [world.step(), world.join("w1", 0), world.join("w0", 0), world.join("w0", 0), world.step(), world.step()]

    assert seen == [False, False, True, False, True, False]
    assert (world.making, world.resetting_since_s, world.size) == (False, None, 2)


def test_a_crashed_worker_lives_on_under_a_new_host_id() -> None:
    """A host id is never used twice, also when a dropped worker comes again; the limit counts failures only."""
    roster = Roster(restart_limit=1)
    first = roster.begin(_worker("w0"), 0.0)
    first.phase, first.ended[0] = GONE, 1
    allowed = [roster.may_restart(first)]
    second = roster.begin(_worker("w0"), 1.0)
    second.phase = GONE
    allowed.append(roster.may_restart(second))
    roster.drop("w0")
    third = roster.begin(_worker("w0"), 2.0)

    assert ([first.host, second.host, third.host], allowed) == (["w0", "w0.2", "w0.3"], [True, False])


def test_a_worker_that_was_given_up_says_why() -> None:
    """``failed`` is the driver's decision; who was dropped by a document is gone, whatever became of it."""
    roster = Roster(restart_limit=1)
    for name in ("a", "b", "c"):
        life = roster.begin(_worker(name), 0.0)
        life.phase, life.failure = GONE, "" if name == "c" else f"{name} was ended by SIGKILL"
    roster.drop("b")

    assert roster.describe() == {
        "a": {"state": "failed", "restarts": 0, "why": "a was ended by SIGKILL"},
        "b": {"state": "gone", "restarts": 0},
        "c": {"state": "gone", "restarts": 0},
    }
    assert roster.failures() == ["a was ended by SIGKILL", "b was ended by SIGKILL"]


def test_late_is_who_was_started_and_is_not_at_the_door() -> None:
    """Each once: whoever was told of is not told of again."""
    roster = Roster(restart_limit=1)
    for number, phase in enumerate((STARTING, STARTING, READY, RUNNING)):
        life = roster.begin(_worker(f"w{number}"), 0.0)
        life.phase, life.started_s = phase, 10.0 if number else 20.0

    late = roster.late(15.0)
    late[0].in_time = False

    assert [life.host for life in late] == ["w1"]
    assert roster.late(15.0) == []


@pytest.mark.parametrize(
    ("code", "joined", "lost", "says"),
    [
        (3, True, "", "w1 ended with exit code 3 in the middle of the training, without a word"),
        (-11, True, "", "w1 was ended by SIGSEGV in the middle of the training, without a word"),
        (-99, False, "", f"w1's command was ended by signal 99 {UNJOINED}"),
        (-9, True, "silent for 10 s", "w1's agent was lost (silent for 10 s), and its rank with it"),
    ],
)  # fmt: skip
def test_a_rank_s_end_is_told_in_words(tmp_path: Path, code: int, joined: bool, lost: str, says: str) -> None:
    """A signal by its name; a lost agent is no exit code of the script's."""
    story = Story(read_driver(DRIVER), Board())

    assert story.left("w1", code, joined=joined, lost=lost) == says
    assert story.all_ended(stopping=False) == End("failed", 0, 0.0, says)


def test_wanted_is_who_is_ready_or_runs_and_was_not_dropped() -> None:
    """A newcomer that sets itself up is not wanted yet; a rank that has ended makes its host unwanted."""
    roster = Roster(restart_limit=1)
    lives = {name: roster.begin(_worker(name, slots=2), 0.0) for name in ("a", "b", "c", "d", "e")}
    for name, phase in {"a": RUNNING, "b": READY, "c": STARTING, "d": RUNNING, "e": RUNNING}.items():
        lives[name].phase = phase
    lives["d"].ended[0] = -9
    roster.drop("e")

    assert roster.wanted() == {"a": 2, "b": 2}
    assert [life.host for life in roster.unresolved()] == ["c"]
    assert roster.num_standing() == 4


def test_who_is_not_in_a_new_world_drains() -> None:
    """Only who was in the last one; a newcomer at the door stays where it is."""
    roster = Roster(restart_limit=1)
    lives = {name: roster.begin(_worker(name), 0.0) for name in ("a", "b", "c")}
    lives["a"].phase = lives["b"].phase = RUNNING
    lives["c"].phase = READY

    assert [life.host for life in roster.leave_out({"a"})] == ["b"]
    assert [life.phase for life in lives.values()] == [RUNNING, DRAINING, READY]


def test_a_document_brings_and_takes_workers() -> None:
    """Arrivals are new, dropped before, or of another agent after the old one was lost."""
    roster = Roster(restart_limit=1)
    for name in ("a", "b", "c"):
        roster.begin(_worker(name), 0.0)
    roster.drop("b")
    lost = roster.by_host("c")
    assert lost is not None
    lost.phase, lost.worker = GONE, Worker(id="c", role="worker", address="127.1.0.9", node="n1", slots=1)

    assert [worker.id for worker in roster.arrivals(_allocation("a", "b", "c", "d"))] == ["b", "c", "d"]
    assert roster.departures(_allocation("a")) == ["c"]


def test_http_answers_status_reports_and_metrics() -> None:
    """Rows from a number on, with the number to ask for next; the rest is refused with what there is."""
    board = Board()
    resizes = [{"kind": "grow", "still_s": 0.25}, {"kind": "grow", "still_s": None}]
    board.publish({"step": 7, "workers": {"w0": {"state": "running", "restarts": 2}}, "resizes": resizes})
    for number in range(3):
        board.add_row({"step": number})

    status = json.loads(answer(board, "/status")[2])
    metrics = answer(board, "/metrics")[2]

    assert (status["step"], status["rows"]) == (7, 3)
    assert json.loads(answer(board, "/reports?since=2")[2]) == {"next": 3, "rows": [{"step": 2}]}
    assert "voda_job_step 7\n" in metrics
    assert "voda_job_rank_restarts_total 2\n" in metrics
    assert 'voda_job_resizes_total{kind="grow"} 2\n' in metrics
    assert "voda_job_standing_still_seconds_total 0.25\n" in metrics
    assert [answer(board, path)[0] for path in ("/reports?since=x", "/", "/etc/passwd")] == [400, 404, 404]


def test_a_segment_belongs_to_its_newest_driver(tmp_path: Path) -> None:
    """A second driver of the segment takes it over; the first one then leaves no end behind."""
    folder = tmp_path / "segment-1"
    end = End(outcome="done", step=5, epoch=1.0, message="")

    assert [claim(tmp_path, 1, "a"), claim(tmp_path, 1, "b")] == [True, False]
    assert [write_end(folder, "a", end), write_end(folder, "b", end)] == [False, True]
    assert json.loads((folder / "end.json").read_text()) == {
        "outcome": "done", "step": 5, "epoch": 1.0, "message": "", "failed_starts": 0,
    }  # fmt: skip
    assert not claim(tmp_path, 1, "c")
    assert not (folder / "end.json").exists()


def test_a_late_driver_is_fenced(tmp_path: Path) -> None:
    """A newer segment's folder ends a driver of an older one."""
    claim(tmp_path, 4, "a")

    with pytest.raises(Fenced, match=r"segment 3: expected to be the newest .* found segment 4"):
        claim(tmp_path, 3, "b")


def _trains(roster: Roster, name: str, slots: int = 1) -> Life:
    life = roster.begin(_worker(name, slots), now_s=0.0)
    life.phase = RUNNING
    return life


def test_worker_with_a_crashed_rank_does_not_drain_when_the_next_world_is_decided_first() -> None:
    """It is left out of that world like one that was dropped, but its other ranks are ended and it begins anew."""
    roster = Roster(restart_limit=3)
    crashed, dropped, stays = _trains(roster, "w0", slots=2), _trains(roster, "w1"), _trains(roster, "w2")
    crashed.ended[0] = -9  # rank 1 of it still lives
    roster.drop("w1")
    left_out = roster.leave_out({"w2"})

    assert left_out == [dropped]
    assert (crashed.phase, dropped.phase, stays.phase) == (RUNNING, DRAINING, RUNNING)
    assert crashed.living == [1]
    assert roster.may_restart(crashed)


def test_rank_that_ended_well_drains_with_its_worker() -> None:
    """Exit code 0 is no crash: a dropped worker one of whose ranks has gone already drains."""
    roster = Roster(restart_limit=3)
    life = _trains(roster, "w0", slots=2)
    life.ended[0] = 0

    assert roster.leave_out(set()) == [life]
    assert life.phase == DRAINING
