"""One simulated job from its arrival to its end: what it has had, and how much of its work is done.

A segment of it has no pods that come up by and by: granted workers are warm at once, and what starting, growing,
shrinking and stopping cost is one stretch of standing still, until the document is acknowledged or the checkpoint is
written. A move costs what its two documents cost. Work done is never lost: a job goes on where it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from scheduler_core.model.job import Job, JobPhase, Worker, WorkerPhase
from scheduler_core.model.plan import NewWorker, Publish, Stop
from scheduler_core.model.resizes import ResizeCosts, ResizeKind
from scheduler_core.model.service import Service
from scheduler_core.simulate.record import JobRecord
from scheduler_core.simulate.scenario import SimulatedJob


class Life:
    """The state of one job.

    Args:
        simulated: What it is.

    Attributes:
        simulated: What it is.
        job: What the scheduler sees of it, service and clock aside.
        done: Samples trained until ``since_s``.
        speed: Samples/s since then, 0 while it stands still.
        speed_version: Counts changes of the speed.
        change: Counts documents, stops and ends of segments.
        ended_s: When its work was done, None before.
    """

    def __init__(self, simulated: SimulatedJob) -> None:
        self.simulated = simulated
        self.job = Job(spec=simulated.spec, phase=JobPhase.QUEUED)
        self.done = 0.0
        self.speed = 0.0
        self.speed_version = 0
        self.change = 0
        self.ended_s: float | None = None
        self._since_s = self._queued_s = simulated.spec.submitted_s
        self._service = Service()
        self._trained: tuple[str, ...] = ()
        self._still_s = 0.0
        self._segments = self._documents = self._stops = self._lost_workers = 0

    def seen(self, now_s: float) -> Job:
        """What the scheduler sees of it now."""
        service = self._service_at(now_s)
        return self.job.replace(attained_gpu_s=service.attained_gpu_s, service=service)

    def remaining(self, now_s: float) -> float:
        """Samples still to be trained."""
        return max(0.0, self.simulated.samples - self.done - self.speed * (now_s - self._since_s))

    def training_on(self) -> dict[str, int]:
        """GPUs by node with which it trains; none when one of its workers is gone."""
        workers = [worker for worker in self.job.holding if worker.id in self._trained]
        if len(workers) < len(self._trained):
            return {}
        gpus_by_node: Counter[str] = Counter()
        for worker in workers:
            gpus_by_node[worker.node] += worker.gpus
        return dict(sorted(gpus_by_node.items()))

    def go(self, now_s: float, speed: float) -> float | None:
        """Train at another speed from now on.

        Returns:
            When its work will be done, None if never at that speed.
        """
        self._advance(now_s)
        self.speed = speed
        self.speed_version += 1
        return now_s + self.remaining(now_s) / speed if speed > 0 else None

    def grant(self, now_s: float, workers: Collection[NewWorker]) -> None:
        """Begin a segment."""
        self._advance(now_s)
        if self.job.started_s is None or now_s > self._queued_s:
            self._service = replace(self._service, since_start_gpu_s=0.0, running_s=0.0)
        started_s = now_s if self.job.started_s is None else self.job.started_s
        self._segments += 1
        self.job = self.job.replace(
            phase=JobPhase.STARTING,
            workers=_warm(workers, now_s),
            started_s=started_s,
            granted_s=now_s,
            driver_ready=True,
            grow_gate_open=True,
        )

    def grow(self, now_s: float, workers: Collection[NewWorker]) -> None:
        """Workers that will train from the next document on."""
        self._advance(now_s)
        self.job = self.job.replace(workers=(*self.job.workers, *_warm(workers, now_s)))

    def publish(self, now_s: float, action: Publish, costs: ResizeCosts) -> float:
        """Stand still for a new document.

        Returns:
            When it is acknowledged.
        """
        self.go(now_s, 0.0)
        before = self.job.published
        kind = ResizeKind.GROW if set(before) < set(action.worker_ids) else ResizeKind.SHRINK
        self.change += 1
        self._documents += 1
        self.job = self.job.replace(published=action.worker_ids, generation=action.generation)
        gpus = len(action.worker_ids) * self.job.spec.gpus_per_worker
        return now_s + costs.seconds(kind if before else ResizeKind.START, gpus)

    def acknowledge(self, now_s: float) -> None:
        """Train by the newest document; workers that it dropped are gone."""
        self._advance(now_s)
        dropped = set(self._trained) - set(self.job.published)
        self._trained = self.job.published
        self.job = self.job.replace(phase=JobPhase.RUNNING, acknowledged=self.job.generation)
        self.end_workers(now_s, dropped)

    def stop(self, now_s: float, action: Stop, costs: ResizeCosts) -> float:
        """Stand still for a checkpoint; with the start of the next segment it costs what a restart costs.

        Returns:
            When it is written.
        """
        self.go(now_s, 0.0)
        self.change += 1
        self._stops += 1
        self.job = self.job.replace(phase=JobPhase.STOPPING, stop_written=True, generation=action.generation)
        if not self._trained:
            return now_s
        gpus = len(self._trained) * self.job.spec.gpus_per_worker
        return now_s + max(0.0, costs.seconds(ResizeKind.RESTART, gpus) - costs.seconds(ResizeKind.START, gpus))

    def queue_again(self, now_s: float) -> None:
        """End the segment: no GPUs any more, a gate for the next."""
        self.go(now_s, 0.0)
        self.change += 1
        self._trained, self._queued_s = (), now_s
        self._service = replace(self._service, waiting_s=0.0)
        self.job = Job(
            spec=self.job.spec,
            phase=JobPhase.QUEUED,
            segment=self.job.segment + 1,
            started_s=self.job.started_s,
            message=self.job.message,
        )

    def end(self, now_s: float) -> None:
        """All work is done."""
        self.go(now_s, 0.0)
        self.done, self.ended_s = self.simulated.samples, now_s

    def end_workers(self, now_s: float, worker_ids: Collection[str]) -> None:
        """These workers are gone; without one of those that train, training stands still."""
        if set(self._trained) & set(worker_ids):
            self.go(now_s, 0.0)
        self._advance(now_s)
        workers = (
            replace(worker, phase=WorkerPhase.ENDED) if worker.id in worker_ids else worker
            for worker in self.job.workers
        )
        self.job = self.job.replace(workers=tuple(workers))

    def lose_node(self, now_s: float, node: str) -> None:
        """All its workers on a node are gone."""
        lost = [worker.id for worker in self.job.holding if worker.node == node]
        self._lost_workers += len(lost)
        self.end_workers(now_s, lost)

    def record(self, now_s: float) -> JobRecord:
        """Its life, now that nothing more happens."""
        self._advance(now_s if self.ended_s is None else self.ended_s)
        return JobRecord(
            job_id=self.job.id,
            submitted_s=self.job.spec.submitted_s,
            started_s=self.job.started_s,
            ended_s=self.ended_s,
            segments=self._segments,
            documents=self._documents,
            stops=self._stops,
            lost_workers=self._lost_workers,
            attained_gpu_s=self._service.attained_gpu_s,
            still_s=self._still_s,
        )

    def _service_at(self, now_s: float) -> Service:
        passed_s, gpus = now_s - self._since_s, self.job.held_gpus
        if not passed_s:
            return self._service
        if not gpus:
            return replace(self._service, waiting_s=self._service.waiting_s + passed_s)
        return replace(
            self._service,
            attained_gpu_s=self._service.attained_gpu_s + gpus * passed_s,
            since_start_gpu_s=self._service.since_start_gpu_s + gpus * passed_s,
            running_s=self._service.running_s + passed_s,
        )

    def _advance(self, now_s: float) -> None:
        passed_s = now_s - self._since_s
        if self.job.held_gpus and not self.speed:
            self._still_s += passed_s
        self._service = self._service_at(now_s)
        self.done += self.speed * passed_s
        self._since_s = now_s


def _warm(workers: Collection[NewWorker], now_s: float) -> tuple[Worker, ...]:
    return tuple(
        Worker(id=new.id, node=new.node, gpus=new.gpus, role=new.role, phase=WorkerPhase.READY, since_s=now_s)
        for new in workers
    )
