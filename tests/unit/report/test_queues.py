"""What queues have and wait for, by type, from hand-made lives."""

from __future__ import annotations

from scheduler_core.model.queue import Queue
from tests.unit.report.world import Building
from voda_flows.report.lives import lives
from voda_flows.report.queues import QueueUse, queue_uses

TYPES = {"n0": "a100", "n1": "v100"}


def use(queue: str, gpu_type: str, **changes: object) -> QueueUse:
    """A row; what is not named is nothing."""
    settled: dict[str, object] = {
        "nominal_gpus": None,
        "most_gpus": None,
        "used_gpus": 0,
        "waiting_jobs": 0,
        "waiting_gpus": 0,
    }
    return QueueUse(queue=queue, gpu_type=gpu_type, **{**settled, **changes})  # type: ignore[arg-type]  # of a test


def test_used_borrowed_and_waiting_are_counted_by_queue_and_type() -> None:
    """Who names no type waits for any; a queue that is in no setting any more is shown as jobs name it."""
    runs = Building(name="runs", uid="1", asked={"queue": "lab"}).grant(1, ("w0", "n0"), ("w1", "n0"))
    waits = Building(name="waits", uid="2", asked={"queue": "lab", "min-gpus": "3", "max-gpus": "3"})
    typed = Building(name="typed", uid="3", asked={"queue": "gone", "gpu-type": "v100"})
    found = [life for job in (runs, waits, typed) for life in lives(job.workflow(), job.pods.values())]
    queues = {
        "lab": Queue(name="lab", nominal_gpus={"a100": 1}, borrow_limit={"a100": 2}),
        "default": Queue(name="default"),
    }

    rows = queue_uses(queues, found, TYPES)

    assert rows == (
        use("default", "a100"),
        use("default", "v100"),
        use("gone", "v100", waiting_jobs=1, waiting_gpus=1),
        use("lab", "a100", nominal_gpus=1, most_gpus=3, used_gpus=2),
        use("lab", "any", waiting_jobs=1, waiting_gpus=3),
        use("lab", "v100", nominal_gpus=0),
    )
    assert [row.borrowed_gpus for row in rows] == [0, 0, 0, 1, 0, 0]


def test_where_there_is_one_type_everybody_waits_for_it() -> None:
    """Nodes without a label have the empty type."""
    waits = Building(name="waits", uid="2")

    rows = queue_uses({}, lives(waits.workflow(), ()), {"n0": ""})

    assert rows == (use("default", "", waiting_jobs=1, waiting_gpus=1),)
