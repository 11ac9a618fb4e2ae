"""What is read of this machine's pods: their logs, which are files, and what ``/proc`` says of their processes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from voda_flows.local import logs
from voda_flows.local.loglines import LogFile
from voda_flows.local.processes import is_running
from voda_flows.local.usage import Usage, usage_by_pod
from voda_flows.objects import Object, seconds
from voda_flows.world import Used


class FileLogs:
    """``Logs`` of pods whose output goes to files."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def gone(self, workflow: Object, there: Sequence[Object]) -> Sequence[Object]:
        """See ``Logs.gone``: logs are put aside when their pods are deleted."""
        uids = {pod["metadata"]["uid"] for pod in there}
        return [pod for pod in logs.kept(self._home, workflow["metadata"]["uid"]) if pod["metadata"]["uid"] not in uids]

    def open(self, workflow: Object, pod: Object, *, tail: int | None, follow: bool) -> LogFile:  # noqa: ARG002 - files grow
        """See ``Logs.open``."""
        owner, uid = workflow["metadata"]["uid"], pod["metadata"]["uid"]
        born_s = seconds(pod["metadata"].get("creationTimestamp")) or 0.0
        return LogFile(lambda: logs.log_path(self._home, owner, uid), born_s, tail)

    def is_over(self) -> bool:
        """See ``Logs.is_over``."""
        return not is_running(self._home)

    def close(self) -> None:
        """See ``Logs.close``: files go with their process."""


class ProcMeter:
    """``Meter`` of this machine's processes."""

    def __init__(self) -> None:
        self._before: ProcReading | None = None

    def read(self) -> ProcReading:
        """See ``Meter.read``."""
        before = self._before
        self._before = ProcReading(
            at_s=time.monotonic(),
            by_pod=usage_by_pod(),
            before_s=before.at_s if before else None,
            before=before.by_pod if before else {},
        )
        return self._before


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcReading:
    """What pods used at a moment, and at the one before.

    Attributes:
        at_s: The moment, of the monotonic clock.
        by_pod: What each pod used then, by its uid.
        before_s: The moment before; None where there was none.
        before: What each used then.
    """

    at_s: float
    by_pod: Mapping[str, Usage]
    before_s: float | None
    before: Mapping[str, Usage]

    def of(self, pods: Sequence[Object]) -> Used:
        """See ``Reading.of``; a pod that is new counts from the look that saw it first."""
        uids = [str(pod["metadata"]["uid"]) for pod in pods]
        used = sum((self.by_pod.get(uid, Usage()) for uid in uids), Usage())
        return Used(cpu_percent=self._percent(uids), memory_bytes=used.memory_bytes, processes=used.processes)

    def _percent(self, uids: Iterable[str]) -> float | None:
        """CPU since the look before, in percent of one core."""
        if self.before_s is None or self.at_s <= self.before_s:
            return None
        used_s = sum(
            self.by_pod.get(uid, Usage()).cpu_s - self.before.get(uid, self.by_pod.get(uid, Usage())).cpu_s
            for uid in uids
        )
        return max(0.0, 100.0 * used_s / (self.at_s - self.before_s))
