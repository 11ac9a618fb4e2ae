"""The workers of jobs as people look at them: what each does, where, and how often it was started anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from voda_flows.control.reports import DriverStatus, Reports
from voda_flows.report.lives import Holding, JobLife, Segment
from voda_flows.report.times import short
from voda_flows.world import World

HEADERS: Final = ["WORKER", "STATE", "NODE", "SLOTS", "RESTARTS", "FOR"]
_STATES: Final = {"Pending": "waits for its node", "Running": "starting"}


def asked(world: World, lives: Iterable[JobLife]) -> dict[str, DriverStatus]:
    """What the drivers of jobs say of themselves now, by job id; ended ones and those that do not answer are left out.

    Args:
        world: Where the drivers are.
        lives: The jobs.
    """
    drivers = {}
    for life in lives:
        name = life.segments[-1].driver if life.segments and life.segments[-1].ended_s is None else ""
        pods = [pod for pod in world.store.list("Pod", life.namespace) if name and pod["metadata"]["name"] == name]
        for pod in pods:
            if (pod.get("status") or {}).get("podIP") and pod["status"].get("phase") == "Running":
                drivers[life.id] = (pod["metadata"]["uid"], pod["status"]["podIP"])
    if not drivers:
        return {}
    reports = Reports(fetch=world.fetch)
    try:
        said = reports.pull(dict(drivers.values()))
    finally:
        reports.close()
    return {job: said[uid] for job, (uid, _) in drivers.items() if uid in said}


def rows(life: JobLife, said: DriverStatus, now_s: float) -> list[list[str]]:
    """A line per worker of the job's last segment, those that have left it too.

    Args:
        life: The job.
        said: What its driver says.
        now_s: Seconds since the epoch.
    """
    last = life.segments[-1] if life.segments else None
    return [] if last is None else [_row(held, last, said, now_s) for held in last.holdings]


def _row(held: Holding, segment: Segment, said: DriverStatus, now_s: float) -> list[str]:
    """A worker's line."""
    restarts = said.restarts.get(held.worker)
    return [
        held.worker,
        _state(held, segment, said.states),
        held.node,
        ",".join(map(str, held.slots)),
        "" if restarts is None else str(restarts),
        short((now_s if held.end_s is None else held.end_s) - held.start_s),
    ]


def _state(held: Holding, segment: Segment, states: Mapping[str, str]) -> str:
    """What a worker does: as its driver says, else as its pod does."""
    if held.end_s is not None:
        has_left = segment.ended_s is None and held.phase == "Succeeded"
        return "left" if has_left else held.phase.lower()
    return states.get(held.worker) or _STATES.get(held.phase, held.phase.lower())
