"""The converge loop, one row per rule: from an observation and a target to the whole plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from scheduler_core.converging.document import PLACE_LIMIT_S
from scheduler_core.diff import diff
from scheduler_core.model.cluster import Cluster, Node
from scheduler_core.model.job import Job, JobPhase, Worker, WorkerPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.plan import (
    Abandon,
    Action,
    Announce,
    Evict,
    Grant,
    Grow,
    NewWorker,
    Publish,
    Refuse,
    Release,
    Stop,
)
from scheduler_core.model.target import Target
from tests.unit.core.builders import NOW_S, aimed, cluster, queued, running, seen, spec, workers

PARAMS = Params(start_limit_s=300.0)
LATE_S = NOW_S + 300.0


def planned(observation: Observation, target: Target) -> tuple[Action, ...]:
    """The plan's actions, checked as in production."""
    return diff(observation, target, PARAMS).check(observation).actions


def starting(*members: Worker, **changes: object) -> Job:
    """A job of 2..4 GPUs whose gate was answered at ``NOW_S`` with these workers."""
    job = Job(spec=spec("a", (2, 4)), phase=JobPhase.STARTING, workers=members, driver_ready=True, granted_s=NOW_S)
    return job.replace(**changes)


def at(now_s: float, observation: Observation) -> Observation:
    """The same world later."""
    return replace(observation, now_s=now_s)


def publish(generation: int, *ids: str) -> Publish:
    """A document of job a, segment 0."""
    return Publish(job_id="a", segment=0, generation=generation, worker_ids=ids)


def test_a_waiting_job_is_granted_when_every_slot_is_free() -> None:
    """Workers are numbered from w0, on the nodes in topology order."""
    nodes = Cluster(
        nodes=tuple(
            Node(name=name, gpus=2, labels={"rack": rack}) for name, rack in (("n0", "y"), ("n1", "x"), ("n2", "x"))
        ),
        levels=("rack",),
    )
    job = queued(spec("a", (3, 3)))
    target = aimed({"a": {"n0": 1, "n1": 1, "n2": 1}}, job)

    assert planned(seen(nodes, job), target) == (
        Grant(
            job_id="a",
            segment=0,
            workers=tuple(
                NewWorker(id=f"w{number}", node=node, gpus=1) for number, node in enumerate(("n1", "n2", "n0"))
            ),
        ),
    )


def test_a_waiting_job_is_not_granted_a_part() -> None:
    """One of two slots is still held by a worker that leaves: nothing is claimed yet."""
    job = queued(spec("b", (2, 2)))
    leaving = running(spec("a"), "n0", phase=JobPhase.STOPPING, stop_written=True)

    assert planned(seen(cluster(2), leaving, job), aimed({"b": {"n0": 2}}, leaving, job)) == ()


def test_gpus_of_pods_on_their_way_out_are_not_claimed() -> None:
    """They are nobody's, so a decision promises them, but a grant waits until they are free."""
    job = queued(spec("a"))
    target = aimed({"a": {"n0": 1}}, job)

    assert planned(seen(cluster(1, leaving_gpus=1), job), target) == ()
    assert len(planned(seen(cluster(1), job), target)) == 1


def test_gpus_freed_by_this_round_are_claimed_by_a_later_one() -> None:
    """A preempted job is stopped; the job that gets its GPUs is not granted in the same plan."""
    low, high = running(spec("a"), "n0"), queued(spec("b", priority=100))

    assert planned(seen(cluster(1), low, high), aimed({"b": {"n0": 1}}, low, high)) == (
        Stop(job_id="a", segment=0, generation=2, reason="preempted: its GPUs are given to jobs before it"),
    )


def test_training_starts_when_all_granted_workers_are_ready() -> None:
    """Generation 1 has all of them; while one is warming up, there is nothing to do."""
    target = aimed({"a": {"n0": 2}}, starting())

    cold = starting(*workers("n0"), *workers("n0", first=1, phase=WorkerPhase.RUNNING))
    assert planned(seen(cluster(2), cold), target) == ()
    assert planned(seen(cluster(2), starting(*workers("n0", "n0"))), target) == (publish(1, "w0", "w1"),)


def test_no_document_is_written_before_there_is_a_driver() -> None:
    """All workers are ready, the driver is not there."""
    job = starting(*workers("n0", "n0"), driver_ready=False)

    assert planned(seen(cluster(2), job), aimed({"a": {"n0": 2}}, job)) == ()


def test_after_the_limit_it_starts_with_at_least_its_minimum() -> None:
    """Of three granted workers two are ready: the third is evicted, training starts with two."""
    job = starting(*workers("n0", "n0"), *workers("n1", first=2, phase=WorkerPhase.PENDING))
    observation = seen(cluster(2, 1), job)
    target = aimed({"a": {"n0": 2, "n1": 1}}, job)

    assert planned(at(LATE_S - 1, observation), target) == ()
    assert planned(at(LATE_S, observation), target) == (
        Evict(job_id="a", segment=0, worker_id="w2", reason="not ready 300 s after its grant"),
        publish(1, "w0", "w1"),
    )


def test_a_late_worker_without_a_pod_cannot_be_evicted_and_keeps_nobody_waiting() -> None:
    """Training starts without it; its GPU stays promised until its pod is seen or its segment ends."""
    job = starting(*workers("n0", "n0"), *workers("n1", first=2, phase=WorkerPhase.GRANTED))
    observation = at(LATE_S, seen(cluster(2, 1), job))

    assert planned(observation, aimed({"a": {"n0": 2, "n1": 1}}, job)) == (publish(1, "w0", "w1"),)
    assert observation.free_gpus() == {"n0": 0, "n1": 0}


def test_below_its_minimum_after_the_limit_it_goes_back_to_a_gate() -> None:
    """Of two granted workers one is ready, the minimum is two: the other is evicted and the segment ends."""
    job = starting(*workers("n0"), *workers("n0", first=1, phase=WorkerPhase.PENDING))

    assert planned(at(LATE_S, seen(cluster(2), job)), aimed({"a": {"n0": 2}}, job)) == (
        Stop(job_id="a", segment=0, generation=1, reason="1 GPU became ready, fewer than its minimum of 2"),
        Evict(job_id="a", segment=0, worker_id="w1", reason="not ready 300 s after its grant"),
    )


def test_a_pod_for_a_node_that_was_lost_meanwhile_is_not_waited_for() -> None:
    """Nobody takes it there; where the node is open, or the pod is on its machine, it is given its time."""
    waiting = [replace(one, unplaced_s=NOW_S) for one in workers("n0", phase=WorkerPhase.PENDING)]
    evicted = Evict(job_id="a", segment=0, worker_id="w0", reason="its node was closed or lost before it took the pod")

    def steps(members: Iterable[Worker], after_s: float) -> tuple[Action, ...]:
        job = starting(*members)
        return planned(at(NOW_S + after_s, seen(cluster(2, 2), job)), aimed({"a": {"n0": 1}}, job))

    assert steps(waiting, PLACE_LIMIT_S) == (evicted,)
    assert steps(waiting, PLACE_LIMIT_S - 0.1) == ()
    assert steps(workers("n0", phase=WorkerPhase.PENDING), PLACE_LIMIT_S) == ()


def test_workers_do_not_hold_gpus_for_a_driver_that_does_not_come() -> None:
    """After the limit without a driver all its workers are evicted, the ready ones too."""
    job = starting(*workers("n0", "n0"), driver_ready=False)

    assert planned(at(LATE_S, seen(cluster(2), job)), aimed({"a": {"n0": 2}}, job)) == tuple(
        Evict(job_id="a", segment=0, worker_id=name, reason="its driver did not come up within 300 s")
        for name in ("w0", "w1")
    )


def test_a_driver_that_does_not_come_is_given_up_when_its_workers_are_gone() -> None:
    """So the segment ends and its GPUs are promised to nobody any more; workers without a pod keep nobody waiting."""
    for members in (workers("n0", "n0", phase=WorkerPhase.ENDED), workers("n0", "n0", phase=WorkerPhase.GRANTED)):
        job = starting(*members, driver_ready=False, driver_waits=True)

        assert planned(at(LATE_S - 1, seen(cluster(2), job)), aimed({"a": {"n0": 2}}, job)) == ()
        assert planned(at(LATE_S, seen(cluster(2), job)), aimed({"a": {"n0": 2}}, job)) == (
            Abandon(job_id="a", segment=0, role="driver", reason="its driver did not come up within 300 s"),
        )


def test_a_checkpoint_step_that_does_not_come_is_tried_again() -> None:
    """Argo makes another pod for it, perhaps elsewhere, and fails the job when it has tried often enough."""
    job = starting(phase=JobPhase.BETWEEN, driver_ended_s=NOW_S, checkpoint_s=NOW_S)

    assert planned(at(LATE_S - 1, seen(cluster(2), job)), aimed({}, job)) == ()
    assert planned(at(LATE_S, seen(cluster(2), job)), aimed({}, job)) == (
        Abandon(job_id="a", segment=0, role="checkpoint", reason="the checkpoint step did not come up within 300 s"),
    )


def test_a_new_driver_gets_a_document_of_the_next_generation() -> None:
    """A recreated driver pod has no document: the ready workers are published anew, counting on."""
    job = running(spec("a", (1, 2)), "n0", "n0", published=(), generation=3, acknowledged=0)

    assert planned(seen(cluster(2), job), aimed({"a": {"n0": 2}}, job)) == (publish(4, "w0", "w1"),)


def test_growth_claims_free_slots_through_the_open_gate() -> None:
    """New workers are numbered on from the highest of the segment, ended ones included."""
    job = running(spec("a", (1, 4)), "n0")
    ended = workers("n0", phase=WorkerPhase.ENDED, first=1)
    job = job.replace(workers=(*job.workers, *ended))
    target = aimed({"a": {"n0": 2, "n1": 1}}, job)
    grow = Grow(
        job_id="a",
        segment=0,
        workers=(NewWorker(id="w2", node="n0", gpus=1), NewWorker(id="w3", node="n1", gpus=1)),
    )

    assert planned(seen(cluster(2, 1), job), target) == (grow,)
    assert planned(seen(cluster(2, 1), job.replace(grow_gate_open=False)), target) == ()


def test_growth_takes_the_part_that_is_free() -> None:
    """One of two missing slots is free: it is claimed now, the other when it is free."""
    job, other = running(spec("a", (1, 4)), "n0"), running(spec("b"), "n1")
    leaving = other.replace(phase=JobPhase.STOPPING, stop_written=True)

    assert planned(seen(cluster(2, 1), job, leaving), aimed({"a": {"n0": 2, "n1": 1}}, job, leaving)) == (
        Grow(job_id="a", segment=0, workers=(NewWorker(id="w1", node="n0", gpus=1),)),
    )


def test_grown_workers_enter_the_document_when_they_are_ready() -> None:
    """Ready ones are added; one that still warms up does not keep them waiting."""
    job = running(spec("a", (1, 4)), "n0")
    grown = (*workers("n0", first=1), *workers("n0", first=2, phase=WorkerPhase.RUNNING))
    job = job.replace(workers=(*job.workers, *grown))

    assert planned(seen(cluster(4), job), aimed({"a": {"n0": 3}}, job)) == (publish(2, "w0", "w1"),)


def test_nothing_changes_before_the_last_document_is_acknowledged() -> None:
    """A smaller target waits for the driver's word on the last generation."""
    job = running(spec("a", (1, 4)), "n0", "n0", "n0", generation=2)

    assert planned(seen(cluster(4), job), aimed({"a": {"n0": 1}}, job)) == ()


def test_shrinking_drops_the_highest_numbers_of_the_node() -> None:
    """From 2+2 to 1+2: the second worker of n0 goes."""
    job = running(spec("a", (1, 4)), "n0", "n0", "n1", "n1")

    assert planned(seen(cluster(2, 2), job), aimed({"a": {"n0": 1, "n1": 2}}, job)) == (publish(2, "w0", "w2", "w3"),)


def test_a_lost_worker_is_dropped_even_from_an_unacknowledged_document() -> None:
    """A generation with a dead worker might never be acknowledged."""
    job = running(spec("a", (1, 4)), "n0", generation=2)
    lost = workers("n1", phase=WorkerPhase.ENDED, first=1)
    job = job.replace(workers=(*job.workers, *lost), published=("w0", "w1"))

    assert planned(seen(cluster(1, 1), job), aimed({"a": {"n0": 1, "n1": 1}}, job)) == (publish(3, "w0"),)


def test_a_job_that_lost_too_many_workers_is_stopped() -> None:
    """One of two is left, the minimum is two."""
    job = running(spec("a", (2, 2)), "n0", "n1")
    lost = replace(job.workers[1], phase=WorkerPhase.LEAVING)

    assert planned(
        seen(cluster(1, 1), job.replace(workers=(job.workers[0], lost))), aimed({"a": {"n0": 1, "n1": 1}}, job)
    ) == (
        Stop(
            job_id="a",
            segment=0,
            generation=2,
            reason="workers were lost: 1 GPU left, fewer than its minimum of 2",
        ),
    )


def test_a_dropped_worker_that_still_leaves_is_not_added_again() -> None:
    """The target grew back meanwhile: the leaving worker's slot is not free yet, and it is no fresh worker."""
    job = running(spec("a", (1, 2)), "n0")
    leaving = workers("n0", phase=WorkerPhase.LEAVING, first=1)

    assert planned(seen(cluster(2), job.replace(workers=(*job.workers, *leaving))), aimed({"a": {"n0": 2}}, job)) == ()


def test_a_grown_worker_that_is_late_is_evicted() -> None:
    """And its slot is claimed again only when it is seen free."""
    job = running(spec("a", (1, 2)), "n0")
    pending = workers("n0", phase=WorkerPhase.PENDING, first=1)
    observation = seen(cluster(2), job.replace(workers=(*job.workers, *pending)))

    assert planned(at(LATE_S, observation), aimed({"a": {"n0": 2}}, job)) == (
        Evict(job_id="a", segment=0, worker_id="w1", reason="not ready 300 s after its grant"),
    )


def test_a_fresh_worker_that_is_no_longer_wanted_is_evicted() -> None:
    """The target shrank before it came into the document."""
    job = running(spec("a", (1, 2)), "n0")
    fresh = workers("n1", first=1)

    assert planned(seen(cluster(1, 1), job.replace(workers=(*job.workers, *fresh))), aimed({"a": {"n0": 1}}, job)) == (
        Evict(job_id="a", segment=0, worker_id="w1", reason="no longer wanted: the job's target became smaller"),
    )


class TestMove:
    """A target on other nodes is reached in place where it can be."""

    def test_it_grows_at_the_new_place_first(self) -> None:
        """A free slot there is claimed; the old worker stays until the new one trains."""
        job = running(spec("a"), "n0")
        target = aimed({"a": {"n1": 1}}, job)
        new = workers("n1", first=1)
        arriving = job.replace(workers=(*job.workers, replace(new[0], phase=WorkerPhase.RUNNING)))
        both = job.replace(workers=(*job.workers, *new))
        trained = both.replace(published=("w0", "w1"), generation=2, acknowledged=2)

        assert planned(seen(cluster(1, 1), job), target) == (
            Grow(job_id="a", segment=0, workers=(NewWorker(id="w1", node="n1", gpus=1),)),
        )
        assert planned(seen(cluster(1, 1), arriving), target) == ()
        assert planned(seen(cluster(1, 1), both), target) == (publish(2, "w0", "w1"),)
        assert planned(seen(cluster(1, 1), trained), target) == (publish(3, "w1"),)

    def test_it_waits_for_room_that_is_coming(self) -> None:
        """The worker in its way already leaves."""
        job, other = running(spec("a"), "n0"), running(spec("b"), "n1")
        leaving = other.replace(phase=JobPhase.STOPPING, stop_written=True)

        assert planned(seen(cluster(1, 1), job, leaving), aimed({"a": {"n1": 1}}, job, leaving)) == ()

    def test_two_jobs_that_change_places_shrink_first_where_they_may(self) -> None:
        """The later one can spare a worker and gives way; the other then finds its slot free."""
        first, later = running(spec("a", (1, 2)), "n0", "n0"), running(spec("b", (1, 2), submitted_s=1.0), "n1", "n1")
        target = aimed({"a": {"n1": 2}, "b": {"n0": 2}}, first, later)

        assert planned(seen(cluster(2, 2), first, later), target) == (
            Publish(job_id="b", segment=0, generation=2, worker_ids=("w0",)),
        )

    def test_two_rigid_jobs_that_change_places_cost_one_checkpoint(self) -> None:
        """Nobody can spare a worker: the later one is stopped, the other waits for its room."""
        first, later = running(spec("a"), "n0"), running(spec("b", submitted_s=1.0), "n1")

        assert planned(seen(cluster(1, 1), first, later), aimed({"a": {"n1": 1}, "b": {"n0": 1}}, first, later)) == (
            Stop(
                job_id="b",
                segment=0,
                generation=2,
                reason="moves to n0 through a checkpoint: no room there for it to grow first, and none to spare",
            ),
        )


def test_an_ended_driver_s_gate_is_released() -> None:
    """No more workers; when the gate is answered there is nothing left to do."""
    job = running(spec("a"), "n0", phase=JobPhase.BETWEEN, driver_ready=False)
    target = aimed({"a": {"n0": 1}}, job)

    assert planned(seen(cluster(1), job), target) == (Release(job_id="a", segment=0),)
    assert planned(seen(cluster(1), job.replace(grow_gate_open=False)), target) == ()


@pytest.mark.parametrize(("ago_s", "evicted"), [(29.0, ()), (31.0, ("w0",))])
def test_workers_that_do_not_leave_with_their_driver_are_deleted(ago_s: float, evicted: tuple[str, ...]) -> None:
    """Agents whose driver died before it spoke to them would wait for it, with their GPUs, for ever."""
    job = running(spec("a"), "n0", phase=JobPhase.BETWEEN, driver_ready=False, grow_gate_open=False)
    world = seen(cluster(1), job)
    ended = job.replace(driver_ended_s=world.now_s - ago_s)

    found = planned(seen(cluster(1), ended), aimed({"a": {"n0": 1}}, ended))

    assert found == tuple(
        Evict(job_id="a", segment=0, worker_id=worker, reason="its driver ended 30 s ago") for worker in evicted
    )


@pytest.mark.parametrize("phase", [JobPhase.STARTING, JobPhase.RUNNING, JobPhase.STOPPING, JobPhase.BETWEEN])
@pytest.mark.parametrize(("ago_s", "evicted"), [(0.0, ()), (29.0, ()), (31.0, ("w1",))])
def test_a_worker_its_driver_has_done_with_is_deleted_if_it_stays(
    phase: JobPhase, ago_s: float, evicted: tuple[str, ...]
) -> None:
    """A frozen agent hears no goodbye: its GPUs would be held for as long as the job trains without it."""
    job = running(spec("a", (1, 2)), "n0", "n0", phase=phase, published=("w0",), grow_gate_open=False)
    left_s = NOW_S - ago_s if ago_s else 0.0
    leaving = replace(job.workers[1], phase=WorkerPhase.LEAVING, left_s=left_s)
    stuck = job.replace(workers=(job.workers[0], leaving), stop_written=phase is JobPhase.STOPPING)

    found = planned(seen(cluster(2), stuck), aimed({"a": {"n0": 1}}, stuck))

    assert found == tuple(
        Evict(job_id="a", segment=0, worker_id=worker, reason="done with by its driver 30 s ago, and still there")
        for worker in evicted
    )


@pytest.mark.parametrize(
    ("ago_s", "said"),
    [
        (9.0, ()),
        (11.0, ("workers ended: 0 GPUs left, fewer than its minimum of 1",)),
        (None, ("workers were lost: 0 GPUs left, fewer than its minimum of 1",)),
    ],
    ids=["the driver is about to end", "it does not", "a loss"],
)
def test_workers_that_said_goodbye_are_no_loss(ago_s: float | None, said: tuple[str, ...]) -> None:
    """Agents end a moment before their driver is seen to have succeeded: a success is not called a loss."""
    job = running(spec("a"), "n0")
    done_s = NOW_S - ago_s if ago_s else 0.0
    ended = job.replace(workers=(replace(job.workers[0], phase=WorkerPhase.ENDED, done_s=done_s),))

    found = planned(seen(cluster(1), ended), aimed({"a": {"n0": 1}}, ended))

    assert found == tuple(Stop(job_id="a", segment=0, generation=2, reason=why) for why in said)


def test_a_job_that_no_decision_has_seen_keeps_what_it_has() -> None:
    """Without a stored target (fenced first round) a running job is not stopped."""
    assert planned(seen(cluster(1), running(spec("a"), "n0")), Target()) == ()


def test_an_illegal_request_is_refused_in_its_users_words() -> None:
    """One refusal for each."""
    assert planned(seen(cluster(1), refused={"a": "min-gpus: expected >= 1, got 0"}), Target()) == (
        Refuse(job_id="a", reason="min-gpus: expected >= 1, got 0"),
    )


@pytest.mark.parametrize(
    ("ahead", "place"), [(0, "1"), (1, "2"), (2, "3-4"), (3, "3-4"), (4, "5-8"), (7, "5-8"), (8, "9-16")]
)
def test_the_queue_tells_its_place_in_buckets(ahead: int, place: str) -> None:
    """A place is rewritten only when its bucket changes."""
    before = [queued(spec(f"j{index}"), message="") for index in range(ahead)]
    last = queued(spec("z", (2, 2), submitted_s=9.0))
    told = Announce(job_id="z", message=f"queued: place {place}, waits for 2 GPUs")
    observation = seen(cluster(2), *before, last)

    assert planned(observation, aimed({}, *before, last))[-1] == told
    again = seen(cluster(2), *before, last.replace(message=told.message))
    assert told not in planned(again, aimed({}, *before, last))
