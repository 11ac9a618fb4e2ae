"""Virtual machines: each is a set of namespaces (files, network, processes, name) with one process that holds it open.

What runs in a machine sees this computer's files, but its mounts, interfaces, rules and processes are the machine's
own: when the holder is killed the kernel ends every process in it and takes all of that away, as when a computer loses
its power. The host is left with one bridge and one end of a cable for each machine.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.faults import ClusterError
from tests.cluster.places import MACHINE_FOLDER, NODE_FOLDER, Network
from tests.cluster.processes import PATH, Part, Processes, children

HOLDER = "pause"
BOOTED = "run/booted"
#: The kubelet sets these for its host. They are not its to set here: each machine has files of its own in their place.
TUNABLES = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
#: Folders that programs fill whatever they are told; each machine has an empty one in its place.
PRIVATE_FOLDERS = ("/run", "/var/log", "/var/lib/cni")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One virtual machine.

    Attributes:
        name: Its host name.
        address: On the cluster's bridge.
        folder: What it has on disk; in the machine it is ``NODE_FOLDER``.
        pods: The network of its pods; none where no pods run.
    """

    name: str
    address: str
    folder: Path
    pods: str | None = None


def part_of(machine: Machine, holder: str, processes: Processes) -> Part:
    """The process that holds a machine open."""
    unshare = ("unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
    return Part(
        name=machine.name,
        command=(*unshare, "--propagation", "private", holder),
        machine=None,
        is_ready=lambda: holder_pid(machine.name, processes) is not None,
    )


def holder_pid(name: str, processes: Processes) -> int | None:
    """The process whose namespaces are the machine's; None until they are made."""
    pid = processes.pid(name)
    if pid is None:
        return None
    try:
        is_made = Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip() == HOLDER
        # Never take this computer for a machine: what is mounted in one must not be mounted here.
        is_own = Path(f"/proc/{pid}/ns/mnt").readlink() != Path("/proc/self/ns/mnt").readlink()
    except OSError:
        return None
    return pid if is_made and is_own else None


def is_booted(name: str, processes: Processes) -> bool:
    """Whether a machine runs and was made ready."""
    pid = holder_pid(name, processes)
    return pid is not None and Path(f"/proc/{pid}/root/{BOOTED}").exists()


def boot(machine: Machine, network: Network, shown: Iterable[Path], processes: Processes) -> None:
    """Make a machine ready whose holder runs: cable, folders, addresses, the way to the API server.

    Args:
        machine: The machine.
        network: The cluster's network.
        shown: Folders that pods are to see besides the root file system.
        processes: Where its holder is known.

    Raises:
        ClusterError: Something could not be done; with what was said.
    """
    pid = holder_pid(machine.name, processes)
    if pid is None:
        raise ClusterError(f"machine {machine.name}: expected it to run, it does not; run `make cluster`")
    machine.folder.mkdir(parents=True, exist_ok=True)
    port = network.port(machine.name)
    with contextlib.suppress(ClusterError):  # the last one's, where the machine lost its power
        run("ip", "link", "delete", port)
    run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    run("ip", "link", "set", port, "master", network.bridge, "up")
    inside(machine.name, processes, script=boot_script(machine, network, shown))


def boot_script(machine: Machine, network: Network, shown: Iterable[Path]) -> str:
    """What is done inside a machine to make it ready, as a shell script."""
    root_device = Path("/").stat().st_dev
    more = [path for path in shown if path.stat().st_dev != root_device]
    redirect = f"-d {network.api_service} -p tcp --dport 443 -j DNAT --to-destination {network.control}:6443"
    lines = [
        "set -eu",
        f"hostname {machine.name}",
        *(f"mount -t tmpfs -o mode=755 tmpfs {folder}" for folder in PRIVATE_FOLDERS),
        f"mkdir -p {MACHINE_FOLDER} {NODE_FOLDER} /run/lock /run/tunables",
        f"mount --bind '{machine.folder}' {NODE_FOLDER}",
        f"mount --bind / {MACHINE_FOLDER}",
        *(f"mount --bind '{path}' '{MACHINE_FOLDER}{path}'" for path in more),
        *(f"mount -o remount,ro,bind '{MACHINE_FOLDER}{path}'" for path in ["", *more]),
        *(
            f"if [ -e /proc/sys/{name} ]; then cat /proc/sys/{name} >/run/tunables/{name.replace('/', '.')}; "
            f"mount --bind /run/tunables/{name.replace('/', '.')} /proc/sys/{name}; fi"
            for name in TUNABLES
        ),
        "ip link set lo up",
        f"ip address add {machine.address}/24 dev eth0",
        "ip link set eth0 up",
        f"ip route add default via {network.host}",
        "echo 1 >/proc/sys/net/ipv4/ip_forward",
        *(f"iptables -w -t nat -A {chain} {redirect}" for chain in ("PREROUTING", "OUTPUT")),
        f"touch /{BOOTED}",
    ]
    return "\n".join(lines)


def connect(machines: Iterable[Machine], network: Network, processes: Processes) -> None:
    """Tell every running machine, and this computer, the ways to all pods."""
    known = list(machines)
    for machine in known:
        if is_booted(machine.name, processes):
            inside(machine.name, processes, script=_routes(other for other in known if other != machine))
    run("sh", "-euc", _routes(known))


def inside(name: str, processes: Processes, *, script: str) -> str:
    """Run a shell script in a machine; returns what it said.

    Raises:
        ClusterError: It failed, or the machine does not run.
    """
    pid = holder_pid(name, processes)
    if pid is None:
        raise ClusterError(f"machine {name}: expected it to run, it does not; run `make cluster`")
    return run("nsenter", "--target", str(pid), "--all", "--", "sh", "-euc", script)


def run(*command: str) -> str:
    """Run a command; returns what it said.

    Raises:
        ClusterError: It failed; with what it said.
    """
    environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{PATH}"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd="/")
    if done.returncode:
        raise ClusterError(f"`{' '.join(command)[:300]}`: expected it to work, it said: {done.stderr.strip()}")
    return done.stdout


def num_processes(name: str, processes: Processes) -> int:
    """How many processes hang on a machine's holder, itself included."""
    pid = holder_pid(name, processes)
    return 0 if pid is None else 1 + len(children(pid))


def _routes(machines: Iterable[Machine]) -> str:
    lines = [f"ip route replace {each.pods} via {each.address}" for each in machines if each.pods]
    return "\n".join(lines) or ":"
