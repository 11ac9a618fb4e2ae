"""What drivers that live say, asked through whatever leads to their pods: on a cluster, its API server.

In: a way to pods, and lives. Out: what their drivers answered. One that does not answer (it is just ending, the
account may not use the proxy, the network does not lead there) is old news: it is left out, and the Workflow tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol, runtime_checkable

from voda_flows.objects import Object
from voda_flows.report.files import SegmentFiles
from voda_flows.report.lives import JobLife
from voda_flows.workflows.parameters import DRIVER_PORT

_MAX_ASKED_AT_ONCE: Final = 16


@runtime_checkable
class PodProxy(Protocol):
    """Leads to HTTP servers in pods."""

    def ask_pod(self, key: tuple[str, str], port: int, path: str) -> Object | None:
        """One GET, tried once, for a short time.

        Args:
            key: Namespace and name of the pod.
            port: Its port.
            path: Path of the resource.

        Returns:
            The JSON object that it answered, None where there is none.
        """
        ...


def statuses(pods: PodProxy, lives: Iterable[JobLife]) -> dict[str, Object]:
    """What drivers say of themselves now (docs/contracts.md, section 5), by job id; all are asked at once.

    Args:
        pods: The way to them.
        lives: The jobs; those without a living driver are left out.
    """
    found = _asked(pods, [life for life in lives if _driver(life)], "status")
    return {life.id: said for life, said in found if said is not None}


def written(pods: PodProxy, lives: Iterable[JobLife]) -> dict[str, SegmentFiles]:
    """What the drivers of segments that go on have to tell of them, by job id.

    Args:
        pods: The way to them.
        lives: The jobs; those without a living driver are left out.
    """
    driven = [life for life in lives if _driver(life)]
    reports = {life.id: said or {} for life, said in _asked(pods, driven, "reports")}
    resizes = {life.id: said or {} for life, said in _asked(pods, driven, "status")}
    return {
        life.id: SegmentFiles(
            rows=_objects(reports[life.id].get("rows")), resizes=_objects(resizes[life.id].get("resizes"))
        )
        for life in driven
        if reports[life.id] or resizes[life.id]
    }


def _driver(life: JobLife) -> str:
    """The pod of the driver that lives, empty where none does."""
    last = life.segments[-1] if life.segments else None
    return last.driver if last is not None and last.trains and last.driver_ended_s is None else ""


def _asked(pods: PodProxy, lives: Sequence[JobLife], path: str) -> list[tuple[JobLife, Object | None]]:
    """What each driver answers."""
    if not lives:
        return []
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - local mode lists without it

    with ThreadPoolExecutor(min(len(lives), _MAX_ASKED_AT_ONCE), thread_name_prefix="drivers") as asking:
        answers = asking.map(lambda life: pods.ask_pod((life.namespace, _driver(life)), DRIVER_PORT, path), lives)
        return list(zip(lives, answers, strict=True))


def _objects(rows: Any) -> tuple[Object, ...]:  # noqa: ANN401 - any JSON
    """The JSON objects of a list."""
    return tuple(row for row in rows if isinstance(row, dict)) if isinstance(rows, list) else ()
