"""Pods that do not come up: GPUs go to others, the job goes on or ends, and people are told what the pods say."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.converging.document import PLACE_LIMIT_S
from scheduler_core.errors import Conflict
from scheduler_core.model.job import JobPhase
from scheduler_core.model.plan import Abandon, Announce, Evict, Grant, Release
from tests.unit.control.world import World
from voda_flows.config import Settings
from voda_flows.control.enforce import StoreEnforcer
from voda_flows.control.explain import explain
from voda_flows.control.observe import StoreObserver
from voda_flows.control.pods import is_leaving, why_pending
from voda_flows.objects import COMPLETED_LABEL, Object, key_of

START_LIMIT_S = 300.0
PULL = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "nowhere/x:1"'}
PULLING = {"phase": "Pending", "containerStatuses": [{"name": "main", "state": {"waiting": PULL}}]}
WHY = 'ImagePullBackOff: Back-off pulling image "nowhere/x:1"'


class Patient(World):
    """A world in which a test says how late it is for the scheduler; its process goes on all along."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, gpus=(2,))
        self.late_s = 0.0
        self.observer = StoreObserver(self.store, Settings(), self.drivers, clock=lambda: time.time() + self.late_s)
        self.enforcer = StoreEnforcer(self.store, self.observer)


@pytest.fixture
def world(tmp_path: Path) -> Patient:
    """Two GPUs; a job of two was granted them, and none of its pods comes up."""
    made = Patient(tmp_path)
    made.submit("bad", min_gpus="2", max_gpus="2")
    made.cycle()
    hang(made)
    return made


def hang(world: World) -> None:
    """Every pod that waits says that its image cannot be had."""
    for pod in world.store.list("Pod"):
        if not (pod.get("status") or {}).get("phase"):
            world.patch(key_of(pod), PULLING)


def test_a_job_whose_image_cannot_be_had_gives_its_gpus_back_and_ends(world: Patient) -> None:
    """Workers go after the limit, then the driver, then the checkpoint step's tries; another job runs meanwhile."""
    world.observer.observe()
    world.late_s = START_LIMIT_S
    job_id = world.job().id
    assert [type(action) for action in world.cycle()] == [Evict, Evict]
    reason = "its driver did not come up within 300 s"
    assert world.cycle() == [Abandon(job_id=job_id, segment=0, role="driver", reason=reason)]
    assert world.cycle() == [Release(job_id=job_id, segment=0)]
    hang(world)
    world.cycle()
    assert (world.job().phase, world.job().stalled) == (JobPhase.BETWEEN, False)

    world.late_s = 2 * START_LIMIT_S + 10
    assert world.job().stalled
    world.submit("good", min_gpus="2", max_gpus="2", job_name="good")
    granted = [action for action in world.cycle() if isinstance(action, Grant)]
    assert [action.job_id for action in granted] == [world.job("good").id]

    for number in range(10):
        hang(world)
        world.late_s = (3 + number) * START_LIMIT_S
        world.round()
        if world.nodes_of("bad")["phase"] == "Failed":
            break
    said = [node.get("message") for node in world.nodes_of("bad")["nodes"].values() if node["type"] == "Pod"]
    assert f"its driver did not come up within 300 s: {WHY}" in said
    assert f"the checkpoint step did not come up within 300 s: {WHY}" in said
    assert world.nodes_of("bad")["phase"] == "Failed"


def test_a_node_that_is_ended_is_ended_to_argo_too(world: Patient) -> None:
    """As long as Argo sees its pod, or waits for what that handed out, it goes by the pod: pending, to be made anew."""
    waits = {identity: {"taskResultSynced": False} for identity, node in world.nodes().items() if node["type"] == "Pod"}
    (workflow,) = world.store.list("Workflow")
    world.patch(key_of(workflow), {"nodes": waits})
    job_id = world.view("train").id
    world.enforcer.enforce(Evict(job_id=job_id, segment=0, worker_id="w1", reason="late"))
    world.enforcer.enforce(Abandon(job_id=job_id, segment=0, role="driver", reason="late"))

    ended = [node for node in world.nodes().values() if node["phase"] == "Error"]
    assert [node["taskResultSynced"] for node in ended] == [True, True]
    leaving = [pod for pod in world.store.list("Pod") if is_leaving(pod)]
    assert [pod["metadata"]["labels"][COMPLETED_LABEL] for pod in leaving] == ["true", "true"]


def test_pods_for_a_node_that_was_closed_meanwhile_go_soon(world: Patient) -> None:
    """No machine has taken them, and theirs takes none: waiting for the limit would help nobody."""
    world.store.merge_patch("Node", "", "n0", {"spec": {"unschedulable": True}})
    world.observer.observe()
    world.late_s = PLACE_LIMIT_S - 1
    early = world.cycle()
    world.late_s = PLACE_LIMIT_S + 1
    late = world.cycle()

    assert early == []
    assert [type(action) for action in late] == [Evict, Evict]


def test_argo_looks_away_before_a_node_is_ended_and_again_where_it_could_not_be(
    world: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two writes it would make the pod anew; a pod that stays is Argo's to see."""
    written: list[tuple[str, str]] = []

    def note(kind: str, *words: Any, **guards: Any) -> Object:
        written.append((kind, str(words[2])))
        if kind == "Workflow" and is_refused:
            raise Conflict("it changed meanwhile")
        return patch(kind, *words, **guards)

    patch = world.store.merge_patch
    monkeypatch.setattr(world.store, "merge_patch", note)
    job_id, is_refused = world.view("train").id, True
    with pytest.raises(Conflict):
        world.enforcer.enforce(Evict(job_id=job_id, segment=0, worker_id="w1", reason="late"))
    refused, is_refused = [*written], False
    written.clear()
    world.enforcer.enforce(Evict(job_id=world.view("train").id, segment=0, worker_id="w1", reason="late"))

    assert [kind for kind, _ in refused] == ["Pod", "Workflow", "Pod"]
    assert (COMPLETED_LABEL in refused[0][1], "'false'" in refused[2][1]) == (True, True)
    assert [kind for kind, _ in written] == ["Pod", "Workflow"]
    assert "'true'" in written[0][1]


def test_a_node_that_is_closed_for_a_moment_costs_no_pod(world: Patient) -> None:
    """However long its pods have waited there: the limit counts from when the node takes none."""
    world.observer.observe()
    world.late_s = 2 * PLACE_LIMIT_S
    world.store.merge_patch("Node", "", "n0", {"spec": {"unschedulable": True}})
    closed = world.cycle()
    world.store.merge_patch("Node", "", "n0", {"spec": {"unschedulable": None}})
    world.late_s = 3 * PLACE_LIMIT_S + 1

    assert (closed, world.cycle()) == ([], [])


def test_what_pods_say_is_told(world: Patient) -> None:
    """`voda explain` names the pods that do not run and why."""
    told = explain(world.store, Settings(), "bad")

    assert f"w0 does not run: {WHY}." in told
    assert f"Its driver does not run: {WHY}." in told


def test_the_next_gate_says_why_the_last_start_failed(world: Patient) -> None:
    """Which worker, where, and what its pod said."""
    for pod in world.store.list("Pod"):
        if pod["metadata"]["labels"]["voda.dev/role"] == "driver":
            world.patch(key_of(pod), {"phase": "Running", "podIP": "127.1.0.9", "containerStatuses": None})
    world.observer.observe()
    world.late_s = START_LIMIT_S
    assert world.round().conflicts == {}  # the stop's words on a node do not make the evictions after it stale
    world.end_pod("driver")
    world.cycle()
    world.run_pods()
    world.end_pod("checkpoint", state="resize")
    world.store.create(_stranger())

    (told,) = [action.message for action in world.cycle() if isinstance(action, Announce)]

    failed = f"last failure: w1 on n0: not ready 300 s after its grant: {WHY}"
    assert told == f"queued: place 1, waits for 2 GPUs; {failed}"


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({}, ""),
        ({"phase": "Running"}, ""),
        ({"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}, ""),
        (PULLING, WHY),
        (
            {
                "phase": "Pending",
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
                ],
            },
            "Unschedulable: 0/3 nodes",
        ),
        ({"phase": "Pending", "message": "Unschedulable: no slots"}, "Unschedulable: no slots"),
    ],
)
def test_a_pod_says_why_it_waits(status: Object, why: str) -> None:
    """As its kubelet, the scheduler of pods or local mode's says it; what is on its way says nothing."""
    assert why_pending({"metadata": {}, "status": status}) == why


def _stranger() -> Object:
    """A pod of somebody else on all GPUs."""
    limits = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stranger", "namespace": "default"},
        "spec": {"nodeName": "n0", "containers": [{"name": "main", **limits}]},
        "status": {"phase": "Running"},
    }
