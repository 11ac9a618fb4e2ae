"""What is about grants, on a real cluster: a hostile network, two schedulers at once, jobs that are deleted.

Their pods sleep, so that many jobs go through real gates in little time; a checker sees every change of the cluster.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scheduler_core.errors import NotFound
from tests.cluster.checker import Recorder, judge
from tests.cluster.installed import NAMESPACE, Installation
from tests.cluster.proxy import FAULTS, Held, Manner, Proxy
from tests.cluster.sleepers import SchedulerProcess, address_of, asleep, holder, scheduler, sleeper, take_away
from voda_flows.control.lease import EPOCH
from voda_flows.control.lease import NAME as LEASE
from voda_flows.objects import WORKFLOW_LABEL, Object, phase_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
GPUS = {"n0": 2, "n1": 2, "n2": 2}
JOBS = 6
LIMIT_S = 300.0
#: For a scheduler that is not needed to see that.
_END_S = 60.0


@pytest.fixture(scope="module")
def sleepy(installed: Installation) -> Iterator[Installation]:
    """Voda without a scheduler of its own, and with jobs that sleep."""
    with asleep(installed) as made:
        yield made


@pytest.fixture
def voda(sleepy: Installation) -> Iterator[Installation]:
    """The same with nothing on it."""
    yield sleepy
    take_away(sleepy)


@pytest.mark.long
@pytest.mark.parametrize(
    "manner",
    [
        pytest.param(Manner(share=0.2, watch_s=8.0), id="requests fail and watches drop"),
        pytest.param(Manner(pods_late_s=10.0, watch_s=8.0), id="pods appear late"),
    ],
)
def test_the_scheduler_converges_and_grants_nothing_twice(voda: Installation, tmp_path: Path, manner: Manner) -> None:
    """More jobs than fit at once all get their GPUs in turn, and no GPU is ever another's too."""
    certificate = voda.cluster.home.certificates / "ca.crt"
    with (
        Recorder(voda.cluster.api) as record,
        Proxy(address_of(voda.cluster), certificate, manner) as proxy,
        scheduler(voda, tmp_path, proxy.url) as running,
    ):
        names = [sleeper(voda, f"job-{number}", 2, gpus=1 + number % 2) for number in range(JOBS)]
        ended = [phase_of(voda.wait_ended(name, 600)) for name in names]
    verdict = judge(record.changes(), GPUS)

    assert ended == ["Succeeded"] * JOBS, running.said()
    assert (verdict.over, verdict.twice, record.gaps) == ((), (), 0)
    assert proxy.done["watch dropped"] > 0
    assert manner.share == 0.0 or sum(proxy.done[fault] for fault in FAULTS) > JOBS


def test_a_job_that_is_deleted_goes_with_its_pods(voda: Installation, tmp_path: Path) -> None:
    """The Workflow stays until its pods are gone, and its controller makes no others meanwhile: no checkpoint step."""
    with scheduler(voda, tmp_path):
        name = sleeper(voda, "unwanted", 600, gpus=2)
        voda.until_life(name, lambda life: life.gpus == 2)
        assert voda.until(lambda: [phase_of(pod) for pod in voda.pods(name)] == ["Running"] * 3, LIMIT_S)
        made = {pod["metadata"]["uid"] for pod in voda.pods(name)}
        seen = set(made)

        def is_gone() -> bool:
            seen.update(pod["metadata"]["uid"] for pod in voda.pods(name))
            try:
                voda.workflow(name)
            except NotFound:
                return True
            return False

        voda.store.delete("Workflow", NAMESPACE, name)
        went = voda.until(is_gone, LIMIT_S)
        left = [pod["metadata"]["name"] for pod in voda.store.list("Pod", NAMESPACE, {WORKFLOW_LABEL: name})]

    assert (went, left, seen - made) == (True, [], set())


def identity(one: SchedulerProcess) -> str:
    """The end of a scheduler's name: its process."""
    return f"/{one.process.pid}"


def epoch(voda: Installation) -> int:
    """How often the Lease has changed hands."""
    return int(voda.store.get("Lease", NAMESPACE, LEASE)["spec"].get("leaseTransitions") or 0)


@pytest.mark.long
def test_the_lease_keeps_one_of_two(voda: Installation, tmp_path: Path) -> None:
    """Each job is granted once by one of them; the other ends, and the next fences off a holder that was killed."""
    with (
        Recorder(voda.cluster.api) as record,
        scheduler(voda, tmp_path / "one") as one,
        scheduler(voda, tmp_path / "two") as two,
    ):
        names = [sleeper(voda, f"first-{number}", 5, gpus=2) for number in range(3)]
        ended = [phase_of(voda.wait_ended(name)) for name in names]
        holds, other = (one, two) if holder(voda).endswith(identity(one)) else (two, one)
        code, before = other.process.wait(_END_S), epoch(voda)
        holds.signal(signal.SIGKILL)
        names += [sleeper(voda, f"second-{number}", 5, gpus=2) for number in range(3)]
        with scheduler(voda, tmp_path / "three") as three:
            ended += [phase_of(voda.wait_ended(name)) for name in names[3:]]
            now = (holder(voda).endswith(identity(three)), epoch(voda), "lease=fenced" in three.said())
        uids = [voda.workflow(name)["metadata"]["uid"] for name in names]
    verdict = judge(record.changes(), GPUS)
    said = one.said() + two.said() + three.said()

    assert ended == ["Succeeded"] * 6, said
    assert (code, "scheduler=not_needed" in other.said()) == (0, True), said
    assert now == (True, before + 1, True), said
    assert [said.count(f"job={uid}/train action='Grant'") for uid in uids] == [1] * 6
    assert (verdict.over, verdict.twice, record.gaps) == ((), (), 0)


def is_grant(method: str, path: str, body: bytes) -> bool:
    """Whether a request answers a gate with a grant."""
    return method == "PATCH" and "/workflows/" in path and b'"given"' in body


def is_target_beside(known: str) -> Callable[[str, str, bytes], bool]:
    """Whether a request is the last one before a decision on another job than a known one is carried out."""

    def is_wanted(method: str, path: str, body: bytes) -> bool:
        return (
            method == "PATCH" and "/configmaps/voda-target" in path and b"/train" in body.replace(known.encode(), b"")
        )

    return is_wanted


@pytest.mark.long
@pytest.mark.parametrize("has_decided", [True, False], ids=["it has decided", "its grant is on its way"])
def test_a_holder_that_was_paused_gets_no_grant_through(voda: Installation, tmp_path: Path, has_decided: bool) -> None:
    """Stopped before its write, and woken when another has decided: it sees that the Lease is lost and writes nothing.

    What had left it after its last look at the Lease is refused as stale.
    """
    certificate = voda.cluster.home.certificates / "ca.crt"
    with (
        Recorder(voda.cluster.api) as record,
        Proxy(address_of(voda.cluster), certificate) as proxy,
        scheduler(voda, tmp_path / "paused", proxy.url) as paused,
    ):
        warm = sleeper(voda, "warm", 1)  # from the first decision on there is a target to be patched
        uid = voda.wait_ended(warm)["metadata"]["uid"]
        is_wanted = is_target_beside(f"{uid}/train") if has_decided else is_grant
        held = proxy.hold(is_wanted, is_answered=has_decided)
        name = sleeper(voda, "wanted", 5, gpus=2)
        assert held.came.wait(LIMIT_S), paused.said()
        paused.signal(signal.SIGSTOP)
        with scheduler(voda, tmp_path / "next") as after:
            assert voda.until(lambda: bool(answered(voda, name)), LIMIT_S), after.said()
            granted = answered(voda, name)
            late = proxy.hold(is_grant) if has_decided else held
            late.go.set()
            wake(paused, held)
            assert voda.until(lambda: "lease=lost" in paused.said() or late.over.is_set(), LIMIT_S), paused.said()
            ended = voda.wait_ended(name)
            is_next = holder(voda).endswith(identity(after))
    verdict = judge(record.changes(), GPUS)

    assert late.status == (0 if has_decided else 409), paused.said()
    assert (phase_of(ended), is_next, answered(voda, name)) == ("Succeeded", True, granted)
    assert int(ended["metadata"]["annotations"][EPOCH]) == epoch(voda)
    assert (verdict.over, verdict.twice, record.gaps) == ((), (), 0)


def wake(paused: SchedulerProcess, held: Held) -> None:
    """Wake the one who was paused, once what it waits for is there: it has slept longer than it waits for an answer."""
    held.go.set()
    assert held.over.wait(LIMIT_S), paused.said()
    paused.signal(signal.SIGCONT)


def answered(voda: Installation, name: str) -> list[Object]:
    """The answers to a Workflow's start gates; Argo cuts the moments to seconds when it writes them."""
    nodes = (voda.workflow(name).get("status") or {}).get("nodes") or {}
    gates = [node for node in nodes.values() if node.get("templateName") == "gate" and node.get("finishedAt")]
    return [{"at": gate["finishedAt"][: len("2026-01-01T00:00:00")], "outputs": gate.get("outputs")} for gate in gates]
