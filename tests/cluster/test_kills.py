"""What comes back too late from a lost node changes nothing; kills at random are figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import nodes
from tests.cluster.installed import NAMESPACE, Installation
from tests.cluster.nodes import NODES
from tests.cluster.places import REPOSITORY
from tests.cluster.victims import connect_again, cut_off, strays
from tests.e2e.job_record import epochs, verdicts
from voda_flows.objects import POD_ENDED, phase_of

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1200)]
SAMPLES = 600
LIFE = f"python {REPOSITORY}/tests/e2e/train_life.py {SAMPLES} 0.1"
EPOCHS = 20
NODE_LOST = "n0"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
LIMIT_S = 300.0


@pytest.fixture
def lost(installed: Installation) -> Iterator[Installation]:
    """Voda with nothing on it; the node's cable is in at the end, and the others take pods."""
    installed.reset()
    yield installed
    connect_again(installed.cluster, NODE_LOST)
    installed.cluster.wait_for_nodes(LIMIT_S)
    installed.reset()


def test_a_late_writer_of_a_lost_node_changes_nothing(lost: Installation) -> None:
    """A driver and its rank, cut off and given up, train on: they end by themselves; the job is done without them."""
    others = [name for name in ("n1", "n2") if name != NODE_LOST]
    for name in others:
        lost.cluster.api.patch(f"{NODES}/{name}", {"spec": {"unschedulable": True}})
    job = lost.job("late", LIFE, epochs=str(EPOCHS), checkpoint_steps="20")
    root = lost.volume / NAMESPACE / lost.workflow(job)["metadata"]["uid"] / "train"
    assert lost.until(lambda: any(root.glob("segment-0/step-*/manifest.json")), LIMIT_S), lost.story(job)
    for name in others:
        lost.cluster.api.patch(f"{NODES}/{name}", {"spec": {"unschedulable": None}})
    (driver,) = lost.pods(job, "driver")
    places = {pod["spec"]["nodeName"] for pod in lost.pods(job)}

    cut_off(lost.cluster, NODE_LOST)
    lost.cluster.api.wait(NODES, NODE_LOST, lambda node: not nodes.is_ready(node), LIMIT_S)
    at_loss = _last_step(root)
    _give_up(lost, job)
    ended = lost.wait_ended(job, 600)
    lived_on = _last_step(root) > at_loss
    left = lost.until(lambda: not _writes(lost, driver["metadata"]["uid"]), LIMIT_S)

    assert places == {NODE_LOST}
    assert (phase_of(ended), lived_on, left) == ("Succeeded", True, True), lost.story(job)
    assert (epochs(root, SAMPLES), verdicts(root).count("done")) == (list(range(EPOCHS)), 1)


def _give_up(voda: Installation, job: str) -> None:
    """Delete the lost node's pods without hearing of them, as a cloud does that takes the node's object away."""
    for pod in voda.pods(job):
        if phase_of(pod) not in POD_ENDED:
            voda.cluster.api.delete(f"{PODS}/{pod['metadata']['name']}?gracePeriodSeconds=0")


def _last_step(root: Path) -> int:
    """How many rows the first segment has."""
    return len((root / "segment-0/reports.jsonl").read_text(encoding="utf-8").splitlines())


def _writes(voda: Installation, uid: str) -> list[str]:
    """Processes of the driver that was given up, while its node is still cut off."""
    live = {body["metadata"]["uid"] for body in voda.store.snapshot("Pod").values()} - {uid}
    return [stray for stray in strays(voda.cluster, live) if "voda_flows.runtime.driver" in stray]
