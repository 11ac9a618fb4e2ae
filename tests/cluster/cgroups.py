"""The control groups of a cluster's pods: one for each node, in every hierarchy of this computer, or in the only one.

They are the kernel's, not a machine's: they stay when a machine loses its power, and have to be removed.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from tests.cluster.faults import ClusterError
from tests.cluster.places import Network
from tests.cluster.processes import DEATH_LIMIT_S, LOOK_AGAIN_S, wait_for_end

MOUNT = Path("/sys/fs/cgroup")
#: A group of processors has none until it is told; it may have its parent's.
TOLD = ("cpuset.cpus", "cpuset.mems")
SUBTREE = "cgroup.subtree_control"
#: A group shares the processors with this computer's other processes as if it were one of them. All pods together
#: weigh as much as two: they have their share beside others' work, and the API server, one process, still has its own.
WEIGHTS = {"cpu.shares": "2048", "cpu.weight": "200"}


def name(network: Network) -> str:
    """Path of the group under which all pods of a cluster are."""
    return f"/voda-cluster-{network.number}"


def make(path: str) -> None:
    """Make a control group in every hierarchy; what is there stays.

    Args:
        path: As the kubelet names it, from the root of the hierarchies.
    """
    for root in _roots():
        folder = root
        for word in path.strip("/").split("/"):
            _hand_down_controllers(folder)
            folder /= word
            folder.mkdir(exist_ok=True)
            for setting in TOLD if (folder / "cgroup.clone_children").exists() else ():
                if (folder / setting).exists() and not (folder / setting).read_text().strip():
                    (folder / setting).write_text((folder.parent / setting).read_text())
        for setting, weight in WEIGHTS.items():
            if (top := root / path.strip("/").split("/")[0] / setting).exists():
                top.write_text(weight)


def find(network: Network | None) -> list[Path]:
    """The folders of a cluster's control group."""
    if network is None:
        return []
    return [folder for folder in (root / name(network).lstrip("/") for root in _roots()) if folder.is_dir()]


def remove(network: Network | None) -> None:
    """Remove a cluster's control groups, whose processes have ended with their machines.

    Raises:
        ClusterError: One is still in use.
    """
    for folder in find(network):
        for inner, _, _ in sorted(os.walk(folder), reverse=True):
            for pid in (Path(inner) / "cgroup.procs").read_text().split():
                if not wait_for_end(int(pid), DEATH_LIMIT_S):
                    raise ClusterError(
                        f"{inner}: expected its processes to have ended with their machine, {pid} has not"
                    )
            _remove_empty(Path(inner))


def _roots() -> list[Path]:
    """The hierarchies: that of version 2 alone, or those of version 1."""
    if (MOUNT / "cgroup.controllers").exists():
        return [MOUNT]
    return [path for path in sorted(MOUNT.iterdir()) if (path / "cgroup.procs").exists() and not path.is_symlink()]


def _hand_down_controllers(folder: Path) -> None:
    """In version 2, let the groups in a folder have the controllers that it has."""
    if (folder / SUBTREE).exists() and (folder / "cgroup.controllers").exists():
        for controller in (folder / "cgroup.controllers").read_text().split():
            with contextlib.suppress(OSError):  # one that cannot be handed down is not needed
                (folder / SUBTREE).write_text(f"+{controller}")


def _remove_empty(folder: Path) -> None:
    """Remove an empty control group; the kernel may hold it a moment longer than its processes live."""
    for _ in range(round(DEATH_LIMIT_S / LOOK_AGAIN_S)):
        with contextlib.suppress(OSError):
            folder.rmdir()
        if not folder.exists():
            return
        time.sleep(LOOK_AGAIN_S)  # nothing tells when the kernel lets go of it
    raise ClusterError(f"{folder}: expected to be able to remove this control group, it is still in use")
