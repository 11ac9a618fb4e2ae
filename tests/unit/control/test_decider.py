"""Decisions in a process of their own: the same answers, and one that hangs, dies or raises is ended and told."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler_core.cycle import attempt, decide
from scheduler_core.errors import StageFailed
from scheduler_core.model.decision import DecisionKind
from scheduler_core.model.params import Params
from scheduler_core.model.target import Target
from tests.unit.core.builders import cluster, queued, running, seen, spec
from voda_flows.config import Settings
from voda_flows.control.decider import ProcessDecider

METADATA = "Metadata-Version: 2.1\nName: foreign\nVersion: 1\n"
POLICIES = ("endless", "in_c", "crashes", "leaves", "raises", "talks", "not_whole")
#: With a job named after a policy it does that; with others it serves one GPU each.
SOURCE = """
import ctypes, os, signal, sys
from scheduler_core.model.allocation import Allocation

def served(asked):
    return Allocation(gpus_by_job={spec.id: 1 for spec in asked.specs})

def endless(asked):
    while any(spec.id == "endless" for spec in asked.specs):
        pass
    return served(asked)

def in_c(asked):
    ctypes.CDLL(None).sleep(3600)

def crashes(asked):
    os.kill(os.getpid(), signal.SIGSEGV)

def leaves(asked):
    sys.exit(3)

def raises(asked):
    raise ZeroDivisionError("no GPUs to share")

def talks(asked):
    print("a policy may print")
    return served(asked)

def not_whole(asked):
    return Allocation(gpus_by_job={spec.id: 1.5 for spec in asked.specs})
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Policies of another package that do what policies must not."""
    described = tmp_path / "foreign-1.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(METADATA)
    points = "".join(f"{name} = foreign_policies:{name}\n" for name in POLICIES)
    (described / "entry_points.txt").write_text(f"[voda.policies]\n{points}")
    (tmp_path / "foreign_policies.py").write_text(SOURCE)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


@pytest.fixture
def decider() -> Iterator[ProcessDecider]:
    """A process that decides; all that is quick is given half a minute."""
    found = ProcessDecider(limit_s=30.0)
    yield found
    found.close()


def is_there(pid: int) -> bool:
    """Whether a process lives."""
    return Path(f"/proc/{pid}").exists()


def test_its_decision_is_the_one_made_here(decider: ProcessDecider) -> None:
    """The same values come back, and one process makes them all; closing ends it."""
    jobs = running(spec("a", (1, 4)), "n0"), queued(spec("b", (1, 2), submitted_s=1.0))
    observation = seen(cluster(2, 2), *jobs, queues=Settings().queues, speed_by_job={"a": (0.0, 1.0)})

    first = decider.attempt(observation, Target(), Params())
    pid = decider.pid
    second = decider.attempt(observation, first.target, Params())

    assert first == attempt(observation, Target(), Params())
    assert second == attempt(observation, first.target, Params())
    assert pid is not None
    assert decider.pid == pid
    decider.close()
    assert not is_there(pid)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("policy", "says", "goes"),
    [
        ("endless", "policy endless: expected a decision within 0.5 s, got none: its process was ended", True),
        ("in_c", "policy in_c: expected a decision within 0.5 s, got none: its process was ended", True),
        ("crashes", "policy crashes: expected a decision, its process ended by signal 11", True),
        ("leaves", "policy leaves: expected a decision, its process ended with exit code 3", True),
        ("raises", "ZeroDivisionError: no GPUs to share", False),
        ("not_whole", "TypeError: 'float' object cannot be interpreted as an integer", False),
    ],
)
def test_a_policy_that_fails_is_told(decider: ProcessDecider, policy: str, says: str, goes: bool) -> None:
    """In words, within the limit; a process that cannot answer any more is gone, and the next question is answered."""
    observation = seen(cluster(2), queued(spec("endless")))
    decider.attempt(observation, Target(), Params())
    pid = decider.pid
    assert pid is not None
    decider.limit_s = 0.5 if "within" in says else 30.0

    with pytest.raises(StageFailed) as failed:
        decider.attempt(observation, Target(), Params(policy=policy))

    assert str(failed.value) == says
    assert is_there(pid) is not goes
    decider.limit_s = 30.0
    assert decider.attempt(observation, Target(), Params()) == attempt(observation, Target(), Params())


@pytest.mark.usefixtures("installed")
def test_what_a_policy_prints_is_no_answer(decider: ProcessDecider) -> None:
    """Standard output is not what the answer comes on."""
    observation = seen(cluster(2), queued(spec("a")))

    decision = decider.attempt(observation, Target(), Params(policy="talks"))

    assert dict(decision.target.allocation.gpus_by_job) == {"a": 1}


@pytest.mark.usefixtures("installed")
def test_the_job_with_which_a_policy_hangs_is_found(decider: ProcessDecider) -> None:
    """At most one try that hangs a round; a few rounds later it is named, and the others are served."""
    decider.limit_s = 3.0
    observation = seen(cluster(8), *[queued(spec(name)) for name in ("a", "endless", "f")])
    target, kinds = Target(), list[DecisionKind]()
    while not kinds or target.search:
        decider.begin_round()
        decision = decide(observation, target, Params(policy="endless"), decider)
        target = decision.target
        kinds.append(decision.kind)
        assert len(kinds) < 30

    assert (set(kinds[:-1]), kinds[-1]) == ({DecisionKind.FENCED}, DecisionKind.FULL)
    assert dict(target.allocation.gpus_by_job) == {"a": 1, "f": 1}
    assert list(target.quarantined) == ["endless"]
    assert "within 3 s, got none" in target.quarantined["endless"].reason


def test_a_process_that_was_killed_is_replaced(decider: ProcessDecider) -> None:
    """Somebody kills it between two decisions: the next one fails and says so, the one after is made."""
    observation = seen(cluster(2), queued(spec("a")))
    decider.attempt(observation, Target(), Params())
    assert decider.pid is not None
    os.kill(decider.pid, signal.SIGKILL)

    with pytest.raises(StageFailed, match="its process ended by signal 9"):
        decider.attempt(observation, Target(), Params())
    assert decider.attempt(observation, Target(), Params()).kind is DecisionKind.FULL


def test_a_round_bears_another_try_while_little_time_has_passed() -> None:
    """Half of one try's limit; with a limit that is over at once there is none, until the next round."""
    long, none = ProcessDecider(limit_s=3_600.0), ProcessDecider(limit_s=0.0)
    for decider in (long, none):
        decider.begin_round()

    assert (long.has_time(), none.has_time()) == (True, False)
