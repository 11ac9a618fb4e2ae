"""What a cluster leaves on this computer when its machines are gone: found, and removed.

Mounts, rules, pods and their interfaces are in the machines and end with them. What remains is the bridge, the pods'
control groups, an empty folder, and the cluster's own folder.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from tests.cluster import cgroups, network
from tests.cluster.machines import PRIVATE_FOLDERS
from tests.cluster.places import Home, Network
from tests.cluster.processes import Processes

MADE_FOLDERS = "made-folders"


def note_folders(home: Home) -> None:
    """Write down which folders a machine's boot will make on this computer, so that they can be removed again."""
    note = home.folder / MADE_FOLDERS
    if not note.exists():
        note.write_text("\n".join(folder for folder in PRIVATE_FOLDERS if not Path(folder).exists()))


def remove(home: Home, known: Network | None) -> None:
    """Remove all that is left of a cluster whose machines were ended; what is not there is no matter."""
    network.release(home.folder)
    cgroups.remove(known)
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
    found += [f"control group {folder}" for folder in cgroups.find(known)]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    found += [f"mount {line.split()[4]}" for line in mounts if line.split()[4].startswith(f"{home.folder}/")]
    return found + ([f"folder {home.folder}"] if home.folder.exists() else [])
