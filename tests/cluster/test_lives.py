"""How a cluster lives: up again is harmless, what was killed comes back, down leaves nothing, whatever came before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import nodes
from tests.cluster.cluster import Cluster
from tests.cluster.faults import ClusterError
from tests.cluster.fixture import skip_where_it_cannot_run
from tests.cluster.nodes import NODES
from tests.cluster.places import CONTROL, HOME_VARIABLE, REPOSITORY
from tests.cluster.processes import wait_for_end
from tests.cluster.status import read_status
from tests.cluster.traces import new, traces
from tests.cluster.trial import (
    LIMIT_S,
    PODS,
    allow_jobs,
    delete_pods,
    logs_of_ended,
    run_pod,
    run_workflow,
    wait_for_phase,
)

pytestmark = [pytest.mark.cluster, pytest.mark.long]
PLANE = (CONTROL, "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "workflow-controller")
LOOK_AGAIN_S = 0.02


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of the test's own, which is not up; down at the end."""
    skip_where_it_cannot_run()
    made = Cluster(tmp_path / "cluster")
    yield made
    made.down()


def pids(cluster: Cluster) -> dict[str, int | None]:
    """The process of each part."""
    return {name: cluster.processes.pid(name) for name in cluster.parts()}


def test_up_twice_changes_nothing(cluster: Cluster) -> None:
    """No process is started anew, and all are told as well."""
    before = pids(cluster)

    cluster.up()

    assert (pids(cluster), None in before.values()) == (before, False)
    assert [part.name for part in read_status(cluster) if not part.is_well] == []


@pytest.mark.parametrize("part", [*PLANE, "n1", "n1-containerd", "n1-kubelet"])
def test_up_heals_a_part_that_was_killed(cluster: Cluster, part: str) -> None:
    """After `kill -9` of any part, up makes the cluster whole: a Workflow runs through all of it."""
    allow_jobs(cluster)
    cluster.kill(part)
    was_dead = not cluster.is_alive(part)

    cluster.up()

    ended = run_workflow(cluster, "true", node="n1")
    assert (was_dead, cluster.is_alive(part), ended["status"]["phase"]) == (True, True, "Succeeded")


def test_up_heals_a_part_that_hangs(cluster: Cluster) -> None:
    """One that runs but does not answer is started anew."""
    hung = cluster.processes.pid("kube-scheduler")
    assert hung is not None
    os.kill(hung, signal.SIGSTOP)

    cluster.up()

    ended = logs_of_ended(cluster, run_pod(cluster, "echo", "scheduled", node="n0"))
    delete_pods(cluster)
    assert ended == ("Succeeded", "scheduled\n")
    assert wait_for_end(hung, 0)


@pytest.mark.parametrize("part", ["n0-kubelet", "n0-containerd", "etcd", "kube-apiserver"])
def test_pods_and_their_gpus_outlive_the_parts_that_made_them(cluster: Cluster, part: str) -> None:
    """A part that is killed and started alone finds its pods as they were."""
    holding = run_pod(cluster, "sleep", "600", node="n0", gpus=2)
    before = wait_for_phase(cluster, holding, "Running")

    cluster.kill(part)
    cluster.start(part)

    said = logs_of_ended(cluster, run_pod(cluster, "echo", "works", node="n0"))
    after = cluster.api.get(f"{PODS}/{holding}")
    node = cluster.api.get(f"{NODES}/n0")
    delete_pods(cluster)
    assert said == ("Succeeded", "works\n")
    assert [
        (pod["metadata"]["uid"], pod["status"]["phase"], pod["status"]["containerStatuses"][0]["restartCount"])
        for pod in (before, after)
    ] == [(before["metadata"]["uid"], "Running", 0)] * 2
    assert nodes.gpus_of(node) == 2


def test_a_node_that_loses_its_power_is_lost_and_comes_back(cluster: Cluster) -> None:
    """All processes of it end at once; it is not ready after a while, and ready again when it was started."""
    lost = run_pod(cluster, "sleep", "600", node="n2", gpus=1)
    wait_for_phase(cluster, lost, "Running")

    cluster.kill("n2")
    dead = [name for name in cluster.parts() if not cluster.is_alive(name)]
    cluster.api.wait(NODES, "n2", lambda node: not nodes.is_ready(node), LIMIT_S)
    cluster.start("n2")
    cluster.wait_for_nodes(LIMIT_S)

    delete_pods(cluster)
    assert dead == ["n2", "n2-containerd", "n2-kubelet"]
    assert logs_of_ended(cluster, run_pod(cluster, "echo", "back", node="n2", gpus=2)) == ("Succeeded", "back\n")
    delete_pods(cluster)


def test_a_cluster_changes_its_shape(other: Cluster) -> None:
    """From a control plane alone to nodes, to fewer and other nodes; what is not asked for any more is gone."""
    other.up(nodes.parse("0"), controller=False)
    alone = other.parts()
    other.up(nodes.parse("2x1"))
    other.up(nodes.parse("1x3"), controller=True)

    (node,) = other.api.get(NODES)["items"]
    assert alone == list(PLANE[:-1])
    assert other.parts() == [*PLANE, "n0", "n0-containerd", "n0-kubelet"]
    assert (node["metadata"]["name"], nodes.gpus_of(node)) == ("n0", 3)


def test_down_leaves_nothing(other: Cluster) -> None:
    """Of a cluster with a running pod on it; and down once more is harmless."""
    before = traces()
    other.up(nodes.parse("1x1"))
    wait_for_phase(other, run_pod(other, "sleep", "600", node="n0", gpus=1), "Running")
    while_up = traces()

    other.down()
    after = traces()
    other.down()

    assert new(before, after) == {}
    assert new(before, while_up).keys() - {"folders"} == {
        "interfaces",
        "routes",
        "process namespaces",
        "control groups",
    }
    assert not other.home.folder.exists()


def test_down_leaves_nothing_of_a_cluster_that_was_stopped(other: Cluster) -> None:
    """Processes that hang (SIGSTOP) are ended all the same, and those that wait for them."""
    before = traces()
    other.up(nodes.parse("0"), controller=False)
    for name in other.parts():
        for pid in (int((other.home.records / name).read_text().split()[0]), other.processes.pid(name)):
            assert pid is not None
            os.kill(pid, signal.SIGSTOP)

    other.down()

    assert new(before, traces()) == {}


@pytest.mark.parametrize("at", ["control", "kube-apiserver", "n0", "n0-containerd", "n0-kubelet"])
def test_down_leaves_nothing_of_an_up_that_was_killed(other: Cluster, at: str) -> None:
    """Whenever up is killed (`kill -9`), what it made until then is known and removed."""
    before = traces()
    command = [sys.executable, "-m", "tests.cluster", "up", "--nodes", "1x1"]
    environment = {**os.environ, HOME_VARIABLE: str(other.home.folder)}
    coming = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stderr=subprocess.DEVNULL)
    while not (other.home.records / at).exists() and coming.poll() is None:
        time.sleep(LOOK_AGAIN_S)
    coming.kill()
    code = coming.wait()

    other.down()

    assert (code, new(before, traces())) == (-9, {})


def test_an_up_that_was_killed_is_finished_by_the_next(other: Cluster) -> None:
    """Nothing has to be taken down first."""
    command = [sys.executable, "-m", "tests.cluster", "up", "--nodes", "1x1"]
    environment = {**os.environ, HOME_VARIABLE: str(other.home.folder)}
    coming = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stderr=subprocess.DEVNULL)
    while not (other.home.records / "n0").exists() and coming.poll() is None:
        time.sleep(LOOK_AGAIN_S)
    coming.kill()
    coming.wait()

    other.up()

    assert [part.state for part in read_status(other) if part.name == "n0"] == ["ready, 1 GPUs"]


def test_an_unknown_part_is_refused_by_name(cluster: Cluster) -> None:
    """The message names those that there are."""
    with pytest.raises(ClusterError, match=r"expected one of control, etcd, .*, got 'n9'"):
        cluster.kill("n9")
