"""The session's small parts: who is root, how gradients' noise is estimated, the clock, the link, rows."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from voda_flows.runtime.reports import Meter, Moment, Step, append, make_row
from voda_flows.runtime.session_clock import Clock
from voda_flows.runtime.session_exchange import noise
from voda_flows.runtime.session_link import EXIT_ORPHAN, Link
from voda_flows.runtime.session_options import Options
from voda_flows.runtime.session_sync import choose_root

LIMIT_S = 20.0


@pytest.mark.parametrize(
    ("commits", "root"),
    [
        ([-1, -1], 0),  # a job begins: rank 0 has the checkpoint, or the first weights
        ([5, 5, 5], None),  # shrunk, or a crash between steps: all are equal
        ([5, 5, -1], 0),  # grown
        ([-1, 5, 5], 1),  # grown, and the newcomer got the lowest rank
        ([4, 5, -1], 1),  # a crash that some had committed before
        ([0], None),
        ([-1], 0),
    ],
)
def test_the_furthest_rank_is_the_root(commits: list[int], root: int | None) -> None:
    """The others take its state; nothing is sent where all have the same."""
    assert choose_root(commits) == root


def test_noise_is_estimated_without_bias() -> None:
    """Over many steps of gradients of known mean and variance both estimates come out."""
    mean, deviation, size, samples = torch.tensor([3.0, 4.0]), 2.0, 4, 32
    generator = torch.Generator().manual_seed(1)
    squares, variances = [], []
    for _ in range(4000):
        gradients = mean + deviation * torch.randn(size, samples // size, 2, generator=generator)
        own = gradients.mean(1)
        small = float(own.square().sum(1).mean())
        square, variance = noise(float(own.mean(0).square().sum()), small, samples, size)
        squares.append(square)
        variances.append(variance)

    assert sum(squares) / len(squares) == pytest.approx(25.0, rel=0.02)
    assert sum(variances) / len(variances) == pytest.approx(2 * deviation**2, rel=0.05)


@pytest.mark.parametrize(("scale", "factor"), [("linear", 4.0), ("sqrt", 2.0), ("none", 1.0)])
def test_learning_rate_factor(scale: str, factor: float) -> None:
    """What four ranks multiply the rate with."""
    assert Options(scale_lr=scale).lr_factor(4) == factor


def test_the_jobs_checkpoint_interval_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job's input counts unless the script sets its own."""
    monkeypatch.setenv("VODA_CHECKPOINT_STEPS", "25")

    assert (Options().checkpoint_every, Options(checkpoint_every=0).checkpoint_every) == (25, 0)


def test_a_change_is_told_once_with_what_was_lost() -> None:
    """The first step of the new world closes the account of the old one."""
    clock = Clock()
    clock.enter(2, 0)
    duration_s = clock.end()
    assert clock.resized(duration_s) is None
    clock.leave(2, 7)
    clock.enter(3, 5)
    duration_s = clock.end()
    told = clock.resized(duration_s)

    assert told is not None
    assert (told["from_size"], told["to_size"], told["steps_lost"]) == (2, 3, 2)
    assert told["first_step_s"] >= told["last_step_s"]
    assert clock.resized(duration_s) is None


def test_a_newcomer_has_no_change_to_tell() -> None:
    """It was in no world before."""
    clock = Clock()
    clock.enter(3, 5)

    assert clock.resized(clock.end()) is None


def test_work_between_epochs_is_not_standing_still() -> None:
    """A resize at the last step of an epoch is followed by the script's validation, which is no part of it."""
    clock = Clock()
    clock.enter(2, 0)
    clock.end()
    clock.leave(2, 1)
    clock.enter(3, 1)
    threading.Event().wait(0.3)  # the validation
    clock.skip()
    told = clock.resized(clock.end())

    assert told is not None
    assert told["first_step_s"] - told["last_step_s"] < 0.2


def test_messages_are_lines_both_ways() -> None:
    """`join` sets variables and lets the rank go on; `reset` and `stop` set flags."""
    here, there = socket.socketpair()
    link = Link(there)
    here.sendall(b'{"type": "join", "environment": {"VODA_TEST_JOIN": 1}}\n{"type": "news"}\n{"type": "reset"}\n')
    try:
        assert link.await_join()
        assert os.environ.pop("VODA_TEST_JOIN") == "1"
        assert link.reset.wait(LIMIT_S)
        here.sendall(b'{"type": "stop"}\n')
        assert link.stop.wait(LIMIT_S)
        link.send("row", row={"loss": 0.5})
        assert here.recv(1000) == b'{"type":"ready"}\n{"type":"row","row":{"loss":0.5}}\n'
    finally:
        link.close()
        here.close()


def test_a_stop_before_join_ends_the_wait() -> None:
    """A newcomer whose job is stopped is not going to train."""
    here, there = socket.socketpair()
    link = Link(there)
    here.sendall(b'{"type": "stop"}\n')

    assert not link.await_join()
    link.close()
    here.close()


@pytest.mark.parametrize("how", ["agent gone", "sigterm"])
def test_a_rank_hears_of_its_end(how: str) -> None:
    """Without its agent a rank ends at once; SIGTERM is a stop."""
    here, there = socket.socketpair()
    script = (
        "from voda_flows.runtime.session_link import open_link\n"
        "link = open_link()\nlink.stop_on_sigterm()\nlink.send('ready')\nlink.stop.wait()\nlink.close()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "VODA_RANK_FD": str(there.fileno())},
        pass_fds=[there.fileno()],
        cwd=Path(__file__).parents[3],
    )
    there.close()
    assert here.recv(100) == b'{"type":"ready"}\n'
    if how == "agent gone":
        here.close()
    else:
        process.send_signal(signal.SIGTERM)

    assert process.wait(LIMIT_S) == (EXIT_ORPHAN if how == "agent gone" else 0)
    here.close()


def test_a_row_leaves_out_what_json_cannot_say(tmp_path: Path) -> None:
    """NaN and infinity are null; a stand-in's loss does not count; lines are whole."""
    meter = Meter()
    meter.add(Step(samples=4, own_samples=2, loss=math.inf, wall_s=0.5, communication_s=0.2, noise=None))
    meter.add(Step(samples=1, own_samples=0, loss=math.nan, wall_s=0.5, communication_s=0.2, noise=(1.0, 2.0)))
    moment = Moment(kind="epoch", time_s=9.0, segment=1, epoch=0, step=2, samples=5, world_size=2, learning_rate=0.1)
    row = make_row(moment, meter, [2 * value for value in meter.sums()], {"accuracy": math.nan})
    append(tmp_path / "job/reports.jsonl", row)
    append(tmp_path / "job/reports.jsonl", row)

    assert [json.loads(line) for line in (tmp_path / "job/reports.jsonl").read_text().splitlines()] == [row, row]
    assert row == {
        "kind": "epoch", "time_s": 9.0, "segment": 1, "epoch": 0, "step": 2, "samples": 5, "world_size": 2,
        "steps": 2, "batch": 2.5, "loss": None, "validation_loss": None, "learning_rate": 0.1,
        "compute_s": 0.6, "communication_s": 0.4, "gradient_bytes": 0, "gradient_square": 1.0, "gradient_variance": 2.0,
        "metrics": {"accuracy": None},
    }  # fmt: skip
