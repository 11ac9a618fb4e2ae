"""Area cluster: how long a job's life takes on real Kubernetes and Argo, and which part of it is whose.

One computer is all nodes, so pods come from a warm page cache and nothing crosses a wire; steps take 20 ms, ranks
commit every step. A job is started, grown, shrunk and moved by hand: by what is free, and by who else wants it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.cluster.installed import Installation
from tests.cluster.nodes import NODES
from tests.e2e.rig import FOREVER
from tests.show.moments import (
    Moments,
    Parts,
    decided_s,
    part_rows,
    published_s,
    resizes,
    wait_for_record,
    warm_of,
)
from tests.show.registry import Row, at_most, exactly, figure, information, median_and_p95
from tests.show.shared_cluster import only, shared
from tests.show.witness import Witness
from voda_flows.objects import Object

SAMPLES, SAMPLES_QUICK = 20, 3
UP_S = 60.0
GATE_S = 3.0
GROWN_S = 10.0
SHRUNK_S = 2.0
STILL_S = 0.5
START: Parts = {
    "Argo: granted to pods made": ("granted_s", "made_s"),
    "kubelet: to the agents' processes": ("made_s", "began_s"),
    "imports": ("began_s", "warm_s"),
    "readiness, and the scheduler: to the document": ("warm_s", "published_s"),
    "kubelet: to the driver's eyes": ("published_s", "document_s"),
    "Horovod: to the world": ("document_s", "decided_s"),
    "Horovod: to the first step": ("decided_s", "first_step_s"),
}
GROWTH: Parts = {"the scheduler: decision to pods asked for": ("decision_s", "granted_s"), **START}


@figure(area="cluster")
def cluster_up(quick: bool) -> Iterator[Row]:
    """From nothing to ready nodes and a running controller; then Voda on it."""
    found = shared()
    yield at_most("cluster up, once built (3 nodes)", found.up_s, UP_S, "s")
    yield information("voda install, until the scheduler decides", f"{found.install_s:.0f} s")


@figure(area="cluster")
def starts(quick: bool) -> Iterator[Row]:
    """A job of one worker on free GPUs, again and again."""
    with only({"n0": 2, "n1": 2, "n2": 2}) as voda, Witness(voda) as witness:
        samples = [_start(voda, witness, f"start-{number}") for number in range(_count(quick))]
    waits = [sample["granted_s"] - sample["submitted_s"] for sample in samples]
    yield from median_and_p95("submit to gate granted", waits, GATE_S, "s")
    gate: Parts = {
        "Argo: to the open gate": ("submitted_s", "open_s"),
        "the scheduler: to the decision": ("open_s", "decision_s"),
        "the scheduler: to the grant": ("decision_s", "granted_s"),
    }
    yield from part_rows("submit to gate granted", samples, gate)
    yield from part_rows("grant to first step", samples, {"all of it": ("granted_s", "first_step_s"), **START})


@figure(area="cluster")
def resizes_on_a_cluster(quick: bool) -> Iterator[Row]:
    """One worker to two on another node, and back."""
    with only({"n0": 1, "n1": 1}) as voda, Witness(voda) as witness:
        name = voda.job("elastic", FOREVER, min_gpus="1", max_gpus="2")
        uid = voda.workflow(name)["metadata"]["uid"]
        grown, shrunk = [], []
        wait_for_record(voda, uid, "start")
        for number in range(_count(quick)):
            shrunk.append(_shrink(voda, witness, uid, number))
            grown.append(_grow(voda, witness, uid, shrunk[-1]))
        lost = sum(int(row["steps_lost"]) for row in resizes(voda, uid))
    reached = [sample["first_step_s"] - sample["decision_s"] for sample in grown]
    yield from median_and_p95("growth, decision to first step at the new size", reached, GROWN_S, "s")
    yield from median_and_p95("growth, standing still", [sample["still_s"] for sample in grown], STILL_S, "s")
    yield from part_rows("growth", grown, GROWTH)
    left = [sample["first_step_s"] - sample["decision_s"] for sample in shrunk]
    yield from median_and_p95("shrink, decision to first step at the new size", left, SHRUNK_S, "s")
    yield from median_and_p95("shrink, standing still", [sample["still_s"] for sample in shrunk], STILL_S, "s")
    parts: Parts = {
        "the scheduler and kubelet: to the driver's eyes": ("decision_s", "document_s"),
        "Horovod: until the old world is left": ("document_s", "decided_s"),
        "Horovod: to the first step": ("decided_s", "first_step_s"),
    }
    yield from part_rows("shrink", shrunk, parts)
    yield exactly("steps lost in these resizes", lost, 0)


@figure(area="cluster")
def moves(quick: bool) -> Iterator[Row]:
    """By a checkpoint to another node: for a moment somebody of a higher class wants the GPU."""
    with only({"n0": 1, "n1": 1}) as voda, Witness(voda) as witness:
        _cordon(voda, "n1")
        name = voda.job("moved", FOREVER)
        uid = voda.workflow(name)["metadata"]["uid"]
        wait_for_record(voda, uid, "start")
        samples = [_move(voda, witness, uid, number) for number in range(_count(quick))]
        lost = sum(int(row["steps_lost"]) for row in resizes(voda, uid))
    parts: Parts = {
        "all of it": ("decision_s", "first_step_s"),
        "standing still": ("last_step_s", "first_step_s"),
        "the scheduler, kubelet: to the last step": ("decision_s", "last_step_s"),
        "the checkpoint is written, the driver ends": ("last_step_s", "driver_ended_s"),
        "Argo, kubelet: checkpoint step, to the open gate": ("driver_ended_s", "open_s"),
        "the scheduler: to the grant": ("open_s", "granted_s"),
        **START,
    }
    yield from part_rows("checkpoint move to another node, from the decision to the first step", samples, parts)
    yield exactly("steps lost in these moves", lost, 0)


def _count(quick: bool) -> int:
    return SAMPLES_QUICK if quick else SAMPLES


def _start(voda: Installation, witness: Witness, name: str) -> Moments:
    """One start; the job is gone afterwards."""
    submitted_s = time.time()
    voda.job(name, FOREVER)
    uid = voda.workflow(name)["metadata"]["uid"]
    record = wait_for_record(voda, uid, "start")
    (granted_s,), open_s = witness.gates(uid, "Succeeded"), witness.gates(uid, "Running")[0]
    sample = {
        "submitted_s": submitted_s,
        "open_s": open_s,
        "decision_s": decided_s(voda, f"{name}/train", "Grant", (submitted_s, granted_s)),
        "granted_s": granted_s,
        **_begun(voda, witness, uid, record),
    }
    voda.reset()
    return sample


def _begun(voda: Installation, witness: Witness, uid: str, record: Object) -> Moments:
    """What came between a grant and the first step with its workers: of the newest worker."""
    worker = witness.pods(uid, "worker")[-1]["metadata"]
    began_s, warm_s = warm_of(voda, worker["name"])
    driver = witness.pods(uid, "driver")[-1]["metadata"]
    return {
        "made_s": witness.at("pod", worker["uid"], "made"),
        "began_s": began_s,
        "warm_s": warm_s,
        "published_s": witness.at("document", driver["uid"], str(record["generation"])),
        **{name: float(record[name]) for name in ("document_s", "decided_s", "first_step_s")},
    }


def _grow(voda: Installation, witness: Witness, uid: str, shrunk: Moments) -> Moments:
    """The growth that follows a shrinking."""
    record = wait_for_record(voda, uid, "grow", shrunk["first_step_s"])
    return {
        "decision_s": decided_s(voda, "elastic/train", "Grow", (shrunk["decision_s"], record["first_step_s"])),
        "granted_s": witness.gates(uid, "Succeeded", "grow-gate")[-1],
        "still_s": float(record["still_s"]),
        **_begun(voda, witness, uid, record),
    }


def _shrink(voda: Installation, witness: Witness, uid: str, number: int) -> Moments:
    """Somebody asks for a GPU, and has gone before it gets one."""
    driver = witness.pods(uid, "driver")[-1]["metadata"]["uid"]
    newest = max(int(row["generation"]) for row in resizes(voda, uid))
    asked_s = time.time()
    rival = voda.job(f"rival-{number}", FOREVER)
    witness.wait_for("document", driver, str(newest + 1))
    voda.store.delete("Workflow", "voda", rival)
    record = wait_for_record(voda, uid, "shrink", asked_s)
    decision_s = published_s(voda, "elastic/train", int(record["generation"]), record["first_step_s"])
    still_s = float(record["still_s"])
    return {"decision_s": decision_s, "still_s": still_s, **{
        name: float(record[name]) for name in ("document_s", "decided_s", "first_step_s")
    }}  # fmt: skip


def _move(voda: Installation, witness: Witness, uid: str, number: int) -> Moments:
    """Stop for somebody of a higher class, who has gone before the GPU is free; meanwhile the other node is open."""
    driver = witness.pods(uid, "driver")[-1]["metadata"]["uid"]
    asked_s = time.time()
    here, there = ("n0", "n1") if number % 2 == 0 else ("n1", "n0")
    rival = voda.job(f"urgent-{number}", FOREVER, priority="high")
    witness.wait_for("document", driver, "stop")
    voda.store.delete("Workflow", "voda", rival)
    _cordon(voda, here)
    _uncordon(voda, there)
    record = wait_for_record(voda, uid, "start", asked_s)
    stop = wait_for_record(voda, uid, "stop", asked_s)
    granted_s, open_s = witness.gates(uid, "Succeeded")[-1], witness.gates(uid, "Running")[-1]
    return {
        "decision_s": decided_s(voda, "moved/train", "Stop", (asked_s, stop["last_step_s"])),
        "last_step_s": float(stop["last_step_s"]),
        "driver_ended_s": witness.at("pod", driver, "ended"),
        "open_s": open_s,
        "granted_s": granted_s,
        **_begun(voda, witness, uid, record),
    }


def _cordon(voda: Installation, node: str) -> None:
    voda.cluster.api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": True}})


def _uncordon(voda: Installation, node: str) -> None:
    voda.cluster.api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": None}})
