"""The checker finds what breaks the laws of a cluster, in whatever order it hears of things."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from tests.cluster.api import RefusedError
from tests.cluster.checker import PODS, Change, Place, Pod, Recorder, Verdict, Workflow, judge
from voda_flows.control.pods import PodKey
from voda_flows.objects import Object

NODES = {"n0": 2, "n1": 1}


def key(worker: str) -> PodKey:
    """A worker of the job's first segment."""
    return PodKey(namespace="voda", workflow="job", job="train", segment="0", role="worker", worker=worker)


def pod(version: int, worker: str, node: str = "n0", gpus: int = 1, *, ended: bool = False, uid: str = "") -> Change:
    """A worker's pod."""
    found = Pod(name=f"voda/{worker}", key=key(worker), owners=("wf",), node=node, gpus=gpus, has_ended=ended)
    return Change(version=version, uid=uid or worker, now=found)


def workflow(version: int, *workers: str, phase: str = "Running", done: float | None = 0.0) -> Change:
    """The Workflow, with workers that have a GPU of n0 promised."""
    promised = tuple(Place(key=key(worker), owner="wf", node="n0", gpus=1) for worker in workers)
    found = Workflow(name="voda/job", phase=phase, promised=promised, fraction={"train": done})
    return Change(version=version, uid="wf", now=found)


def gone(version: int, uid: str) -> Change:
    """It is not there any more."""
    return Change(version=version, uid=uid, now=None)


def test_a_life_without_faults_is_found_so() -> None:
    """Promised, bound, ended, promised to the next: never more than there is."""
    changes = [
        workflow(1), workflow(2, "w0", "w1"), pod(3, "w0", node=""), pod(4, "w0"), pod(5, "w1"),
        pod(6, "w0", ended=True), workflow(7, "w1", "w2", done=0.5), pod(8, "w2"), gone(9, "w1"),
        pod(10, "w2", ended=True), workflow(11, phase="Succeeded", done=1.0),
    ]  # fmt: skip

    assert judge(changes, NODES) == Verdict(
        over=(), twice=(), back=(), ends={"voda/job": ("Succeeded",)}, held={}, changes=11
    )


def test_pods_beyond_a_nodes_gpus_are_found_whatever_the_order() -> None:
    """One that was told to go holds what it has until it has ended; a node that nobody knows has none."""
    changes = [gone(9, "w0"), pod(3, "w1", gpus=2), pod(2, "w0"), pod(10, "w5", node="n7")]

    found = judge(changes, NODES)

    assert found.over == (
        "n0: 3 of 2 GPUs at version 3",
        "n7: 1 of 0 GPUs at version 10",
    )
    assert found.held == {"voda/w1": 2, "voda/w5": 1}


def test_a_gpu_that_is_promised_twice_is_found_before_any_pod_is_there() -> None:
    """Also where a foreign pod has it; a promise whose pod has ended is none."""
    foreign = Change(version=1, uid="x", now=Pod(
        name="a/b", key=PodKey(namespace="a", workflow="", job="", segment="", role=""), owners=(), node="n0", gpus=1,
        has_ended=False,
    ))  # fmt: skip
    changes = [foreign, workflow(2, "w0"), workflow(3, "w0", "w1"), pod(4, "w0", ended=True)]

    assert judge(changes, NODES).twice == ("n0: 3 of 2 GPUs at version 3",)


def test_what_ends_again_or_goes_back_is_found() -> None:
    """A Workflow ends once, and what was shown as done is done."""
    changes = [
        workflow(1, done=0.5), workflow(2, phase="Failed", done=0.25), workflow(3, done=0.25),
        workflow(4, phase="Succeeded", done=1.0), workflow(4, phase="Succeeded", done=1.0),
    ]  # fmt: skip
    found = judge(changes, NODES)

    assert found.back == ("voda/job train: 0.5000 -> 0.2500",)
    assert found.ends == {"voda/job": ("Failed", "Succeeded")}


def test_what_nobody_knew_for_a_moment_must_not_be_less_afterwards() -> None:
    """Unknown is nothing that went back; what was shown before it counts on."""
    changes = [workflow(1, done=0.5), workflow(2, done=None), workflow(3, done=0.5), workflow(4, done=None)]

    assert judge(changes, NODES).back == ()
    assert judge([*changes, workflow(5, done=0.25)], NODES).back == ("voda/job train: 0.5000 -> 0.2500",)


class Restarted:
    """An API server that was started anew at version 5: it has watched nothing before, and still knows what was."""

    def __init__(self, *, oldest: int = 0) -> None:
        self.oldest = oldest
        self.asked: set[str] = set()

    def get(self, path: str) -> Object:
        """What was there at a version: a pod came with version 3 and went with 4."""
        found = re.search(r"resourceVersion=(\d+)&resourceVersionMatch=Exact", path)
        version = int(found.group(1)) if found else 5
        if version < self.oldest:
            raise RefusedError(HTTPStatus.GONE, "compacted")
        items = [body(3)] if version == 3 and path.startswith(PODS) else []
        shown = version if found or path.partition("?")[0] in self.asked else 2
        return {"metadata": {"resourceVersion": str(shown)}, "items": items}

    def events(self, path: str, version: str, limit_s: float) -> Iterator[tuple[str, Object]]:
        """None of before its start."""
        self.asked.add(path.partition("?")[0])
        if int(version) < 5:
            raise RefusedError(HTTPStatus.GONE, f"{path}: too old")
        time.sleep(min(limit_s, 0.05))
        yield from ()


def body(version: int) -> Object:
    """A pod as the API server tells it."""
    metadata = {"name": "w0", "namespace": "voda", "uid": "w0", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"nodeName": "n0", "containers": [{"name": "main"}]}}


@pytest.mark.parametrize(("oldest", "gaps"), [(0, 0), (4, 2)], ids=["it knows them", "they are forgotten"])
def test_what_was_while_nobody_watched_is_asked_for(oldest: int, gaps: int) -> None:
    """Version by version; only what the server itself has forgotten may have been missed."""
    server = Restarted(oldest=oldest)
    with Recorder(server) as record:  # type: ignore[arg-type]  # all that it uses
        deadline_s = time.monotonic() + 10
        while time.monotonic() < deadline_s and (record.gaps, len(record.changes())) not in ((0, 2), (2, 0)):
            time.sleep(0.01)

    seen = [(change.version, change.now is None) for change in record.changes() if change.uid == "w0"]
    assert (record.gaps, seen) == (gaps, [] if gaps else [(3, False), (4, True)])
