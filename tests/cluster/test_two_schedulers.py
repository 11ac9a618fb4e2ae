"""Two schedulers at once by force: the Lease keeps one, and a holder that was paused gets nothing through."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.checker import Recorder, judge
from tests.cluster.installed import NAMESPACE, Installation
from tests.cluster.proxy import Held, Proxy
from tests.cluster.sleepers import SchedulerProcess, address_of, asleep, holder, scheduler, sleeper
from voda_flows.control.lease import EPOCH
from voda_flows.control.lease import NAME as LEASE
from voda_flows.objects import Object, phase_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
GPUS = {"n0": 2, "n1": 2, "n2": 2}
LIMIT_S = 300.0


@pytest.fixture
def voda(installed: Installation) -> Iterator[Installation]:
    """Voda without a scheduler of its own, and with jobs that sleep."""
    with asleep(installed) as made:
        yield made


def identity(one: SchedulerProcess) -> str:
    """The end of a scheduler's name: its process."""
    return f"/{one.process.pid}"


def epoch(voda: Installation) -> int:
    """How often the Lease has changed hands."""
    return int(voda.store.get("Lease", NAMESPACE, LEASE)["spec"].get("leaseTransitions") or 0)


def test_the_lease_keeps_one_of_two(voda: Installation, tmp_path: Path) -> None:
    """While one lives the other does nothing; when it is killed the other goes on, and no GPU was given twice."""
    before = epoch(voda)
    with Recorder(voda.cluster.api) as record, scheduler(voda, tmp_path / "one") as one:
        assert voda.until(lambda: holder(voda).endswith(identity(one)), LIMIT_S), one.said()
        with scheduler(voda, tmp_path / "two") as two:
            first = [sleeper(voda, f"first-{number}", 5, gpus=2) for number in range(4)]
            ended = [phase_of(voda.wait_ended(name)) for name in first]
            kept = (holder(voda).endswith(identity(one)), epoch(voda) - before, "round=done" in two.said())
            one.signal(signal.SIGKILL)
            second = [sleeper(voda, f"second-{number}", 5, gpus=2) for number in range(4)]
            ended += [phase_of(voda.wait_ended(name)) for name in second]
            taken = (holder(voda).endswith(identity(two)), epoch(voda) - before, "lease=fenced" in two.said())
    verdict = judge(record.changes(), GPUS)

    assert ended == ["Succeeded"] * 8, two.said()
    assert (kept, taken) == ((True, 1, False), (True, 2, True))
    assert (verdict.over, verdict.twice) == ((), ())


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


@pytest.mark.parametrize("has_checked", [True, False], ids=["it has checked", "its grant is on its way"])
def test_a_holder_that_was_paused_gets_no_grant_through(voda: Installation, tmp_path: Path, has_checked: bool) -> None:
    """Stopped between its check and its write, and woken when another has decided: its grant is refused as stale."""
    certificate = voda.cluster.home.certificates / "ca.crt"
    with (
        Recorder(voda.cluster.api) as record,
        Proxy(address_of(voda.cluster), certificate) as proxy,
        scheduler(voda, tmp_path / "paused", proxy.url) as paused,
    ):
        warm = sleeper(voda, "warm", 1)  # from the first decision on there is a target to be patched
        uid = voda.wait_ended(warm)["metadata"]["uid"]
        is_wanted = is_target_beside(f"{uid}/train") if has_checked else is_grant
        held = proxy.hold(is_wanted, is_answered=has_checked)
        name = sleeper(voda, "wanted", 5, gpus=2)
        assert held.came.wait(LIMIT_S), paused.said()
        paused.signal(signal.SIGSTOP)
        with scheduler(voda, tmp_path / "next") as after:
            assert voda.until(lambda: bool(answered(voda, name)), LIMIT_S), after.said()
            granted = answered(voda, name)
            late = wake(paused, proxy, held, is_answered=has_checked)
            ended = voda.wait_ended(name)
            is_next = holder(voda).endswith(identity(after))
    verdict = judge(record.changes(), GPUS)

    assert late.status == 409, paused.said()
    assert (phase_of(ended), is_next, answered(voda, name)) == ("Succeeded", True, granted)
    assert int(ended["metadata"]["annotations"][EPOCH]) == epoch(voda)
    assert (verdict.over, verdict.twice) == ((), ())


def wake(paused: SchedulerProcess, proxy: Proxy, held: Held, *, is_answered: bool) -> Held:
    """Wake the one who was paused; the grant that it then tries, when the server has answered it."""
    late = proxy.hold(is_grant) if is_answered else held
    paused.signal(signal.SIGCONT)
    held.go.set()
    late.go.set()
    assert late.over.wait(LIMIT_S), paused.said()
    return late


def answered(voda: Installation, name: str) -> list[Object]:
    """The answers to a Workflow's start gates."""
    nodes = (voda.workflow(name).get("status") or {}).get("nodes") or {}
    gates = [node for node in nodes.values() if node.get("templateName") == "gate" and node.get("finishedAt")]
    return [{"at": gate["finishedAt"], "outputs": gate.get("outputs")} for gate in gates]
