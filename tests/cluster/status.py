"""What runs of a cluster, as values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.faults import ClusterError
from tests.cluster.nodes import NODES, gpus_of, is_ready
from voda_flows.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStatus:
    """One part.

    Attributes:
        name: The part.
        pid: Its process, as this computer counts.
        started_s: When it was started, seconds since 1970.
        memory_bytes: Memory of its process; what it shares with others is counted by its share.
        state: In a word or two.
        is_well: Whether it is as it should be.
    """

    name: str
    pid: int | None
    started_s: float | None
    memory_bytes: int | None
    state: str
    is_well: bool


def read_status(cluster: Cluster) -> list[PartStatus]:
    """Every part of a cluster in the order of its start.

    Raises:
        ClusterError: There is no cluster.
    """
    known = _nodes(cluster)
    return [_status(cluster, name, known) for name in cluster.parts()]


def _nodes(cluster: Cluster) -> dict[str, Object]:
    try:
        return {node["metadata"]["name"]: node for node in cluster.api.get(NODES)["items"]}
    except ClusterError:  # the API server does not answer: its part says so
        return {}


def _status(cluster: Cluster, name: str, known: dict[str, Object]) -> PartStatus:
    pid = cluster.processes.pid(name)
    if pid is None:
        return PartStatus(name=name, pid=None, started_s=None, memory_bytes=None, state="not running", is_well=False)
    is_well, state = True, "runs"
    if name in known:
        is_well = is_ready(known[name])
        state = f"{'ready' if is_well else 'not ready'}, {gpus_of(known[name])} GPUs"
    started_s = (cluster.home.records / name).stat().st_mtime
    return PartStatus(
        name=name, pid=pid, started_s=started_s, memory_bytes=_memory_bytes(pid), state=state, is_well=is_well
    )


def _memory_bytes(pid: int) -> int | None:
    """Memory of a process, what it shares counted by its share."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), None)
