"""One decides at a time; a holder that went away is replaced, and its versions are made stale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from scheduler_core.errors import Conflict
from scheduler_core.model.plan import Action, Announce
from voda_flows.control.held import HeldEnforcer
from voda_flows.control.lease import DURATION_S, EPOCH, NAME, Lease, LeaseLost
from voda_flows.kube.retrying import Patience
from voda_flows.local.store import LocalStore
from voda_flows.objects import Object


@dataclass
class Clock:
    """A clock that a test moves."""

    now_s: float = 100.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now_s


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """An empty store."""
    return LocalStore(tmp_path)


def lease(store: LocalStore, identity: str, clock: Clock) -> Lease:
    """Somebody's view of the Lease."""
    return Lease(store=store, namespace="voda", identity=identity, clock=clock)


def test_only_one_holds_it(store: LocalStore) -> None:
    """While the holder renews, nobody else gets it, however long it takes."""
    clock = Clock()
    one, other = lease(store, "one", clock), lease(store, "other", clock)

    assert one.hold()
    for number in range(10):
        clock.now_s += DURATION_S * 0.9
        assert one.hold()
        assert not other.hold()
        assert other.is_anothers == (number > 0), "one that is seen for the first time may have been left behind"
    assert not one.is_anothers


def test_expiry_is_judged_by_the_observers_own_clock(store: LocalStore) -> None:
    """A Lease that has not changed for its whole duration, as one has seen it, may be taken; that is unclean."""
    clock = Clock()
    one, other = lease(store, "one", clock), lease(store, "other", clock)
    one.hold()

    assert not other.hold()
    clock.now_s += DURATION_S - 0.1
    assert not other.hold()
    clock.now_s += 0.2
    assert other.hold()
    assert (other.epoch, other.unclean) == (2, True)
    assert not one.hold(), "the old holder finds out"


def test_a_holder_that_gave_it_back_is_not_waited_for(store: LocalStore) -> None:
    """A clean end leaves nothing to fence."""
    clock = Clock()
    one, other = lease(store, "one", clock), lease(store, "other", clock)
    one.hold()
    one.give_back()

    assert other.hold()
    assert (other.epoch, other.unclean) == (2, False)
    one.give_back()
    assert store.get("Lease", "voda", NAME)["spec"]["holderIdentity"] == "other"


def test_a_holder_whose_pod_has_ended_is_not_waited_for(store: LocalStore) -> None:
    """The pod is known by its uid; one that still runs is waited for."""
    clock = Clock()
    pod = store.create({"kind": "Pod", "metadata": {"name": "p", "namespace": "voda"}, "status": {"phase": "Running"}})
    one = lease(store, f"pod/{pod['metadata']['uid']}", clock)
    other = lease(store, "pod/other", clock)
    one.hold()

    assert not other.hold()
    store.merge_patch("Pod", "voda", "p", {"status": {"phase": "Failed"}})
    assert other.hold()
    assert other.unclean


def test_the_old_holders_versions_are_made_stale(store: LocalStore) -> None:
    """A guarded write by a version from before the fence fails."""
    body = store.create({"kind": "Workflow", "metadata": {"name": "w", "namespace": "default"}, "spec": {}})
    holder = lease(store, "one", Clock())
    holder.hold()

    assert holder.fence([body]) == 1
    assert store.get("Workflow", "default", "w")["metadata"]["annotations"] == {EPOCH: "1"}
    with pytest.raises(Conflict):
        store.merge_patch(
            "Workflow", "default", "w", {"spec": {"x": 1}}, resource_version=body["metadata"]["resourceVersion"]
        )


def test_it_is_renewed_in_good_time(store: LocalStore) -> None:
    """A third of the duration is left to fail twice."""
    clock = Clock()
    holder = lease(store, "one", clock)
    holder.hold()

    assert not holder.renew_due()
    clock.now_s += DURATION_S / 3
    assert holder.renew_due()


@dataclass
class Slow:
    """An Enforcer whose every action takes so long.

    Attributes:
        clock: What goes on meanwhile.
        each_s: How long, seconds.
        done: What it did.
    """

    clock: Clock
    each_s: float
    done: list[str] = field(default_factory=list)

    def enforce(self, action: Action) -> None:
        """Take that long."""
        self.clock.now_s += self.each_s
        self.done.append(action.job_id)


ACTIONS = [Announce(job_id=str(number), message="x") for number in range(6)]


def test_a_round_of_slow_writes_renews_it(store: LocalStore) -> None:
    """Each ends within the Lease's time, all of them do not: nobody takes it from who is at work."""
    clock = Clock()
    one, other = lease(store, "one", clock), lease(store, "other", clock)
    enforcer = Slow(clock, DURATION_S / 3 + 4)
    held = HeldEnforcer(enforcer=enforcer, lease=one)
    one.hold()

    for action in ACTIONS:
        held.enforce(action)
        assert not other.hold()
    assert enforcer.done == [action.job_id for action in ACTIONS]
    assert one.epoch == 1


@pytest.mark.parametrize("given_back", [False, True])
def test_who_lost_it_does_nothing_more_in_that_round(store: LocalStore, *, given_back: bool) -> None:
    """Even where it can be had anew: what was decided is old by then."""
    clock = Clock()
    one, other = lease(store, "one", clock), lease(store, "other", clock)
    enforcer = Slow(clock, 1.0)
    held = HeldEnforcer(enforcer=enforcer, lease=one)
    one.hold()
    held.enforce(ACTIONS[0])
    other.hold()
    clock.now_s += DURATION_S + 1
    assert other.hold()
    if given_back:
        other.give_back()

    with pytest.raises(LeaseLost, match="expected 'one' to renew it in epoch 1, it was lost"):
        held.enforce(ACTIONS[1])
    assert enforcer.done == ["0"]


def test_a_takeover_of_many_objects_renews_it(store: LocalStore) -> None:
    """Fencing hundreds of them may take longer than the Lease lasts."""
    clock = Clock()
    bodies = [
        store.create({"kind": "Pod", "metadata": {"name": f"p{number}", "namespace": "a"}}) for number in range(5)
    ]
    one, other = lease(store, "one", clock), lease(store, "other", clock)
    one.hold()

    def slowly() -> Iterator[Object]:
        for body in bodies:
            clock.now_s += DURATION_S / 2
            yield body
            assert not other.hold()

    assert one.fence(slowly()) == len(bodies)


def test_one_call_to_the_server_does_not_outlast_it() -> None:
    """However often it is repeated: begun just before the Lease was to be renewed, it ends before that runs out."""
    patience = Patience()

    assert DURATION_S / 3 + patience.limit_s + patience.last_s < DURATION_S
