"""One cluster: brings it up, heals it, hurts single parts of it, takes it down.

``up`` compares what should be with what is, part by part, and starts what is missing, so it can be called at any time
and after any interruption. ``down`` needs nothing of ``up`` to have ended well.
"""

from __future__ import annotations

import concurrent.futures
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.cluster import (
    argo,
    certificates,
    control_plane,
    images,
    leftovers,
    machines,
    network,
    nodes,
    state,
)
from tests.cluster.api import Api
from tests.cluster.control_plane import Setting
from tests.cluster.faults import ClusterError
from tests.cluster.machines import Machine
from tests.cluster.nodes import NODES, Node
from tests.cluster.places import CONTROL, Home, Network, home_folder
from tests.cluster.processes import Part, Processes
from tests.cluster.programs import Programs, provide
from tests.cluster.requirements import check, install_packages
from tests.cluster.state import State

#: A part that runs but does not answer for this long is started anew.
HUNG_LIMIT_S = 30.0
READY_LIMIT_S = 180.0
PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "workflow-controller")
KUBECONFIGS = ("controller-manager", "scheduler", "argo")
Tell = Callable[[str], None]


def _say_nothing(_: str) -> None:
    """Nobody wants to hear how it goes on."""


class Cluster:
    """A Kubernetes cluster with Argo Workflows on this computer.

    Args:
        folder: Where it is kept; by default ``$VODA_CLUSTER_HOME`` or a folder in the user's cache.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.home = Home(folder=(folder or home_folder()).resolve())
        self.processes = Processes(self.home)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.home.kubeconfig

    @property
    def programs(self) -> Programs:
        """The programs that it runs; ``kubectl`` and ``argo`` are among them."""
        return provide()

    @property
    def api(self) -> Api:
        """The API server, as the administrator."""
        return self._setting().api

    def up(
        self, wanted: tuple[Node, ...] | None = None, *, controller: bool | None = None, tell: Tell = _say_nothing
    ) -> None:
        """Bring the cluster up, or make it whole again; returns when its nodes are ready.

        Args:
            wanted: Its nodes; None for those that it has, or three with two GPUs each at first.
            controller: Whether Argo's controller is to run; None for as it is, or yes at first.
            tell: Is told what is being done.

        Raises:
            CannotRunHereError: This computer lacks something.
            ClusterError: A part did not come up; with the end of its log.
        """
        check()
        if any(self.home.folder.is_relative_to(folder) for folder in machines.PRIVATE_FOLDERS):
            covered = " and ".join(machines.PRIVATE_FOLDERS)
            raise ClusterError(
                f"{self.home.folder}: expected a folder outside {covered}: machines have their own there"
            )
        install_packages()
        built = provide()
        with self._one_at_a_time():
            setting, asked = self._prepare(built, wanted, controller)
            self._start_control_plane(setting, asked, tell)
            tell("CRDs and nodes")
            images.archives(setting.programs, self.home.folder / "images")
            with concurrent.futures.ThreadPoolExecutor() as pool:
                jobs = [pool.submit(argo.install, setting)]
                jobs += [pool.submit(self._start_node, setting, node) for node in asked.nodes]
                for job in concurrent.futures.as_completed(jobs):
                    job.result()
            machines.connect(self._machines(setting, asked), setting.network, self.processes)
            tell("controller and readiness")
            self._finish(setting, asked)

    def down(self) -> None:
        """Take the cluster down and remove all that it left.

        Raises:
            ClusterError: Something could not be removed; says what.
        """
        with self._one_at_a_time():
            self._remove()

    def parts(self) -> list[str]:
        """Names of all parts, in the order of their start; a machine stands before what runs in it."""
        asked = self._state()
        plane = [name for name in PLANE if asked.has_controller or name != "workflow-controller"]
        return [CONTROL, *plane] + [
            name for node in asked.nodes for name in (node.name, f"{node.name}-containerd", f"{node.name}-kubelet")
        ]

    def is_alive(self, part: str) -> bool:
        """Whether a part's process runs."""
        return self.processes.is_alive(part)

    def kill(self, part: str) -> None:
        """End a part at once (``kill -9``); a node's name ends all of it, its pods too, as a loss of power does."""
        self._must_be_known(part)
        self.processes.kill(part, *self._parts_on(part))

    def start(self, part: str) -> None:
        """Start a part that does not run and wait until it is ready; with a machine, what belongs on it.

        Raises:
            ClusterError: It did not come up; with the end of its log.
        """
        self._must_be_known(part)
        setting, asked = self._setting(), self._state()
        node = next((node for node in asked.nodes if part == node.name), None)
        if node is not None:
            self._start_node(setting, node)
        elif part == CONTROL:
            self._start_control_plane(setting, asked, _say_nothing)
            self._start_controller(setting, asked)
        else:
            self._ensure(next(each for each in self._programs(setting, asked) if each.name == part))
        machines.connect(self._machines(setting, asked), setting.network, self.processes)

    def serve_argo(self) -> str:
        """Start argo-server, where it does not run; it goes with the cluster.

        Returns:
            ``HOST:PORT`` of its plain HTTP.
        """
        setting = self._setting()
        self._ensure(argo.server(setting))
        return f"{setting.network.control}:{argo.SERVER_PORT}"

    def token(self, namespace: str, account: str) -> str:
        """A token of a service account, as its holder would have it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return str(self.api.post(path, asked)["status"]["token"])

    def load_image(self, name: str, archive: Path) -> None:
        """Bring an image into every node that runs.

        Args:
            name: The image's name with its tag, as in the archive.
            archive: As ``docker save`` writes it.
        """
        for node in self._state().nodes:
            if self.is_alive(node.name):
                images.load(node.name, {name: archive}, self.processes)

    def not_ready(self) -> list[str]:
        """Names of the nodes that are not ready, and what is not there at all."""
        found = {node["metadata"]["name"]: node for node in self.api.get(NODES)["items"]}
        wanted = [node.name for node in self._state().nodes]
        return [name for name in wanted if name not in found or not nodes.is_ready(found[name])]

    def wait_for_nodes(self, limit_s: float = READY_LIMIT_S) -> None:
        """Wait until every node is ready and has its GPUs.

        Raises:
            ClusterError: One is not, after ``limit_s``.
        """
        deadline_s = time.monotonic() + limit_s
        api, asked = self.api, self._state().nodes
        while True:
            listed = api.get(NODES)
            found = {node["metadata"]["name"]: node for node in listed["items"]}
            lacking = [node.name for node in asked if not _is_whole(found.get(node.name), node)]
            if not lacking:
                return
            rest_s = deadline_s - time.monotonic()
            if rest_s <= 0:
                logs = "\n".join(self.processes.tail(f"{name}-kubelet") for name in lacking[:1])
                raise ClusterError(f"expected nodes {lacking} to be ready within {limit_s:.0f} s, they are not\n{logs}")
            next(iter(api.watch(NODES, listed["metadata"]["resourceVersion"], rest_s)), None)

    def _prepare(
        self, built: Programs, wanted: tuple[Node, ...] | None, controller: bool | None
    ) -> tuple[Setting, State]:
        """Folder, network, certificates, state; what is there and cannot stay is removed first."""
        kept = state.read(self.home)
        claimed = network.claim(self.home.folder)
        if kept is not None and kept.origin != state.origin(claimed, built):
            self._remove()
            kept, claimed = None, network.claim(self.home.folder)
        asked = State(
            origin=state.origin(claimed, built),
            number=claimed.number,
            nodes=wanted if wanted is not None else kept.nodes if kept else nodes.parse("3x2"),
            has_controller=controller if controller is not None else kept is None or kept.has_controller,
        )
        setting = Setting(home=self.home, network=claimed, programs=built)
        self.home.folder.mkdir(parents=True, exist_ok=True)
        leftovers.make_folders()
        self._drop(setting, kept, asked)
        state.write(self.home, asked)
        self._certify(setting, asked)
        return setting, asked

    def _certify(self, setting: Setting, asked: State) -> None:
        wanted = certificates.holders(setting.network, [(node.name, node.index) for node in asked.nodes])
        certificates.make(self.home.certificates, wanted)
        url = setting.network.api_url
        for name in KUBECONFIGS:
            path = self.home.certificates / f"{name}.kubeconfig"
            certificates.write_kubeconfig(path, self.home.certificates, name, url)
        certificates.write_kubeconfig(self.home.kubeconfig, self.home.certificates, "admin", url)

    def _drop(self, setting: Setting, kept: State | None, asked: State) -> None:
        """End what is not wanted any more: nodes that are not asked for, the controller."""
        if kept is None:
            return
        places = {(node.name, node.index) for node in asked.nodes}
        for node in kept.nodes:
            if (node.name, node.index) not in places:
                self.processes.kill(node.name, *self._parts_on(node.name))
                shutil.rmtree(self.home.machine(node.name), ignore_errors=True)
                (self.home.certificates / f"{node.name}.crt").unlink(missing_ok=True)
                if self.is_alive("kube-apiserver"):
                    setting.api.delete(f"{NODES}/{node.name}")
        if not asked.has_controller:
            self.processes.stop("workflow-controller")

    def _start_control_plane(self, setting: Setting, asked: State, tell: Tell) -> None:
        self._ensure_machine(setting, self._control(setting))
        machines.connect(self._machines(setting, asked), setting.network, self.processes)
        for part in control_plane.parts(setting):
            tell(part.name)
            self._ensure(part)

    def _start_node(self, setting: Setting, node: Node) -> None:
        nodes.declare(setting, node)
        nodes.write_settings(setting, node)
        self._ensure_machine(setting, node.machine(setting.network, self.home))
        self._ensure(nodes.containerd(setting, node, self.processes))
        images.load(node.name, images.archives(setting.programs, self.home.folder / "images"), self.processes)
        self._ensure(nodes.kubelet(setting, node))

    def _start_controller(self, setting: Setting, asked: State) -> None:
        if asked.has_controller:
            self._ensure(argo.controller(setting))

    def _finish(self, setting: Setting, asked: State) -> None:
        """Start the controller and see that all works.

        Raises:
            ClusterError: Something does not; says what.
        """
        self._start_controller(setting, asked)
        self.wait_for_nodes()
        dead = [name for name in self.parts() if not self.is_alive(name)]
        if dead:
            raise ClusterError(f"expected every part to run, {dead} ended\n{self.processes.tail(dead[0])}")

    def _ensure(self, part: Part) -> None:
        """See that a part runs and answers; one that does not answer is started anew."""
        if self.is_alive(part.name):
            try:
                self.processes.wait_until_ready(replace(part, ready_limit_s=HUNG_LIMIT_S))
                return
            except ClusterError:
                self.processes.kill(part.name)
        self.processes.start(part)
        self.processes.wait_until_ready(part)

    def _ensure_machine(self, setting: Setting, machine: Machine) -> None:
        """See that a machine runs and was made ready; one whose boot was interrupted starts anew."""
        if machines.is_booted(machine.name, self.processes):
            return
        self.processes.kill(machine.name, *self._parts_on(machine.name))
        part = machines.part_of(machine, setting.programs.path("pause"), self.processes)
        self.processes.start(part)
        self.processes.wait_until_ready(part)
        machines.boot(machine, setting.network, images.shown_folders(), self.processes)

    def _programs(self, setting: Setting, asked: State) -> Iterator[Part]:
        yield from control_plane.parts(setting)
        yield argo.controller(setting)
        for node in asked.nodes:
            yield nodes.containerd(setting, node, self.processes)
            yield nodes.kubelet(setting, node)

    def _machines(self, setting: Setting, asked: State) -> list[Machine]:
        return [self._control(setting), *(node.machine(setting.network, self.home) for node in asked.nodes)]

    def _control(self, setting: Setting) -> Machine:
        return Machine(name=CONTROL, address=setting.network.control, folder=self.home.machine(CONTROL))

    def _remove(self) -> None:
        kept = state.read(self.home)
        known = Network(number=kept.number) if kept else network.find(self.home.folder)
        self.processes.kill(*self.processes.recorded())
        leftovers.remove(self.home, known)
        left = leftovers.find(self.home, known)
        if left:
            raise ClusterError(f"expected nothing to be left of the cluster, found {', '.join(left)}")

    def _state(self) -> State:
        kept = state.read(self.home)
        if kept is None:
            raise ClusterError(f"expected a cluster in {self.home.folder}, there is none; run `make cluster`")
        return kept

    def _setting(self) -> Setting:
        return Setting(home=self.home, network=Network(number=self._state().number), programs=self.programs)

    def _parts_on(self, machine: str) -> list[str]:
        """Names of what runs on a machine; nothing of any other part."""
        return [*PLANE] if machine == CONTROL else [f"{machine}-containerd", f"{machine}-kubelet"]

    def _must_be_known(self, part: str) -> None:
        if part not in self.parts():
            raise ClusterError(f"expected one of {', '.join(self.parts())}, got {part!r}")

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Wait for this process's turn at this cluster; a lock on a folder leaves no file behind."""
        self.home.folder.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.home.folder.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _is_whole(found: dict[str, object] | None, node: Node) -> bool:
    """Whether a node is ready and has its GPUs, as the scheduler of pods sees them."""
    return found is not None and nodes.is_ready(found) and nodes.gpus_of(found) == node.gpus
