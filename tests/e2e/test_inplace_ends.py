"""How segments end: done, stopped at a checkpoint, failed; and what a driver and an agent do not listen to."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
from pathlib import Path

import pytest

from tests.e2e.agents import WarmAgents
from tests.e2e.rig import FOREVER, KEY, TRAIN, WARM_LIMIT_S, job, lives, until, until_acknowledged, until_status


def test_training_that_is_done_ends_everything_with_0(agents: WarmAgents, tmp_path: Path) -> None:
    """Driver and agents leave with 0, ``end.json`` says done (20 batches are 10 steps of two), progress is full."""
    with job(agents, tmp_path, f"{TRAIN} 20 0.01") as made:
        driver = made.started("w0", "w1", min_workers=2)

        assert driver.wait() == 0
        assert made.end_json() == {
            "outcome": "done", "step": 10, "epoch": 1, "message": "", "failed_starts": 0,
        }  # fmt: skip
        assert [pod.wait() for pod in made.workers.values()] == [0, 0]
        assert (tmp_path / "progress").read_text() == "100/100"
        assert len((made.segment / "reports.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("how", ["document", "SIGTERM"])
def test_a_stop_leaves_a_checkpoint_of_one_step(agents: WarmAgents, tmp_path: Path, how: str) -> None:
    """All ranks stop at the same commit; the driver leaves with 0 and the checkpoint is that of its last step."""
    with job(agents, tmp_path, FOREVER) as made:
        driver = made.started("w0", "w1")

        if how == "document":
            made.allocate("w0", "w1", stop="checkpoint")
        else:
            driver.process.send_signal(signal.SIGTERM)

        assert driver.wait() == 0
        end = made.end_json()
        manifest = json.loads(next(made.segment.glob("step-*/manifest.json")).read_text())
        assert (end["outcome"], end["step"]) == ("stopped", manifest["step"])
        assert [pod.wait() for pod in made.workers.values()] == [0, 0]


@pytest.mark.parametrize("workers", [("w2",), ("w0",)], ids=["all replaced", "below the least"])
def test_what_cannot_be_done_in_place_is_a_stop(agents: WarmAgents, tmp_path: Path, workers: tuple[str, ...]) -> None:
    """Replacing every worker at once, or going below the least size, leaves a checkpoint for the next segment."""
    with job(agents, tmp_path, FOREVER) as made:
        least = 1 if workers == ("w2",) else 2
        driver = made.started("w0", "w1", min_workers=least)
        made.agent("w2")
        made.await_warm("w2")

        made.allocate(*workers, min_workers=least)

        assert driver.wait() == 0
        assert made.end_json()["outcome"] == "stopped"
        assert list(made.segment.glob("step-*/manifest.json"))


def test_sigterm_to_an_agent_drains_its_worker(agents: WarmAgents, tmp_path: Path) -> None:
    """A pod that is deleted leaves the world in place, without a step lost."""
    with job(agents, tmp_path, FOREVER) as made:
        driver = made.started("w0", "w1")

        made.workers["w1"].process.send_signal(signal.SIGTERM)

        assert made.workers["w1"].wait() == 0
        status = until_status(driver, lambda found: len(found["resizes"]) == 2, "one trains on")
        assert [(record["to_size"], record["steps_lost"]) for record in status["resizes"]] == [(2, 0), (1, 0)]


def test_a_script_that_fails_fails_the_segment(agents: WarmAgents, tmp_path: Path) -> None:
    """The driver leaves with 1 and ``end.json`` carries the script's own words."""
    with job(agents, tmp_path, f"{TRAIN} 20 0.01 5", VODA_RESTART_LIMIT="0") as made:
        made.agent("w0")
        driver = made.driver()
        made.await_warm("w0")
        made.allocate("w0")

        assert driver.wait() == 1
        assert made.end_json()["outcome"] == "failed"
        assert "fails at step 5" in made.end_json()["message"]
        assert made.workers["w0"].wait() == 0


@pytest.mark.parametrize("code", [0, 3])
def test_a_command_that_ends_before_it_joins_fails_the_segment(agents: WarmAgents, tmp_path: Path, code: int) -> None:
    """Nobody waits for a rank that is not coming, whatever its exit code; ``end.json`` says what it did."""
    with job(agents, tmp_path, f"exit {code}", VODA_RESTART_LIMIT="1") as made:
        made.agent("w0")
        driver = made.driver()
        made.await_warm("w0")
        made.allocate("w0")

        assert driver.wait() == 1
        assert made.end_json()["message"] == (
            f"expected at least 1 workers to start, got 0: w0.2's command ended with exit code {code} before it joined "
            "the training (a training script calls session.elastic)"
        )
        assert made.workers["w0"].wait() == 0


def test_a_first_world_that_never_comes_fails_the_segment(agents: WarmAgents, tmp_path: Path) -> None:
    """A script that hangs before it joins holds its GPUs for the time limit only; it is not started once more."""
    with job(agents, tmp_path, FOREVER, VODA_SETUP_TIMEOUT="1", TINY_HANGS="1") as made:
        made.agent("w0")
        driver = made.driver()
        made.await_warm("w0")
        made.allocate("w0")

        assert driver.wait() == 1
        end = made.end_json()
        assert (end["outcome"], end["failed_starts"], end["message"]) == (
            "failed",
            1,
            "expected at least 1 workers to start, got 0: w0 did not come to the door within 1 s (VODA_SETUP_TIMEOUT)",
        )
        assert made.workers["w0"].wait() == 0


def test_ranks_that_do_not_stop_are_ended(agents: WarmAgents, tmp_path: Path) -> None:
    """A stop that no rank ever comes to obey does not keep the job's GPUs beyond its time limit."""
    with job(agents, tmp_path, FOREVER, VODA_STOP_TIMEOUT="1", TINY_HANGS_AT="10") as made:
        driver = made.started("w0")
        until_status(driver, lambda found: found["rows"] == 1, "its tenth step is made")

        made.allocate("w0", stop="checkpoint")

        assert driver.wait() == 1
        assert made.end_json()["message"] == "the ranks did not stop within 1 s (VODA_STOP_TIMEOUT)"
        assert made.workers["w0"].wait() == 0


def test_a_frozen_driver_is_ended(agents: WarmAgents, tmp_path: Path) -> None:
    """Its agents end their ranks and leave, and its watch ends it: nobody waits for it with or without GPUs."""
    with job(agents, tmp_path, FOREVER, VODA_AGENT_TIMEOUT="3", VODA_STALL_TIMEOUT="8") as made:
        driver = made.started("w0", "w1")
        ranks = [*made.pids("w0"), *made.pids("w1")]

        driver.process.send_signal(signal.SIGSTOP)

        assert [pod.wait() for pod in made.workers.values()] == [1, 1]
        assert driver.wait() == -signal.SIGKILL
        assert [lives(rank) for rank in ranks] == [False, False]
        assert "the driver stood still for 8 s" in driver.text()


def test_a_rank_that_leaves_without_a_word_has_crashed(agents: WarmAgents, tmp_path: Path) -> None:
    """Exit code 0 in the middle of the training is no success: the segment fails, and says so."""
    with job(agents, tmp_path, f"{TRAIN} 100000 0.02 -1 5") as made:
        made.agent("w0")
        driver = made.driver()
        made.await_warm("w0")
        made.allocate("w0")

        assert driver.wait() == 1
        assert (made.end_json()["outcome"], made.end_json()["message"]) == (
            "failed",
            "w0 ended with exit code 0 in the middle of the training, without a word",
        )


def test_a_command_that_is_no_python_script_is_execd(agents: WarmAgents, tmp_path: Path) -> None:
    """It trains all the same, from a cold start, and the log says so."""
    with job(agents, tmp_path, f"OMP_NUM_THREADS=1 {TRAIN} 5 0.01") as made:
        made.agent("w0")
        driver = made.driver()
        made.await_warm("w0")
        made.allocate("w0")

        assert driver.wait(WARM_LIMIT_S) == 0
        assert "warm=False" in made.workers["w0"].text()


def test_a_document_for_another_driver_or_of_old_is_ignored(agents: WarmAgents, tmp_path: Path) -> None:
    """A driver trains only on a document that was written for its own pod, and never goes back."""
    with job(agents, tmp_path, FOREVER) as made:
        made.agent("w0")
        driver = made.driver()
        made.await_warm("w0")

        made.allocate("w0", uid="another")
        until(lambda: "it is for driver_uid 'another'" in driver.text(), "the document is refused", driver)
        made.allocate("w0", generation=7)
        until_acknowledged(driver, 7)
        made.allocate("w0", generation=7, stop="checkpoint")

        until(lambda: "generation 7 is not above 7" in driver.text(), "the old document is refused", driver)
        assert not driver.text().count("stop because")


def test_a_stop_before_the_start_ends_with_0_and_no_folder(agents: WarmAgents, tmp_path: Path) -> None:
    """SIGTERM to a driver that never had a document leaves nothing behind."""
    with job(agents, tmp_path, FOREVER) as made:
        driver = made.driver()
        until_status(driver, lambda found: found["state"] == "waiting", "the driver waits")

        driver.process.send_signal(signal.SIGTERM)

        assert driver.wait() == 0
        assert not made.segment.exists()


def test_a_driver_with_a_foreign_key_is_refused(agents: WarmAgents, tmp_path: Path) -> None:
    """The agent starts nothing for it, nor for noise, and no log shows a key."""
    with job(agents, tmp_path, FOREVER, VODA_AGENT_TIMEOUT="1") as made:
        agent = made.agent("w0")
        foreign = "f0" * 32
        (tmp_path / "foreign").write_text(foreign)
        driver = made.driver(VODA_KEY_FILE=str(tmp_path / "foreign"))
        made.await_warm("w0")
        for noise in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 200_000, b'{"type": "prove"}\n'):
            with socket.create_connection((agent.address, 7070)) as stranger, contextlib.suppress(OSError):
                stranger.sendall(noise)

        made.allocate("w0")

        assert driver.wait() == 1
        assert "its proof is not made with this job's key" in agent.text()
        assert agent.ranks() == []
        assert not any(key in pod.text() for pod in made.pods for key in (KEY, foreign))


def test_an_unneeded_agent_leaves_when_the_segment_has_ended(agents: WarmAgents, tmp_path: Path) -> None:
    """A worker whose growth came too late does not keep its Workflow open."""
    with job(agents, tmp_path, f"{TRAIN} 5 0.01") as made:
        driver = made.started("w0")
        late = made.agent("w1")

        assert driver.wait() == 0
        assert late.wait() == 0


def test_a_real_agent_is_warm_before_it_listens(tmp_path: Path) -> None:
    """It has imported what ranks need, computed nothing, started no thread, and then trains."""
    with job(None, tmp_path, f"{TRAIN} 5 0.01") as made:
        driver = made.started("w0")

        assert driver.wait() == 0
        assert "cold_because=-" in made.workers["w0"].text()
        assert made.workers["w0"].wait() == 0
