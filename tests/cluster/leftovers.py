"""What a cluster leaves on this computer when its machines are gone: found, and removed.

Mounts, rules, pods and their interfaces are in the machines and end with them. What remains is the bridge, the pods'
control groups, an empty folder, and the cluster's own folder.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cluster import cgroups, network
from tests.cluster.machines import PRIVATE_FOLDERS
from tests.cluster.places import Home, Network
from tests.cluster.processes import Processes

MARK = ".made-for-voda-cluster"


def make_folders() -> None:
    """Make the folders that machines cover with their own, and mark those that were not there before."""
    for folder in map(Path, PRIVATE_FOLDERS):
        if not folder.exists():
            folder.mkdir(parents=True)
            (folder / MARK).touch()


def remove(home: Home, known: Network | None) -> None:
    """Remove all that is left of a cluster whose machines were ended; what is not there is no matter."""
    network.release(home.folder)
    cgroups.remove(known)
    if network.is_last():
        _remove_folders()
    if home.folder.exists():
        shutil.rmtree(home.folder)


def find(home: Home, known: Network | None) -> list[str]:
    """What is left of a cluster, in words; empty when it is gone."""
    processes = Processes(home)
    found = [f"process of {name}" for name in processes.recorded() if processes.is_alive(name)]
    found += [f"interface {name}" for name in network.owned(home.folder)]
    found += [f"control group {folder}" for folder in cgroups.find(known)]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    found += [f"mount {line.split()[4]}" for line in mounts if line.split()[4].startswith(f"{home.folder}/")]
    return found + ([f"folder {home.folder}"] if home.folder.exists() else [])


def _remove_folders() -> None:
    """Remove the folders that a cluster has made here; one that somebody else has used since stays.

    Not while there is another cluster: it would take the folder from its machines too.
    """
    for folder in map(Path, PRIVATE_FOLDERS):
        if folder.is_dir() and [path.name for path in folder.iterdir()] == [MARK]:
            (folder / MARK).unlink()
            folder.rmdir()
