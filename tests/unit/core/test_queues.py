"""Queues in whole decisions: what is lent, what comes back, and what jobs are told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from scheduler_core.cycle import decide
from scheduler_core.deciding.quota import Share, capped
from scheduler_core.deciding.reasons import reasons
from scheduler_core.errors import InvalidValue
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import Job
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.placement import Placement
from scheduler_core.model.ports import PolicyInput
from scheduler_core.model.queue import Queue
from scheduler_core.model.reason import Code, Reason
from scheduler_core.model.target import Target
from tests.unit.core.builders import NOW_S, asked, cluster, queued, running, spec

PARAMS = Params(policy="elastic_fifo", decide_interval_s=0.0)
LAB = Queue(name="lab", nominal_gpus={"": 2})
SHOP = Queue(name="shop", nominal_gpus={"": 2})


def world(*jobs: Job, queues: tuple[Queue, ...] = (LAB, SHOP), nodes: tuple[int, ...] = (2, 2)) -> Observation:
    """Two nodes of two GPUs, two queues that own two each."""
    return Observation(
        now_s=NOW_S,
        cluster=cluster(*nodes),
        jobs=jobs,
        queues={queue.name: queue for queue in queues},
    )


def gpus(observation: Observation, params: Params = PARAMS) -> Mapping[str, int]:
    """What the first decision gives."""
    return decide(observation, Target(), params).target.allocation.gpus_by_job


def test_idle_gpus_are_borrowed_and_go_back_at_the_next_decision() -> None:
    """A job alone has all four; when a job of the other queue comes, each has the two that are its queue's."""
    early = spec("a", (1, 4), queue="lab")
    alone = world(queued(early))
    first = decide(alone, Target(), PARAMS)
    assert first.target.allocation.gpus_by_job == {"a": 4}
    assert first.target.codes == {"a": ("granted", "borrows")}
    assert "queue lab borrows 2 GPUs, to be given back" in first.target.reasons["a"]

    both = world(running(early, "n0", "n0", "n1", "n1"), queued(spec("b", (2, 2), queue="shop", submitted_s=1.0)))
    second = decide(both, first.target, PARAMS)

    assert second.target.allocation.gpus_by_job == {"a": 2, "b": 2}


def test_the_borrower_that_is_last_in_order_is_cut() -> None:
    """Of three jobs of a queue that runs on four GPUs with two of its own, the last two lend theirs."""
    rows = [spec(name, (1, 1), queue="lab", submitted_s=float(place)) for place, name in enumerate("abcd")]
    holders = [running(one, f"n{place // 2}") for place, one in enumerate(rows)]
    back = queued(spec("z", (2, 2), queue="shop", submitted_s=9.0))

    assert gpus(world(*holders, back)) == {"a": 1, "b": 1, "z": 2}


def test_a_queue_borrows_no_more_than_it_may() -> None:
    """By a limit of one, by none at all, and told so."""
    job = queued(spec("a", (1, 4), queue="lab"))
    limited, mean = replace(LAB, borrow_limit={"": 1}), replace(LAB, borrows=False)

    assert gpus(world(job, queues=(limited, SHOP))) == {"a": 3}
    assert gpus(world(job, queues=(mean, SHOP))) == {"a": 2}

    wide = decide(world(queued(spec("a", (3, 4), queue="lab")), queues=(mean, SHOP)), Target(), PARAMS)
    assert wide.target.codes == {"a": ("waiting", "queue-limit")}
    assert wide.target.reasons["a"].endswith("(queue lab may have 2 GPUs, and its jobs have 0)")


def test_a_queue_without_gpus_of_its_own_has_what_is_left() -> None:
    """Its job came first and is of a higher class: the two of each of the others come before it all the same."""
    free = queued(spec("a", (1, 4), queue="default", priority=100))
    jobs = [queued(spec("b", (2, 2), queue="lab", submitted_s=5.0)), queued(spec("c", (1, 1), queue="shop"))]

    assert gpus(world(free, *jobs, queues=(LAB, SHOP, Queue(name="default")))) == {"a": 1, "b": 2, "c": 1}


def test_own_gpus_of_lost_nodes_are_shared_by_the_policy() -> None:
    """Two queues own four on nodes that have three now: who came first has its own, the other the rest."""
    lab, shop = queued(spec("b", (2, 2), queue="lab", submitted_s=1.0)), queued(spec("c", (1, 2), queue="shop"))

    assert gpus(world(lab, shop, nodes=(2, 1))) == {"b": 2, "c": 1}


def test_shares_are_per_type_and_of_a_type_that_is_not_named_none_is_owned() -> None:
    """A queue that owns two of type A and may not borrow gets none of type B."""
    queue = Queue(name="lab", nominal_gpus={"A": 2}, borrows=False)

    assert (queue.nominal("A"), queue.most("A"), queue.nominal("B"), queue.most("B")) == (2, 2, 0, 0)
    assert (LAB.most(""), Queue(name="x").most("A")) == (None, None)
    with pytest.raises(InvalidValue, match="queue 'x': expected GPUs >= 0 by type"):
        Queue(name="x", borrow_limit={"A": -1})


def test_jobs_that_stay_as_they_stand_count_against_their_queue() -> None:
    """Within the rate limit a running borrower keeps its four; its queue's next job may have nothing of the rest."""
    holder = running(spec("a", (1, 3), queue="lab"), "n0", "n0", "n1")
    waits = queued(spec("b", (1, 1), queue="lab", submitted_s=1.0))
    mean = replace(LAB, borrows=False)
    stored = Target(
        disturbed_s=NOW_S - 1,
        allocation=Allocation(gpus_by_job={"a": 3}),
        placement=Placement(workers_by_job={"a": {"n0": 2, "n1": 1}}),
        reasons={"a": "has 3 GPUs"},
    )

    found = decide(world(holder, waits, queues=(mean, SHOP)), stored, replace(PARAMS, decide_interval_s=30.0))

    assert found.target.allocation.gpus_by_job == {"a": 3}
    assert found.target.codes["b"] == ("waiting", "queue-limit")


def test_a_policy_that_serves_no_class_first_is_asked_about_the_others_only() -> None:
    """A foreign policy that gives all to the last job cannot take a queue's own GPUs away."""

    def last_takes_all(asked: PolicyInput) -> Allocation:
        last = max(asked.specs, key=lambda one: one.id)
        return Allocation(gpus_by_job={last.id: min(last.max_gpus, asked.capacity_gpus)})

    jobs = [spec("a", (1, 8), queue="lab"), spec("b", (1, 8), queue="shop")]

    found = capped(last_takes_all, asked(jobs, 6), {"lab": Share(own_gpus=2)})

    assert found.gpus_by_job == {"a": 2, "b": 4}


def test_reasons_name_free_gpus_by_type_and_tell_what_can_never_run() -> None:
    """Of every type, and of one; the note of a job that can never run is left out."""
    jobs = (queued(spec("a", (1, 1))), queued(spec("b", (1, 1), gpu_type="B")), queued(spec("c", (9, 9))))
    found = reasons(
        world(*jobs),
        Allocation(gpus_by_job={"a": 1}),
        Placement(workers_by_job={"a": {"n1": 1}}),
        {"a": (Reason(code=Code.SIZE_KEPT, text="kept"),), "c": (Reason(code=Code.RATE_LIMIT, text="soon"),)},
    )

    assert found["a"] == Reason(code=Code.GRANTED, text="has 1 GPU: 1 on n1 (kept)")
    assert (found["b"].code, found["c"].code) == (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE)
    assert "soon" not in found["c"].text
