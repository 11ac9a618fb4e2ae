"""The processes of pods, as this computer sees them, and strikes against all that a cluster consists of.

A pod's processes are found by its control group, so they can be killed one by one, which no request to the API server
can do. A strike that breaks a part comes with its repair, due some seconds later; what is repaired is whole again, as
after a person or a machine's own watchdog has looked.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster import cgroups, network
from tests.cluster.cluster import Cluster
from tests.cluster.faults import ClusterError
from tests.cluster.installed import NAMESPACE, Installation
from tests.cluster.machines import run
from tests.cluster.nodes import NODES
from tests.cluster.processes import children
from voda_flows.objects import POD_ENDED, Object, phase_of

PROCESSES = ("scheduler", "driver", "worker", "pod deleted")
CONTROLLER = "workflow-controller"
PLANE = (CONTROLLER, "kube-apiserver")
MACHINES = ("kubelet and containerd", "node", "node drained")
KINDS = (*PROCESSES, *PLANE, *MACHINES)
_PROGRAM = {
    "scheduler": "voda_flows.control.scheduler",
    "driver": "voda_flows.runtime.driver",
    "worker": "voda_flows.runtime.agent",
}
#: How much must be whole before a part comes back: 0 nothing, 1 the API server, 2 all of the control plane. Argo's
#: controller ends at once where no API server answers, and a node is let in by one; Kubernetes starts them until then.
NEEDS = {"kube-apiserver": 0, CONTROLLER: 1, "node": 2}
_DRAIN_S = 150
#: The state of a socket in /proc/net/tcp.
_LISTENS = "0A"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What makes a part whole again.

    Attributes:
        due_s: When, on the monotonic clock.
        node: The node that is hurt, empty where it is none.
        part: What it makes whole, as ``NEEDS`` names it.
        deed: Does it.
    """

    due_s: float
    node: str = ""
    part: str
    deed: Callable[[], object]

    @property
    def needs(self) -> int:
        """How much must be whole before."""
        return NEEDS[self.part]


@dataclass(slots=True, kw_only=True)
class Striker:
    """Strikes against an installation at random.

    Attributes:
        voda: The installation.
        chance: Chooses victims and times.
        repairs: What is broken now.
    """

    voda: Installation
    chance: random.Random
    repairs: list[Repair] = field(default_factory=list)

    def strike(self, kind: str) -> str:
        """Strike; says whom, nothing where there is no victim now."""
        if kind in _PROGRAM:
            return self._kill_process(kind)
        if kind in PLANE:
            return self._kill_part(kind)
        if kind == "pod deleted":
            return self._delete_pod()
        if any(repair.node for repair in self.repairs):
            return ""  # one node at a time: the jobs need the others
        return {"node": self._lose_node, "node drained": self._drain}.get(kind, self._stop_kubelet)()

    def repair(self, *, all_of_it: bool = False) -> None:
        """Repair what is due and has what it needs, or everything.

        Argo's controller ends by itself where the API server is lost while it starts; it too is started again, as
        Kubernetes would.
        """
        if not any(one.part == CONTROLLER for one in self.repairs) and not self.voda.cluster.is_alive(CONTROLLER):
            self._start_later(CONTROLLER)
        now_s = time.monotonic()
        due = [one for one in self.repairs if all_of_it or one.due_s <= now_s]
        broken = min((one.needs for one in self.repairs if one not in due), default=max(NEEDS.values()))
        due = sorted((one for one in due if one.needs <= broken), key=lambda one: one.needs)
        self.repairs = [one for one in self.repairs if one not in due]
        for one in due:
            one.deed()

    def _later(self, least_s: float, most_s: float, part: str, deed: Callable[[], object], node: str = "") -> None:
        due_s = time.monotonic() + self.chance.uniform(least_s, most_s)
        self.repairs.append(Repair(due_s=due_s, node=node, part=part, deed=deed))

    def _kill_process(self, kind: str) -> str:
        victims = [
            pid for pod in live_pods(self.voda, kind) for pid in processes_of(self.voda.cluster, pod, _PROGRAM[kind])
        ]
        if kind == "worker":  # the agent, or one of its ranks
            victims += [rank for agent in victims for rank in children(agent)]
        if not victims:
            return ""
        victim = self.chance.choice(sorted(victims))
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
            return f"pid {victim}"
        return ""

    def _kill_part(self, part: str) -> str:
        cluster = self.voda.cluster
        if not cluster.is_alive(part):
            return ""
        cluster.kill(part)
        self._start_later(part)
        return part

    def _start_later(self, part: str) -> None:
        self._later(0.0, 4.0, part, lambda: self.voda.cluster.start(part))

    def _delete_pod(self) -> str:
        pods = [pod for role in ("driver", "worker") for pod in live_pods(self.voda, role)]
        if not pods or not self._api_answers():
            return ""
        name = str(self.chance.choice(pods)["metadata"]["name"])
        self._kubectl("delete", "pod", name, "--ignore-not-found", "--wait=false")
        return name

    def _stop_kubelet(self) -> str:
        cluster, node = self.voda.cluster, self._any_node()
        parts = [f"{node}-kubelet", f"{node}-containerd"]
        for part in parts:
            cluster.kill(part)

        def start() -> None:
            for part in reversed(parts):
                cluster.start(part)

        self._later(1.0, 8.0, "node", start, node)
        return node

    def _lose_node(self) -> str:
        """A node without power, or one whose cable is out: there all goes on that needs nobody else."""
        cluster, node = self.voda.cluster, self._any_node()
        if self.chance.random() < 0.5:
            cluster.kill(node)
            self._later(35.0, 50.0, "node", lambda: cluster.start(node), node)
            return f"{node}, power"
        cut_off(cluster, node)
        self._later(35.0, 50.0, "node", lambda: connect_again(cluster, node), node)
        return f"{node}, cable"

    def _drain(self) -> str:
        if not self._api_answers():
            return ""
        node = self._any_node()
        # The scheduler is a victim of its own kind.
        chosen = ("--pod-selector=voda.dev/role!=scheduler", f"--timeout={_DRAIN_S}s")
        draining = self._start_kubectl("drain", node, "--force", "--delete-emptydir-data", *chosen)

        def give_back() -> None:
            draining.wait(2 * _DRAIN_S)
            self._kubectl("uncordon", node)

        self._later(20.0, 30.0, "node", give_back, node)
        return node

    def _any_node(self) -> str:
        return self.chance.choice(sorted(name for name in self.voda.cluster.parts() if f"{name}-kubelet" in
                                         self.voda.cluster.parts()))  # fmt: skip

    def _api_answers(self) -> bool:
        try:
            self.voda.cluster.api.get(NODES)
        except ClusterError:
            return False
        return True

    def _kubectl(self, *words: str) -> None:
        if self._start_kubectl(*words).wait(_DRAIN_S):
            raise ClusterError(f"kubectl {' '.join(words)}: expected it to work, it did not")

    def _start_kubectl(self, *words: str) -> subprocess.Popen[bytes]:
        cluster = self.voda.cluster
        command = [cluster.programs.path("kubectl"), f"--kubeconfig={cluster.kubeconfig}", f"--namespace={NAMESPACE}"]
        return subprocess.Popen([*command, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def cut_off(cluster: Cluster, node: str) -> None:
    """Pull a node's cable: its processes live on, and reach nobody beyond it."""
    run("ip", "link", "set", _cable(cluster, node), "down")


def connect_again(cluster: Cluster, node: str) -> None:
    """Put the cable in again."""
    run("ip", "link", "set", _cable(cluster, node), "up")


def live_pods(voda: Installation, role: str) -> list[Object]:
    """Pods of the namespace in a role that have not ended."""
    found = [body for key, body in voda.store.snapshot("Pod").items() if key.namespace == NAMESPACE]
    return [
        pod
        for pod in found
        if (pod["metadata"].get("labels") or {}).get("voda.dev/role") == role and phase_of(pod) not in POD_ENDED
    ]


def processes_of(cluster: Cluster, pod: Object, program: str) -> list[int]:
    """Processes of a pod that run a Python module, the first one first; not what they forked, nor Argo's executor."""
    uid = pod["metadata"]["uid"]
    running = [(pid, _words(pid)) for pid, owner in _pids_by_pod(cluster) if owner == uid]
    found = [pid for pid, words in running if program in words and not words[0].endswith("argoexec")]
    forked = {child for pid in found for child in children(pid)}
    return sorted(set(found) - forked)


def strays(cluster: Cluster, live_uids: Collection[str]) -> list[str]:
    """Processes that run in control groups of pods that have ended, with what they run."""
    return sorted(f"{pid} {' '.join(_words(pid))}" for pid, uid in _pids_by_pod(cluster) if uid not in live_uids)


def _pids_by_pod(cluster: Cluster) -> list[tuple[int, str]]:
    """Process ids and the uids of their pods."""
    found: set[tuple[int, str]] = set()
    for root in cgroups.find(network.find(cluster.home.folder))[:1]:
        for folder in root.rglob("pod*"):
            for listed in folder.rglob("cgroup.procs"):
                with contextlib.suppress(OSError):
                    pids = listed.read_text(encoding="ascii").split()
                    found |= {(int(pid), folder.name.removeprefix("pod")) for pid in pids}
    return sorted(found)


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    except OSError:
        return []


def _cable(cluster: Cluster, node: str) -> str:
    found = network.find(cluster.home.folder)
    if found is None:
        raise ClusterError(f"{cluster.home.folder}: expected a cluster that is up, there is none")
    return found.port(node)


def listening_ports(pid: int) -> set[int]:
    """TCP ports on which somebody listens in a process's network."""
    rows = Path(f"/proc/{pid}/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    return {int(row.split()[1].rpartition(":")[2], 16) for row in rows if row.split()[3] == _LISTENS}
