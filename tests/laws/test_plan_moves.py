"""Laws of moves: as a plan, and as rounds of ``diff`` on a world in which steps end in any order."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.converging.board import StepKind
from scheduler_core.converging.moves import Moves, moves
from scheduler_core.diff import diff
from scheduler_core.model.job import Job
from scheduler_core.model.params import Params
from scheduler_core.model.plan import Action, Grow, Publish, Stop
from tests.laws.moving import Task, can_be_done_in_place, tasks
from tests.unit.core.builders import aimed, cluster, running, spec
from tests.unit.core.world import World

#: A worker comes to its place, another goes; before that, somebody shrinks or steps aside, perhaps to a borrowed place.
STEPS_FOR_ONE = 6


def played(task: Task, plan: Moves) -> dict[str, Counter[str]]:
    """Make the steps in their order, each within what is free and above the minimum; where everybody stands then."""
    free = dict(task.free)
    at = {one.job_id: Counter(one.here) for one in task.stands}
    of = {one.job_id: one for one in task.stands}
    for step in plan.steps:
        size = of[step.job_id].gpus_per_worker
        sign = 1 if step.kind is StepKind.ADD else -1
        assert step.workers
        for node, count in step.workers.items():
            at[step.job_id][node] += sign * count
            free[node] -= sign * count * size
            assert count > 0
            assert free[node] >= 0, f"{node} is over-booked by {step}"
        fewest = 0 if step.kind is StepKind.RESTART else max(1, of[step.job_id].min_workers)
        assert at[step.job_id].total() >= fewest, f"below its minimum by {step}"
    return at


def check_plan(task: Task) -> Moves:
    """The laws of every plan."""
    plan = moves(task.stands, task.free)
    at = played(task, plan)
    for one in task.stands:
        if one.job_id in plan.restarts:
            assert not at[one.job_id].total()
        else:  # what it still misses it only grows by: nobody has to make way for that
            assert not at[one.job_id] - Counter(one.want), (one, plan)
    assert plan.unmoved == ()
    assert len(plan.steps) <= STEPS_FOR_ONE * task.num_missing + len(task.stands)
    return plan


@given(task=tasks(sizes=(1, 2, 4), most_nodes=5, most_jobs=8))
def test_a_plan_leads_to_the_target_and_keeps_to_what_is_free(task: Task) -> None:
    """Whatever the sizes: no node over, nobody below its minimum, nobody left where he is not to be."""
    check_plan(task)


@given(task=tasks())
def test_nobody_is_restarted_where_any_order_of_steps_would_do(task: Task) -> None:
    """Workers of one size: a search of all orders finds none where the plan has a restart."""
    if check_plan(task).restarts:
        assert not can_be_done_in_place(task)


@given(task=tasks(sizes=(1, 2)), order=st.randoms(use_true_random=False))
def test_the_same_task_gives_the_same_plan(task: Task, order: object) -> None:
    """Whatever the order in which nodes are named."""
    free = dict(reversed(task.free.items()))
    assert moves(task.stands, task.free) == moves(task.stands, free)


def world_of(task: Task) -> World:
    """A world where the jobs train as they stand, and the target is where they are to stand."""
    world = World(cluster=cluster(*task.gpus))
    for number, one in enumerate(task.stands):
        size = one.gpus_per_worker
        most = max(sum(one.here.values()), sum(one.want.values()))
        request = spec(
            one.job_id,
            (one.min_workers * size, most * size),
            gpus_per_worker=size,
            submitted_s=float(number),
        )
        job = running(request, *(node for node, count in sorted(one.here.items()) for _ in range(count)))
        world.jobs[job.id] = job
        world.log.append(Publish(job_id=job.id, segment=0, generation=1, worker_ids=job.published))
    world.target = aimed({one.job_id: one.want for one in task.stands}, *world.jobs.values())
    return world


def one_round(world: World) -> tuple[Action, ...]:
    """Observe, plan, enforce; the target stays."""
    observation = world.observe()
    plan = diff(observation, world.target, Params()).check(observation)
    for action in plan.actions:
        world.enforce(action)
    return plan.actions


def carried_out(world: World, picks: list[int]) -> list[Action]:
    """Rounds, with steps of the world between them in a drawn order, until nothing is left to do."""
    done: list[Action] = []
    for number in range(1_000):
        rests = not world.moves()
        actions = one_round(world)
        done += actions
        if rests and not actions:
            return done
        for _ in range(picks[number % len(picks)] % 5 or number % 2):
            if pending := world.moves():
                pending[picks[(number + 1) % len(picks)] % len(pending)]()
    raise AssertionError(f"no rest: {done[-20:]}")


def placed(job: Job) -> dict[str, int]:
    """Workers by node."""
    return dict(Counter(worker.node for worker in job.holding))


PICKS = st.lists(st.integers(1, 1_000), min_size=5, max_size=30)


def stops_until_there(task: Task, picks: list[int]) -> list[str]:
    """Rounds until the target is reached, after few steps; who went through a checkpoint, nobody twice."""
    world = world_of(task)
    done = carried_out(world, picks)

    there = {job_id: placed(job) for job_id, job in world.jobs.items()}
    assert there == {one.job_id: dict(one.want) for one in task.stands}
    changes = [action for action in done if isinstance(action, Grow | Publish)]
    assert len(changes) <= 2 * STEPS_FOR_ONE * task.num_missing + 2 * len(task.stands)
    stops = [action.job_id for action in done if isinstance(action, Stop)]
    assert sorted(stops) == sorted(set(stops))
    return stops


@given(task=tasks(), picks=PICKS)
def test_rounds_lead_to_the_target_whatever_the_order_of_what_happens(task: Task, picks: list[int]) -> None:
    """Nothing is remembered between rounds, and yet nobody is restarted beside those of the first plan."""
    assert len(stops_until_there(task, picks)) <= len(moves(task.stands, task.free).restarts)


@given(task=tasks(sizes=(1, 2, 4), most_nodes=5, most_jobs=8), picks=PICKS)
def test_rounds_lead_to_the_target_with_workers_of_several_sizes(task: Task, picks: list[int]) -> None:
    """There the planner is a heuristic, and rounds may find another way than the first plan."""
    stops_until_there(task, picks)
