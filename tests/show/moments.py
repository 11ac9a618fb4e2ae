"""When what happened to a job on a cluster, joined from all who know: watches, agents' logs, resize records, decisions.

Out: plain moments in seconds since the epoch, and what lies between them as rows. All clocks are one computer's.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from tests.cluster.installed import NAMESPACE, Installation
from tests.show.registry import Row, information, percentile
from voda_flows.objects import Object
from voda_flows.report.files import read_files
from voda_flows.report.history import history

#: ``10:18:43.550 agent warm seconds=35.02 ...``: when the imports were done, and what they took.
_WARM = re.compile(r"^(\d\d:\d\d:\d\d\.\d{3}) agent warm seconds=([0-9.]+)", re.MULTILINE)

Moments = Mapping[str, float]
#: What lies between two moments, by its name.
Parts = Mapping[str, tuple[str, str]]


def resizes(voda: Installation, uid: str) -> list[Object]:
    """The closed resize records of a Workflow's only job, all segments in order."""
    root = voda.volume / NAMESPACE / uid
    jobs = list(root.iterdir()) if root.is_dir() else []
    return [row for job in jobs for files in read_files(job).values() for row in files.resizes]


def decided_s(voda: Installation, job: str, action: str, between_s: tuple[float, float]) -> float:
    """When the last round began, between two moments, that took an action for a job.

    Args:
        voda: Where.
        job: ``<workflow>/<job-name>``.
        action: Its kind, as the scheduler's history names it.
        between_s: The moments; the round is known to have begun between them.
    """
    return _round_s(voda, {"job": job, "action": action}, between_s)


def published_s(voda: Installation, job: str, generation: int, before_s: float) -> float:
    """When the last round before a moment began that gave a job the document of a generation."""
    return _round_s(voda, {"job": job, "action": "Publish", "generation": generation}, (0.0, before_s))


def _round_s(voda: Installation, action: Object, between_s: tuple[float, float], limit_s: float = 60.0) -> float:
    """When the last such round began that took an action like this one; it is written down when it has ended.

    Raises:
        TimeoutError: No such round is known.
    """
    (after_s, before_s), end_s = between_s, time.monotonic() + limit_s
    while True:
        rows = [row for row in history(voda.store, NAMESPACE) if after_s < row["time_s"] < before_s]
        found = [row["time_s"] for row in rows if any(action.items() <= taken.items() for taken in row["actions"])]
        if found:
            return float(max(found))
        if time.monotonic() > end_s:
            raise TimeoutError(f"expected a round between {after_s} and {before_s} with {action} in the history")
        voda.store.wait(voda.store.revision(), 0.1)


def warm_of(voda: Installation, pod: str) -> tuple[float, float]:
    """When an agent's process began to import, and when it was warm."""
    found = _WARM.search(voda.log(pod))
    if found is None:
        raise AssertionError(f"pod {pod}: expected its agent to say that it is warm:\n{voda.log(pod)}")
    now = datetime.now().astimezone()
    said = datetime.strptime(found[1], "%H:%M:%S.%f").time()  # noqa: DTZ007 - a time of day, of this computer's zone
    warm = datetime.combine(now.date(), said, now.tzinfo)
    warm_s = (warm - timedelta(days=1) if warm > now else warm).timestamp()
    return warm_s - float(found[2]), warm_s


def part_rows(what: str, samples: Sequence[Moments], parts: Parts) -> Iterator[Row]:
    """The median and the p95 of each part."""
    for name, (begin, end) in parts.items():
        values = [sample[end] - sample[begin] for sample in samples]
        said = f"{percentile(values, 0.5):.2f} s, {percentile(values, 0.95):.2f} s"
        yield information(f"{what}, of which {name}", said)


def wait_for_record(voda: Installation, uid: str, kind: str, after_s: float = 0.0, limit_s: float = 180.0) -> Object:
    """Wait until a job has a resize record of a kind that was decided after a moment; the first of them.

    Raises:
        TimeoutError: It has none, in so long.
    """
    end_s = time.monotonic() + limit_s
    while not (found := [row for row in resizes(voda, uid) if row["kind"] == kind and row["decided_s"] > after_s]):
        if time.monotonic() > end_s:
            raise TimeoutError(f"expected a {kind} within {limit_s:.0f} s, found {resizes(voda, uid)}")
        voda.store.wait(voda.store.revision(), 0.1)  # a record is written without any object changing
    return found[0]
