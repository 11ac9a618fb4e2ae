"""What a cluster could leave on this computer, looked for without asking the cluster: the same before and after."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.machines import TUNABLES

FOLDERS = (
    "/run/netns",
    "/run/containerd",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
    "/etc/cni/net.d",
    "/usr/libexec/kubernetes",
)
CGROUPS = Path("/sys/fs/cgroup")


def new(before: Mapping[str, list[str]], after: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """What is there after and was not before, by kind; what is gone meanwhile was another cluster's."""
    found = {kind: list((Counter(after[kind]) - Counter(before[kind])).elements()) for kind in before}
    return {kind: things for kind, things in found.items() if things}


def traces() -> dict[str, list[str]]:
    """Everything of this computer that a cluster might have changed."""
    mounts = [" ".join(line.split()[3:5]) for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    rules = subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {
        "interfaces": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "routes": subprocess.run(["ip", "route"], capture_output=True, text=True, check=True).stdout.splitlines(),
        "rules": [line for line in rules if not line.startswith("#")],
        "mounts": sorted(mounts),
        "process namespaces": _process_namespaces(),
        "control groups": sorted(str(path) for path in CGROUPS.rglob("*") if path.is_dir()),
        "folders": [folder for folder in FOLDERS if Path(folder).exists()],
        "tunables": [(Path("/proc/sys") / name).read_text() for name in (*TUNABLES, "net/ipv4/ip_forward")],
    }


def _process_namespaces() -> list[str]:
    """Sets of processes that are apart from the others: each machine, each pod."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/ns/pid"):
        try:
            found.add(str(path.readlink()))
        except OSError:  # it has ended
            continue
    return sorted(found)
