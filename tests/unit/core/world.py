"""A world in memory: Observer, Enforcer and TargetStore whose pods move only when a test says so.

Each job has the states of the real one. ``moves()`` lists what could happen next without the scheduler (a pod gets
ready, a driver acknowledges, a segment ends); a test plays them in any order. After every change the world asserts
that no node is over-booked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from scheduler_core.errors import Conflict
from scheduler_core.model.cluster import Cluster
from scheduler_core.model.job import Job, JobPhase, JobSpec, Worker, WorkerFailure, WorkerPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.plan import (
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

_NEXT = {
    WorkerPhase.GRANTED: WorkerPhase.PENDING,
    WorkerPhase.PENDING: WorkerPhase.RUNNING,
    WorkerPhase.RUNNING: WorkerPhase.READY,
    WorkerPhase.LEAVING: WorkerPhase.ENDED,
}


@dataclass(kw_only=True)
class World:
    """Jobs on nodes.

    Attributes:
        cluster: The nodes.
        now_s: The clock.
        jobs: Live jobs by id.
        ended: How often each job ended.
        finished: Jobs whose current segment is their last.
        target: The stored target.
        log: Every action taken, in order.
        refusing: Jobs whose next action meets a conflict.
    """

    cluster: Cluster
    now_s: float = 1_000.0
    jobs: dict[str, Job] = field(default_factory=dict)
    ended: Counter[str] = field(default_factory=Counter)
    finished: set[str] = field(default_factory=set)
    target: Target = Target()
    log: list[Action] = field(default_factory=list)
    refusing: set[str] = field(default_factory=set)

    def observe(self) -> Observation:
        """All of it."""
        return Observation(now_s=self.now_s, cluster=self.cluster, jobs=tuple(self.jobs.values()))

    def load(self) -> Target:
        """The stored target."""
        return self.target

    def save(self, target: Target) -> None:
        """Store a target; a new decision's number is one higher, a fence or a quarantine is no decision."""
        assert target.decision - self.target.decision in (0, 1)
        self.target = target

    def submit(self, spec: JobSpec) -> None:
        """A new job at its gate."""
        self.jobs[spec.id] = Job(spec=spec, phase=JobPhase.QUEUED)

    def finish(self, job_id: str) -> None:
        """A job's driver ends, its training done."""
        self.finished.add(job_id)
        self._end_driver(job_id)

    def lose_worker(self, job_id: str, worker_id: str) -> None:
        """A worker's pod is gone."""
        self._set_worker(job_id, worker_id, WorkerPhase.ENDED)

    def fail_worker(self, job_id: str, worker_id: str) -> None:
        """A worker's pod fails; its Workflow's node says so from now on."""
        job = self.jobs[job_id]
        (worker,) = [one for one in job.workers if one.id == worker_id]
        failure = WorkerFailure(worker=worker_id, node=worker.node, started_s=worker.since_s, ended_s=self.now_s)
        self._change(job_id, failures=(*job.failures, failure))
        self.lose_worker(job_id, worker_id)

    def enforce(self, action: Action) -> None:
        """Apply one action as the real enforcers do: guarded by what it was decided on."""
        if action.job_id in self.refusing:
            self.refusing.discard(action.job_id)
            raise Conflict(f"job {action.job_id!r}: changed meanwhile")
        appliers: dict[type, Callable[..., None]] = {
            Grant: self._grant,
            Grow: self._grow,
            Publish: self._publish,
            Stop: self._stop,
            Release: self._release,
            Evict: lambda evict: self._set_worker(evict.job_id, evict.worker_id, WorkerPhase.ENDED),
            Refuse: self._refuse,
            Announce: lambda told: self._change(told.job_id, message=told.message),
        }
        appliers[type(action)](action)
        self.log.append(action)
        self._assert_not_overbooked()

    def moves(self) -> list[Callable[[], None]]:
        """Everything that could happen next without the scheduler, in a fixed order."""
        found: list[Callable[[], None]] = []
        for job in sorted(self.jobs.values(), key=lambda one: one.id):
            found += self._moves_of(job)
        return found

    def settle(self) -> None:
        """Let everything happen that can, until nothing can."""
        for _ in range(1_000):
            moves = self.moves()
            if not moves:
                return
            moves[0]()
        raise AssertionError("the world does not come to rest")

    def _moves_of(self, job: Job) -> list[Callable[[], None]]:
        found: list[Callable[[], None]] = [
            lambda worker=worker: self._set_worker(job.id, worker.id, _NEXT[worker.phase])  # type: ignore[misc]
            for worker in job.workers
            if worker.phase in _NEXT
        ]
        if job.phase is JobPhase.STARTING and not job.driver_ready:
            found.append(lambda: self._change(job.id, driver_ready=True))
        if job.phase is JobPhase.STARTING and job.published:
            found.append(lambda: self._change(job.id, phase=JobPhase.RUNNING))
        if job.phase is JobPhase.RUNNING and job.acknowledged < job.generation and self._can_acknowledge(job):
            found.append(lambda: self._acknowledge(job))
        if job.phase in (JobPhase.STARTING, JobPhase.RUNNING) and not job.grow_gate_open:
            found.append(lambda: self._change(job.id, grow_gate_open=True))
        if job.phase is JobPhase.STOPPING:
            found.append(lambda: self._end_driver(job.id))
        if job.phase is JobPhase.BETWEEN and not job.grow_gate_open and not job.holding:
            found.append(lambda: self._end_segment(job.id))
        return found

    def _can_acknowledge(self, job: Job) -> bool:
        alive = {worker.id for worker in job.workers if worker.phase is WorkerPhase.READY}
        return set(job.published) <= alive

    def _acknowledge(self, job: Job) -> None:
        """The first step at the new size: dropped workers drain."""
        self._change(job.id, acknowledged=job.generation)
        for worker in job.workers:
            if (
                worker.phase is WorkerPhase.READY
                and worker.id not in job.published
                and self._was_published(job, worker)
            ):
                self._set_worker(job.id, worker.id, WorkerPhase.LEAVING)

    def _was_published(self, job: Job, worker: Worker) -> bool:
        return any(
            isinstance(action, Publish)
            and (action.job_id, action.segment) == (job.id, job.segment)
            and worker.id in action.worker_ids
            for action in self.log
        )

    def _end_driver(self, job_id: str) -> None:
        self._change(job_id, phase=JobPhase.BETWEEN, driver_ready=False)
        for worker in self.jobs[job_id].holding:
            self._set_worker(job_id, worker.id, WorkerPhase.LEAVING)

    def _end_segment(self, job_id: str) -> None:
        if job_id in self.finished:
            del self.jobs[job_id]
            self.ended[job_id] += 1
            return
        job = self.jobs[job_id]
        self.jobs[job_id] = Job(spec=job.spec, phase=JobPhase.QUEUED, segment=job.segment + 1, failures=job.failures)

    def _grant(self, action: Grant) -> None:
        self._expect(action.job_id, JobPhase.QUEUED)
        workers = self._granted(action.workers)
        self._change(action.job_id, phase=JobPhase.STARTING, workers=workers, granted_s=self.now_s, grow_gate_open=True)

    def _grow(self, action: Grow) -> None:
        self._expect(action.job_id, JobPhase.RUNNING)
        job = self.jobs[action.job_id]
        assert job.grow_gate_open
        self._change(job.id, workers=(*job.workers, *self._granted(action.workers)), grow_gate_open=False)

    def _granted(self, workers: tuple[NewWorker, ...]) -> tuple[Worker, ...]:
        return tuple(
            Worker(id=new.id, node=new.node, gpus=new.gpus, phase=WorkerPhase.GRANTED, since_s=self.now_s)
            for new in workers
        )

    def _publish(self, action: Publish) -> None:
        job = self.jobs[action.job_id]
        assert job.driver_ready
        self._change(job.id, published=action.worker_ids, generation=action.generation)

    def _stop(self, action: Stop) -> None:
        job = self.jobs[action.job_id]
        assert job.driver_ready
        self._change(job.id, phase=JobPhase.STOPPING, stop_written=True, generation=action.generation)

    def _release(self, action: Release) -> None:
        self._expect(action.job_id, JobPhase.BETWEEN)
        self._change(action.job_id, grow_gate_open=False)

    def _refuse(self, action: Refuse) -> None:
        del self.jobs[action.job_id]

    def _expect(self, job_id: str, phase: JobPhase) -> None:
        assert self.jobs[job_id].phase is phase, self.jobs[job_id]

    def _change(self, job_id: str, **changes: object) -> None:
        self.jobs[job_id] = self.jobs[job_id].replace(**changes)

    def _set_worker(self, job_id: str, worker_id: str, phase: WorkerPhase) -> None:
        job = self.jobs[job_id]
        workers = tuple(replace(one, phase=phase) if one.id == worker_id else one for one in job.workers)
        self._change(job_id, workers=workers)

    def _assert_not_overbooked(self) -> None:
        held = self.observe().held_gpus()
        for node in self.cluster.nodes:
            assert held[node.name] <= node.gpus, (node, [job for job in self.jobs.values() if job.holding])
