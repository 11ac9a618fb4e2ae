"""What a cluster leaves on this computer when its machines are gone: found, and removed.

Mounts, rules, pods and their interfaces are in the machines and end with them. What remains is the bridge, the pods'
control groups, an empty folder, and the cluster's own folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

from tests.cluster import network
from tests.cluster.faults import ClusterError
from tests.cluster.machines import PRIVATE_FOLDERS
from tests.cluster.nodes import cgroup
from tests.cluster.places import Home, Network
from tests.cluster.processes import DEATH_LIMIT_S, LOOK_AGAIN_S, Processes, wait_for_end

CGROUPS = Path("/sys/fs/cgroup")
MADE_FOLDERS = "made-folders"


def note_folders(home: Home) -> None:
    """Write down which folders a machine's boot will make on this computer, so that they can be removed again."""
    note = home.folder / MADE_FOLDERS
    if not note.exists():
        note.write_text("\n".join(folder for folder in PRIVATE_FOLDERS if not Path(folder).exists()))


def remove(home: Home, known: Network | None) -> None:
    """Remove all that is left of a cluster whose machines were ended; what is not there is no matter."""
    network.release(home.folder)
    for folder in _cgroups(known):
        _remove_cgroup(folder)
    note = home.folder / MADE_FOLDERS
    for made in note.read_text().split() if note.exists() else ():
        with contextlib.suppress(OSError):  # somebody else has put something there since
            Path(made).rmdir()
    if home.folder.exists():
        shutil.rmtree(home.folder)


def find(home: Home, known: Network | None) -> list[str]:
    """What is left of a cluster, in words; empty when it is gone."""
    processes = Processes(home)
    found = [f"process of {name}" for name in processes.recorded() if processes.is_alive(name)]
    found += [f"interface {name}" for name in network.owned(home.folder)]
    found += [f"control group {folder}" for folder in _cgroups(known)]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    found += [f"mount {line.split()[4]}" for line in mounts if line.split()[4].startswith(f"{home.folder}/")]
    return found + ([f"folder {home.folder}"] if home.folder.exists() else [])


def _cgroups(known: Network | None) -> list[Path]:
    """The cluster's control groups: one in each hierarchy, or one in the only one."""
    if known is None:
        return []
    name = cgroup(known).lstrip("/")
    return [path for path in (CGROUPS / name, *CGROUPS.glob(f"*/{name}")) if path.is_dir()]


def _remove_cgroup(folder: Path) -> None:
    """Remove a control group and those in it, when the last of their processes are gone."""
    for inner, _, _ in sorted(os.walk(folder), reverse=True):
        for pid in (Path(inner) / "cgroup.procs").read_text().split():
            if not wait_for_end(int(pid), DEATH_LIMIT_S):
                raise ClusterError(f"{inner}: expected its processes to have ended with their machine, {pid} has not")
        _remove_empty(Path(inner))


def _remove_empty(folder: Path) -> None:
    """Remove an empty control group; the kernel may hold it a moment longer than its processes live."""
    for _ in range(round(DEATH_LIMIT_S / LOOK_AGAIN_S)):
        with contextlib.suppress(OSError):
            folder.rmdir()
        if not folder.exists():
            return
        time.sleep(LOOK_AGAIN_S)  # nothing tells when the kernel lets go of it
    raise ClusterError(f"{folder}: expected to be able to remove this control group, it is still in use")
