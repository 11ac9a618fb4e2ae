"""Real Horovod jobs that grow, shrink and lose ranks in place; the test plays the scheduler."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agents import WarmAgents
from tests.e2e.rig import FOREVER, job, lives, until, until_acknowledged, until_status


def _changes(status: dict[str, Any]) -> list[tuple[str, int, int]]:
    return [(record["kind"], record["from_size"], record["to_size"]) for record in status["resizes"]]


def _back(status: dict[str, Any]) -> bool:
    """Whether a crashed rank is back: left out, taken in again, first step made."""
    return [change[0] for change in _changes(status)[-2:]] == ["replace", "replace"] and _changes(status)[-1][2] == 3


def test_a_job_grows_and_shrinks_without_losing_a_step(agents: WarmAgents, tmp_path: Path) -> None:
    """A worker that is added trains with the others; one that is dropped leaves with 0, and may come again."""
    with job(agents, tmp_path, FOREVER) as made:
        driver = made.started("w0", "w1")
        made.agent("w2")
        made.await_warm("w2")

        made.allocate("w0", "w1", "w2")
        until_acknowledged(driver, 2)
        made.allocate("w1", "w2")
        status = until_acknowledged(driver, 3)

        assert _changes(status) == [("start", 0, 2), ("grow", 2, 3), ("shrink", 3, 2)]
        assert [record["steps_lost"] for record in status["resizes"]] == [0, 0, 0]
        assert made.workers["w0"].wait() == 0
        assert status["world_size"] == 2
        made.agent("w0")
        made.await_warm("w0")
        made.allocate("w0", "w1", "w2")
        status = until_acknowledged(driver, 4)
        assert _changes(status)[-1] == ("grow", 2, 3)
        kept = [json.loads(line) for line in (made.segment / "resizes.jsonl").read_text().splitlines()]
        assert kept == status["resizes"]


def test_silence_is_not_death(agents: WarmAgents, tmp_path: Path) -> None:
    """Driver and agents hear from each other however much or little there is to say."""
    with job(agents, tmp_path, FOREVER, VODA_AGENT_TIMEOUT="3") as made:
        driver = made.started("w0", "w1")

        status = until_status(driver, lambda found: found["step"] >= 250, "5 s of training")

        assert _changes(status) == [("start", 0, 2)]
        assert [pod.process.poll() for pod in made.workers.values()] == [None, None]


@pytest.mark.parametrize("victim", ["first", "last"])
def test_a_killed_rank_comes_back_in_place(agents: WarmAgents, tmp_path: Path, victim: str) -> None:
    """The others go on from the last commit, and the same agent starts the rank anew; rank 0 is no exception."""
    with job(agents, tmp_path, FOREVER) as made:
        driver = made.started("w0", "w1", "w2")
        worker = _worker_of_rank(made.folder, driver_log=driver.text(), first=victim == "first")

        os.kill(made.pids(worker)[0], signal.SIGKILL)
        status = until_status(driver, _back, "the rank is back")

        assert _changes(status) == [("start", 0, 3), ("replace", 3, 2), ("replace", 2, 3)]
        assert all(record["steps_lost"] <= 1 for record in status["resizes"])
        assert status["workers"] == {
            name: {"state": "running", "restarts": int(name == worker)} for name in ("w0", "w1", "w2")
        }
        assert status["generation"] == 1


def test_below_its_least_size_a_job_waits_for_the_replacement(agents: WarmAgents, tmp_path: Path) -> None:
    """A rigid job of two never trains alone: the survivor waits at the rendezvous."""
    with job(agents, tmp_path, FOREVER) as made:
        driver = made.started("w0", "w1", min_workers=2)

        os.kill(made.pids("w1")[0], signal.SIGKILL)
        status = until_status(driver, lambda found: len(found["resizes"]) == 2, "two again")

        assert _changes(status) == [("start", 0, 2), ("replace", 2, 2)]


def test_a_worker_that_keeps_crashing_is_given_up(agents: WarmAgents, tmp_path: Path) -> None:
    """Beyond the restart limit the others train on without it, and the status says so."""
    with job(agents, tmp_path, FOREVER, VODA_RESTART_LIMIT="0") as made:
        driver = made.started("w0", "w1", "w2")

        os.kill(made.pids("w1")[0], signal.SIGKILL)
        status = until_status(
            driver, lambda found: found["world_size"] == 2 and found["state"] == "training", "two train on"
        )

        why = "w1 was ended by SIGKILL in the middle of the training, without a word"
        assert status["workers"]["w1"] == {"state": "failed", "restarts": 1, "why": why}
        assert made.workers["w1"].wait() == 0


def test_a_newcomer_that_never_comes_to_the_door_is_given_up(agents: WarmAgents, tmp_path: Path) -> None:
    """Training goes on, the status says which worker failed and why, and the next change is made."""
    with job(agents, tmp_path, FOREVER, VODA_SETUP_TIMEOUT="10") as made:
        driver = made.started("w0")
        for worker, hangs in {"w1": {"TINY_HANGS": "1"}, "w2": {}}.items():
            made.agent(worker, **hangs)
            made.await_warm(worker)

        made.allocate("w0", "w1")
        status = until_status(driver, lambda found: found["generation"] == 2, "the others go on without it")
        made.allocate("w0", "w2")
        until_acknowledged(driver, 3)

        why = "w1 did not come to the door within 10 s (VODA_SETUP_TIMEOUT)"
        assert status["workers"]["w1"] == {"state": "failed", "restarts": 1, "why": why}
        assert made.workers["w1"].wait() == 0


def test_a_lost_agent_costs_the_job_one_worker(agents: WarmAgents, tmp_path: Path) -> None:
    """Ranks of an agent that was killed die with it; the next document, without it, is acknowledged."""
    with job(agents, tmp_path, FOREVER, VODA_AGENT_TIMEOUT="3") as made:
        driver = made.started("w0", "w1", "w2")
        rank = made.pids("w2")[0]

        made.workers["w2"].process.send_signal(signal.SIGKILL)
        until_status(driver, lambda found: found["workers"]["w2"]["state"] == "gone", "the agent is lost")
        made.allocate("w0", "w1")
        status = until_status(driver, lambda found: found["generation"] == 2, "the document is in effect")

        assert status["world_size"] == 2
        assert not lives(rank)


def test_agents_leave_when_their_driver_is_killed(agents: WarmAgents, tmp_path: Path) -> None:
    """Nobody trains on without a driver: ranks are ended at once, agents leave with 1 after their time limit."""
    with job(agents, tmp_path, FOREVER, VODA_AGENT_TIMEOUT="3") as made:
        driver = made.started("w0", "w1")
        ranks = made.pids("w0") + made.pids("w1")

        driver.kill()

        assert [made.workers[worker].wait() for worker in ("w0", "w1")] == [1, 1]
        assert [lives(rank) for rank in ranks] == [False, False]


def test_a_new_driver_takes_the_agents_over(agents: WarmAgents, tmp_path: Path) -> None:
    """A driver that was recreated in the same segment gets warm agents; the ranks of the old one are ended."""
    with job(agents, tmp_path, FOREVER) as made:
        old = made.started("w0", "w1")
        ranks = made.pids("w0")

        new = made.driver("driver-2")
        made.allocate("w0", "w1", uid="driver-2")
        until_acknowledged(new, 2)

        assert made.pids("w0") != ranks
        assert old.wait() == 1
        assert not (made.segment / "end.json").exists()


def test_a_worker_with_two_slots_is_two_ranks(agents: WarmAgents, tmp_path: Path) -> None:
    """One rank per slot; a crash of one restarts its worker as a whole."""
    with job(agents, tmp_path, FOREVER) as made:
        driver = made.started("w0", "w1", slots=2)

        os.kill(made.pids("w1")[0], signal.SIGKILL)
        status = until_status(driver, lambda found: len(found["resizes"]) == 3, "four again")

        assert _changes(status) == [("start", 0, 4), ("replace", 4, 2), ("replace", 2, 4)]


def test_a_reset_that_hangs_ends_the_segment(agents: WarmAgents, tmp_path: Path) -> None:
    """Within the time limit for a reset the driver gives up, so that the job goes on from its last checkpoint."""
    with job(agents, tmp_path, FOREVER, VODA_RESET_TIMEOUT="6") as made:
        driver = made.started("w0", "w1", "w2")

        os.kill(made.pids("w2")[0], signal.SIGSTOP)
        os.kill(made.pids("w1")[0], signal.SIGKILL)

        assert driver.wait() == 1
        assert made.end_json()["outcome"] == "failed"
        assert "a reset did not end within 6 s" in made.end_json()["message"]
        assert [pod.wait() for pod in made.workers.values()] == [0, 0, 0]


def test_a_frozen_agent_takes_no_other_rank_with_it(agents: WarmAgents, tmp_path: Path) -> None:
    """Its rank still runs and asks for the next world, though it counts as lost: the others go on without it."""
    with job(agents, tmp_path, FOREVER) as made:
        driver = made.started("w0", "w1")
        rank = made.pids("w1")[0]

        made.workers["w1"].process.send_signal(signal.SIGSTOP)
        status = until_status(driver, lambda found: len(found["resizes"]) == 2, "one trains on")
        until(lambda: not lives(rank), "the rank of the frozen agent ends itself", driver)

        assert _changes(status) == [("start", 0, 2), ("replace", 2, 1)]
        until_status(driver, lambda found: found["step"] > status["step"], "its steps go on")


def _worker_of_rank(_folder: Path, *, driver_log: str, first: bool) -> str:
    """Horovod numbers the first world's hosts in an order of its own; the driver's log tells it."""
    hosts = driver_log.rsplit("ranks=", 1)[1].split(maxsplit=1)[0].split(",")
    return hosts[0 if first else -1]
