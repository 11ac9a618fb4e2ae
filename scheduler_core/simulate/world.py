"""The world of a simulation: Observer, Enforcer and TargetStore in which only planned events happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from scheduler_core.errors import NotFound
from scheduler_core.model.job import JobPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.plan import Abandon, Action, Announce, Evict, Grant, Grow, Publish, Refuse, Release, Stop
from scheduler_core.model.target import Target
from scheduler_core.simulate.heap import Event, EventHeap, EventKind
from scheduler_core.simulate.life import Life
from scheduler_core.simulate.physics import speed_table
from scheduler_core.simulate.record import JobRecord
from scheduler_core.simulate.scenario import Scenario


class World:
    """See ``scheduler_core.model.ports``: ``Observer``, ``Enforcer`` and ``TargetStore``.

    The scheduler knows each job's speeds and remaining time exactly.

    Args:
        scenario: What is simulated.

    Attributes:
        now_s: The clock.
        heap: What is to come.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.now_s = 0.0
        self.heap = EventHeap()
        self._scenario = scenario
        self._coming = {job.spec.id: job for job in scenario.jobs}
        self._lives: dict[str, Life] = {}
        self._speeds: dict[str, tuple[float, ...]] = {}
        self._records: dict[str, JobRecord] = {}
        self._lost: set[str] = set()
        self._cluster = scenario.cluster
        self._target = Target()
        for loss in scenario.losses:
            self.heap.plan(loss.lost_s, EventKind.NODE, loss.node)
            if loss.back_s is not None:
                self.heap.plan(loss.back_s, EventKind.NODE, loss.node)
        for job in scenario.jobs:
            self.heap.plan(job.spec.submitted_s, EventKind.ARRIVAL, job.spec.id)

    def observe(self) -> Observation:
        """All of it, now."""
        return Observation(
            now_s=self.now_s,
            cluster=self._cluster,
            jobs=tuple(life.seen(self.now_s) for life in self._lives.values()),
            speed_by_job={job_id: self._speeds[job_id] for job_id in sorted(self._lives)},
            remaining_s_by_job=self._remaining_s_by_job(),
            costs=self._scenario.costs,
        )

    def load(self) -> Target:
        """The stored target."""
        return self._target

    def save(self, target: Target) -> None:
        """Replace it; nobody else writes."""
        self._target = target

    @property
    def is_idle(self) -> bool:
        """Whether no job is there."""
        return not self._lives

    def enforce(self, action: Action) -> None:
        """Apply one action.

        Raises:
            NotFound: The job is not there.
        """
        life = self._lives.get(action.job_id)
        if life is None:
            raise NotFound(f"job {action.job_id!r}: not there any more")
        match action:
            case Grant():
                life.grant(self.now_s, action.workers)
            case Grow():
                life.grow(self.now_s, action.workers)
            case Publish():
                acknowledged_s = life.publish(self.now_s, action, self._scenario.costs)
                self.heap.plan(acknowledged_s, EventKind.ACKNOWLEDGED, action.job_id, life.change)
            case Stop():
                stopped_s = life.stop(self.now_s, action, self._scenario.costs)
                self.heap.plan(stopped_s, EventKind.STOPPED, action.job_id, life.change)
            case Evict():
                life.end_workers(self.now_s, (action.worker_id,))
            case Announce():
                life.job = life.job.replace(message=action.message)
            case Abandon() | Refuse() | Release():
                # Drivers come up at once, every request is legal, and no segment waits for its gate to be closed.
                raise NotFound(f"job {action.job_id!r}: {type(action).__name__} finds nothing here")
            case _:
                assert_never(action)

    def happen(self, event: Event) -> None:
        """Let an event happen; one that was planned for an earlier state of its job is void."""
        self.now_s = event.time_s
        life = self._lives.get(event.subject)
        if event.kind is EventKind.NODE:
            self._turn_node(event.subject)
        elif event.kind is EventKind.ARRIVAL:
            self._arrive(event.subject)
        elif event.kind is EventKind.WAKE or life is None:
            return
        elif event.kind is EventKind.END and event.version == life.speed_version:
            life.end(self.now_s)
            self._records[event.subject] = life.record(self.now_s)
            del self._lives[event.subject]
        elif event.kind is EventKind.STOPPED and event.version == life.change:
            life.queue_again(self.now_s)
        elif event.kind is EventKind.ACKNOWLEDGED and event.version == life.change:
            life.acknowledge(self.now_s)
            self._go(life)

    def records(self) -> tuple[JobRecord, ...]:
        """Every job's record, in order of id."""
        unfinished = {job_id: life.record(self.now_s) for job_id, life in self._lives.items()}
        return tuple(record for _, record in sorted({**self._records, **unfinished}.items()))

    def _go(self, life: Life) -> None:
        """Train as fast as the job goes where it stands."""
        gpus_by_node = life.training_on()
        speed = self._scenario.physics.samples_per_s(life.job.spec, gpus_by_node) if gpus_by_node else 0.0
        ends_s = life.go(self.now_s, speed)
        if ends_s is not None:
            self.heap.plan(ends_s, EventKind.END, life.job.id, life.speed_version)

    def _arrive(self, job_id: str) -> None:
        life = self._lives[job_id] = Life(self._coming[job_id])
        self._speeds[job_id] = speed_table(self._scenario.physics, life.job.spec)

    def _turn_node(self, name: str) -> None:
        """A node is lost, or back if it was lost before."""
        self._lost ^= {name}
        nodes = tuple(node for node in self._scenario.cluster.nodes if node.name not in self._lost)
        self._cluster = replace(self._scenario.cluster, nodes=nodes)
        if name in self._lost:
            for life in self._lives.values():
                if life.job.phase is not JobPhase.QUEUED:
                    life.lose_node(self.now_s, name)

    def _remaining_s_by_job(self) -> Mapping[str, float]:
        alone = {job_id: self._speeds[job_id][1] for job_id in sorted(self._lives)}
        return {job_id: self._lives[job_id].remaining(self.now_s) / one for job_id, one in alone.items() if one > 0}
