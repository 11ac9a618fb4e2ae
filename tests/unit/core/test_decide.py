"""The decide loop: what may change when, what stays fixed, and that a fault harms nobody."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler_core.allocate.registry import GROUP, policy_named, policy_names
from scheduler_core.cycle import decide
from scheduler_core.errors import InvalidValue
from scheduler_core.model.cluster import Cluster, Node
from scheduler_core.model.decision import Decision, DecisionKind
from scheduler_core.model.job import Job, JobPhase, JobSpec, Progress
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.target import Target
from tests.unit.core.builders import NOW_S, cluster, left_out, queued, running, seen, spec

PARAMS = Params(decide_interval_s=30.0)


def gpus(decision: Decision) -> dict[str, int]:
    """GPUs by job of a decision that was not fenced."""
    assert decision.fault == ""
    return dict(decision.target.allocation.gpus_by_job)


def later(observation: Observation, seconds: float, *more: Job) -> Observation:
    """The same world so much later, with more jobs."""
    return replace(observation, now_s=observation.now_s + seconds, jobs=(*observation.jobs, *more))


def disturbing() -> tuple[Observation, Target]:
    """A job of 1..4 alone on four GPUs, and b of 2..2 just arrived: a decision that shrank the first."""
    alone = seen(cluster(4), running(spec("a", (1, 4)), "n0", "n0", "n0", "n0"))
    first = decide(alone, Target(), PARAMS)
    both = later(alone, 100.0, queued(spec("b", (1, 1), submitted_s=1.0)))
    second = decide(both, first.target, PARAMS)
    assert (second.kind, second.disturbed, gpus(second)) == (DecisionKind.FULL, ("a",), {"a": 3, "b": 1})
    return both, second.target


def test_the_same_input_is_not_decided_twice() -> None:
    """Nor is one that differs in progress, messages, documents or the clock only."""
    job = running(spec("a", (1, 4)), "n0")
    observation = seen(cluster(4), job)
    target = decide(observation, Target(), PARAMS).target
    trained = job.replace(progress=Progress(step=9), message="text", generation=2, attained_gpu_s=5.0)

    assert decide(observation, target, PARAMS) == Decision(target=target, kind=DecisionKind.KEPT)
    moved_on = seen(cluster(4), trained, now_s=NOW_S + 3_600)
    assert decide(moved_on, target, PARAMS) == Decision(target=target, kind=DecisionKind.KEPT)


def test_a_scheduler_without_a_target_takes_over_what_runs() -> None:
    """What a job holds is where it stands: nothing moves, nobody is disturbed."""
    observation = seen(cluster(2, 2), running(spec("a", (2, 2)), "n0", "n1"))

    decision = decide(observation, Target(), PARAMS)

    assert decision.disturbed == ()
    assert decision.target.placement.workers_by_job == {"a": {"n0": 1, "n1": 1}}


def test_within_the_interval_only_waiting_jobs_are_served() -> None:
    """A job arrives 5 s after a disturbing decision: it gets what nobody was promised, the others stay."""
    both, target = disturbing()
    full = later(both, 5.0, queued(spec("c", (1, 1), submitted_s=2.0)))
    grown = replace(full, cluster=cluster(5))

    in_full = decide(full, target, PARAMS)
    in_grown = decide(grown, target, PARAMS)

    assert (in_full.kind, gpus(in_full)) == (DecisionKind.WAITING, {"a": 3, "b": 1})
    assert dict(in_full.target.reasons) == {
        "a": "has 3 GPUs of 1..4: 3 on n0",
        "b": "has 1 GPU: 1 on n0",
        "c": "waits for 1 GPU: 0 of 4 are not given to jobs before it "
        "(running jobs are disturbed at most once in 30 s)",
    }
    assert (in_grown.kind, gpus(in_grown)) == (DecisionKind.WAITING, {"a": 3, "b": 1, "c": 1})


def test_the_decision_owed_is_made_when_the_interval_is_over() -> None:
    """Kept until then, although the input is the one of the last decision; then every job is decided on."""
    both, target = disturbing()
    third = later(both, 5.0, queued(spec("c", (1, 1), submitted_s=2.0)))
    waiting = decide(third, target, PARAMS).target

    assert decide(later(third, 24.9), waiting, PARAMS).kind is DecisionKind.KEPT
    due = decide(later(third, 25.0), waiting, PARAMS)
    assert (due.kind, gpus(due), due.disturbed) == (DecisionKind.FULL, {"a": 2, "b": 1, "c": 1}, ("a",))


def test_a_decision_that_disturbs_nobody_starts_no_interval() -> None:
    """Jobs that arrive on free GPUs one after the other are each served by a full decision."""
    first = seen(cluster(4), queued(spec("a", (1, 1))))
    one = decide(first, Target(), PARAMS)
    two = decide(later(first, 1.0, queued(spec("b", (1, 1)))), one.target, PARAMS)

    assert (one.kind, two.kind, two.target.disturbed_s) == (DecisionKind.FULL, DecisionKind.FULL, 0.0)
    assert gpus(two) == {"a": 1, "b": 1}


def test_what_is_promised_is_not_given_twice() -> None:
    """Within the interval, GPUs that a running job is about to give up belong to the job they were taken for."""
    both, target = disturbing()
    stopping = both.jobs_by_id["a"]
    assert stopping.held_gpus == 4  # it has not shrunk yet, and b has not been granted yet

    decision = decide(later(both, 1.0, queued(spec("c", (1, 1), submitted_s=2.0))), target, PARAMS)

    assert gpus(decision) == {"a": 3, "b": 1}


@pytest.mark.parametrize("phase", [JobPhase.STOPPING, JobPhase.BETWEEN, JobPhase.QUEUED])
def test_a_job_on_its_way_to_its_next_segment_keeps_its_claim(phase: JobPhase) -> None:
    """Stopped for a move or after a loss, it has its target while others wait."""
    job = running(spec("a", (2, 2)), "n0", "n0")
    target = decide(seen(cluster(2), job), Target(), PARAMS).target
    underway = job.replace(phase=phase, workers=(), published=())

    decision = decide(seen(cluster(2), underway, queued(spec("b", submitted_s=1.0))), target, PARAMS)

    assert gpus(decision) == {"a": 2}


def test_an_ended_job_leaves_the_target() -> None:
    """Its GPUs go to who waits, at once."""
    job, waiting = running(spec("a", (2, 2)), "n0", "n0"), queued(spec("b", (2, 2), submitted_s=1.0))
    target = decide(seen(cluster(2), job, waiting), Target(), PARAMS).target
    ended = job.replace(phase=JobPhase.ENDED, workers=())

    assert gpus(decide(seen(cluster(2), ended, waiting), target, PARAMS)) == {"b": 2}
    assert gpus(decide(seen(cluster(2), waiting), target, PARAMS)) == {"b": 2}


def test_a_pinned_job_is_neither_preempted_nor_grown() -> None:
    """A job of higher class waits; two more GPUs change nothing for the pinned one."""
    pinned = running(spec("a", (1, 4)), "n0", "n0", pinned=True)
    high = queued(spec("b", (2, 2), priority=100))

    assert gpus(decide(seen(cluster(3), pinned, high), Target(), PARAMS)) == {"a": 2}
    assert gpus(decide(seen(cluster(4), pinned), Target(), PARAMS)) == {"a": 2}


def test_a_held_job_takes_no_gpus_and_keeps_those_with_which_it_runs() -> None:
    """Its Workflow is suspended: at its gate it claims nothing, running it neither grows nor goes."""
    waits = queued(spec("a", (2, 2)), held=True).replace(phase=JobPhase.BETWEEN)
    runs = running(spec("b", (1, 4), submitted_s=1.0), "n0", held=True)
    other = queued(spec("c", (1, 4), submitted_s=2.0))

    decision = decide(seen(cluster(4), waits, runs, other), Target(), PARAMS)

    assert gpus(decision) == {"b": 1, "c": 3}
    assert gpus(decide(seen(cluster(4), waits.replace(held=False), runs, other), decision.target, PARAMS)) == {
        "a": 2,
        "b": 1,
        "c": 1,
    }


def test_gpus_of_pods_on_their_way_out_are_promised() -> None:
    """A segment's last pods are still ending: the next segment keeps its place on that node."""
    job = queued(spec("a", (2, 2)))

    assert gpus(decide(seen(cluster(2, leaving_gpus=2), job), Target(), PARAMS)) == {"a": 2}


def test_who_runs_stays_when_foreign_pods_take_what_was_promised() -> None:
    """Within the interval: the promise falls, although its job is of higher class; the running job is not touched."""
    runs, promised = running(spec("a"), "n0"), queued(spec("b", priority=100))
    target = replace(decide(seen(cluster(2), runs, promised), Target(), PARAMS).target, disturbed_s=NOW_S)

    decision = decide(seen(cluster(2, foreign_gpus=1), runs, promised, now_s=NOW_S + 1), target, PARAMS)

    assert (decision.kind, gpus(decision), decision.disturbed) == (DecisionKind.WAITING, {"a": 1}, ())


def test_a_cordoned_node_keeps_its_workers_and_takes_no_others() -> None:
    """The job on it stays; the other job's growth and the waiting job do not go there."""
    nodes = Cluster(nodes=(Node(name="n0", gpus=4, schedulable=False), Node(name="n1", gpus=2)))
    here, there = running(spec("a", (1, 4)), "n0", "n0"), running(spec("b", (1, 4), submitted_s=1.0), "n1")

    decision = decide(seen(nodes, here, there, queued(spec("c", submitted_s=2.0))), Target(), PARAMS)

    assert decision.target.placement.workers_by_job == {"a": {"n0": 2}, "b": {"n1": 1}, "c": {"n1": 1}}


def test_a_job_whose_node_went_is_decided_anew_within_the_interval() -> None:
    """The world disturbed it already; the others stay as they are."""
    jobs = running(spec("a", (1, 2)), "n0", "n0"), running(spec("b", (2, 2), submitted_s=1.0), "n1", "n1")
    target = replace(decide(seen(cluster(2, 2), *jobs), Target(), PARAMS).target, disturbed_s=NOW_S)
    left = Cluster(nodes=(Node(name="n0", gpus=2), Node(name="n2", gpus=2)))

    decision = decide(seen(left, *jobs, now_s=NOW_S + 1), target, PARAMS)

    assert decision.kind is DecisionKind.WAITING
    assert decision.target.placement.workers_by_job == {"a": {"n0": 2}, "b": {"n2": 2}}


def test_a_worker_size_that_finds_no_node_leaves_its_gpus_to_others() -> None:
    """Workers of two GPUs on nodes of three: one a node; the elastic job has two of them, the rest goes to b."""
    wide = queued(spec("a", (2, 6), gpus_per_worker=2))
    small = queued(spec("b", (1, 4), submitted_s=1.0))

    decision = decide(seen(cluster(3, 3), wide, small), Target(), PARAMS)

    assert gpus(decision) == {"a": 4, "b": 2}
    assert decision.target.placement.workers_by_job == {"a": {"n0": 1, "n1": 1}, "b": {"n0": 1, "n1": 1}}


def test_types_are_separate_pools() -> None:
    """A typed job waits for its type; one that names none goes where most is left, and stays where it is."""
    nodes = Cluster(
        nodes=(Node(name="n0", gpus=1, gpu_type="A"), Node(name="n1", gpus=2, gpu_type="B"), Node(name="n2", gpus=1))
    )
    typed = queued(spec("a", (2, 2), gpu_type="A"))
    free = queued(spec("b", (1, 2), submitted_s=1.0))
    unknown = queued(spec("c", gpu_type="H"))
    stays = running(spec("d", (1, 1), submitted_s=2.0), "n0")

    decision = decide(seen(nodes, typed, free, unknown, stays), Target(), PARAMS)

    assert decision.target.placement.workers_by_job == {"b": {"n1": 2}, "d": {"n0": 1}}
    assert decision.target.reasons["c"] == (
        "is unschedulable: it needs 1 GPU of type H at least, and the cluster has 0: add nodes or lower min-gpus"
    )


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (spec("a", (9, 9)), "it needs 9 GPUs at least, and the cluster has 8: add nodes or lower min-gpus"),
        (
            spec("a", (4, 8), gpus_per_worker=4),
            (
                "each of its workers needs 4 GPUs on one node, and the nodes (3, 3, 2 GPUs) have room for 0 of at "
                "least 1: add nodes or lower gpus-per-worker"
            ),
        ),
    ],
    ids=["more than all", "wider than every node"],
)
def test_a_job_that_can_never_run_waits_and_is_told_so(request_: JobSpec, says: str) -> None:
    """Whether or not the cluster is idle; those behind it are served."""
    other = running(spec("b", (1, 8), submitted_s=1.0), "n0")

    decision = decide(seen(cluster(3, 3, 2), queued(request_), other), Target(), PARAMS)

    assert decision.target.reasons["a"] == f"is unschedulable: {says}"
    assert gpus(decision) == {"b": 8}


def test_a_maximum_above_the_cluster_is_clipped() -> None:
    """It gets all there is, and what it could have beyond is no reason to fail."""
    decision = decide(seen(cluster(2, 2), queued(spec("a", (1, 64)))), Target(), PARAMS)

    assert gpus(decision) == {"a": 4}


def test_a_quarantined_job_stays_as_it_is_and_the_others_go_on() -> None:
    """Running, it keeps its GPUs; waiting, it gets none; the reason is told."""
    observation = seen(cluster(4), running(spec("a", (1, 4)), "n0"), queued(spec("b")), queued(spec("c", (1, 4))))
    out = {"a": left_out(observation, "a", "policy raised ValueError"), "b": left_out(observation, "b", "too")}
    target = Target(policy=PARAMS.policy, quarantined=out)

    decision = decide(observation, target, PARAMS)

    assert gpus(decision) == {"a": 1, "c": 3}
    assert decision.target.reasons["a"] == (
        "has 1 GPU of 1..4: 1 on n0 (left out of decisions: policy raised ValueError)"
    )


def test_policies_have_names() -> None:
    """Ours are always there; another name is refused with those that exist; packages offer more by an entry point."""
    assert policy_names() == (
        *("afs_l", "elastic_fifo", "elastic_srjf", "elastic_tiresias", "ffdl", "fifo", "srjf", "tiresias"),
    )
    assert GROUP == "voda.policies"
    with pytest.raises(InvalidValue, match=r"expected one of afs_l, elastic_fifo, .*, tiresias, got 'lottery'"):
        policy_named("lottery")
