"""What the processes of pods use of this machine: CPU and memory by pod, read from ``/proc``.

Every process of a pod carries the pod's mark in its environment. Processes of other people are passed over.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from voda_flows.local.launch import MARK

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_MARK: Final = f"{MARK}=".encode()
#: Fields of ``/proc/<pid>/stat`` behind the name: user and system time, its own and that of children it waited for.
_TIMES: Final = slice(11, 15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What processes use.

    Attributes:
        cpu_s: CPU seconds that they have had, with those of children that have ended; grows while they live.
        memory_bytes: What they hold of memory; what several share is counted once, in parts.
        processes: How many they are.
    """

    cpu_s: float = 0.0
    memory_bytes: int = 0
    processes: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            cpu_s=self.cpu_s + other.cpu_s,
            memory_bytes=self.memory_bytes + other.memory_bytes,
            processes=self.processes + other.processes,
        )


def usage_by_pod() -> dict[str, Usage]:
    """What every pod's processes use now, by the pod's uid; pods without processes are not in it."""
    found: dict[str, Usage] = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            uid = _pod_of(process)
            if uid:
                found[uid] = found.get(uid, Usage()) + _usage_of(process)
        except (OSError, ValueError, IndexError):  # it ended meanwhile, or is somebody else's
            continue
    return found


def _pod_of(process: Path) -> str:
    """The uid of the pod that a process belongs to, empty for none."""
    words = (process / "environ").read_bytes().split(b"\0")
    return next((word.removeprefix(_MARK).decode() for word in words if word.startswith(_MARK)), "")


def _usage_of(process: Path) -> Usage:
    """What one process uses."""
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    times = sum(int(field) for field in fields[_TIMES])
    return Usage(cpu_s=times / _TICKS_PER_S, memory_bytes=_memory_bytes(process), processes=1)


def _memory_bytes(process: Path) -> int:
    """Its share of the memory that it has mapped, where the kernel tells that; else all that it has mapped."""
    try:
        lines = (process / "smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return int((process / "statm").read_text().split()[1]) * _PAGE_BYTES
