"""Area cluster, real life: GPUs that come free when a job is ended, and a job that changes its size very often."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.cluster.cases import argo, explained, freed_after_s, kubectl, root, trains
from tests.cluster.installed import NAMESPACE, Installation, install, uninstall
from tests.cluster.places import REPOSITORY
from tests.e2e.job_record import epochs, loss
from tests.show.registry import Row, at_most, exactly, figure, information
from tests.show.shared_cluster import only
from voda_flows.objects import phase_of

DEEDS, DEEDS_QUICK = 5, 1
FREE_S = 5.0
IN_PLACE, IN_PLACE_QUICK = 60, 4
CHECKPOINTS, CHECKPOINTS_QUICK = 20, 2
SAMPLES, STEP_S = 2400, 0.03
LIFE = f"python {REPOSITORY}/tests/e2e/train_life.py {SAMPLES} {STEP_S}"
LONG = "100000"
STATUS_BYTES = 1_000_000
#: Two GPUs of the cluster's are free; strangers hold the others.
FREE = {"n2": 2}


@figure(area="cluster")
def ends(quick: bool) -> Iterator[Row]:
    """From `argo stop`, `argo terminate`, deletion, and deletion of the namespace to the last GPU free."""
    times = DEEDS_QUICK if quick else DEEDS
    with only(FREE) as made:
        deeds: dict[str, Callable[[str], object]] = {
            "argo stop": lambda name: argo(made, "stop", name),
            "argo terminate": lambda name: argo(made, "terminate", name),
            "kubectl delete workflow": lambda name: kubectl(made, "delete", "workflow", name, "--wait=false"),
        }
        for said, deed in deeds.items():
            took_s = [_one_end(made, f"ends-{said.split()[1]}-{number}", deed) for number in range(times)]
            yield at_most(f"ends: {said} until its 2 GPUs are free, longest of {times}", max(took_s), FREE_S, "s")
        space = ("delete", "namespace", NAMESPACE, "--wait=false")
        asked_s: list[float] = []

        def delete(name: str) -> None:
            began_s = time.monotonic()
            kubectl(made, *space)
            made.until(lambda: any("deletionTimestamp" in pod["metadata"] for pod in made.pods(name)))
            asked_s.append(time.monotonic() - began_s)

        took = _one_end(made, "ends-namespace", delete)
        yield at_most("ends: kubectl delete namespace until its job's 2 GPUs are free", took, FREE_S, "s")
        yield information("ends: of which Kubernetes waits before it asks the pods to go", f"{asked_s[0]:.1f} s")
        uninstall(made)
        install(made.cluster, made.settings).store.close()


def _one_end(made: Installation, name: str, deed: Callable[[str], object]) -> float:
    """Seconds until a running job's GPUs are free."""
    made.job(name, LIFE, epochs=LONG, min_gpus="2", max_gpus="2")
    trains(made, name, size=2)
    return freed_after_s(made, name, lambda: deed(name))


@dataclass(kw_only=True)
class Driven:
    """A job whose size is changed again and again by rivals that come and go.

    Attributes:
        made: Where.
        name: The job's Workflow.
        sizes: Bytes of its status at every change that was seen.
        rivals: How many have come.
    """

    made: Installation
    name: str
    sizes: list[int] = field(default_factory=lambda: [0])
    rivals: int = 0

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for something of the job, measuring its status all along.

        Raises:
            AssertionError: It never came.
        """

        def measured() -> bool:
            status = self.made.workflow(self.name).get("status") or {}
            self.sizes.append(len(json.dumps(status, separators=(",", ":"))))
            return holds()

        assert self.made.until(measured), f"expected {what}\n{self.made.story(self.name)}"

    def resizes(self, kind: str) -> int:
        """How often its drivers have told of a change of that kind."""
        paths = root(self.made, self.name).glob("segment-*/resizes.jsonl")
        rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
        return sum(row["kind"] == kind for row in rows)

    def displace(self, gpus: int) -> None:
        """A rival takes so many of its two GPUs, goes, and the job has both again."""
        kind, before = ("grow", self.resizes("grow")) if gpus == 1 else ("start", self.resizes("start"))
        self.rivals += 1
        rival = self.made.job(f"rival-{self.rivals}", LIFE, min_gpus=str(gpus), max_gpus=str(gpus), priority="high")
        self.until(lambda: self._is_granted(rival), f"{rival} to be granted")
        self.made.store.delete("Workflow", NAMESPACE, rival)
        self.until(lambda: self.resizes(kind) > before and self._is_whole(), f"{self.name} to be whole again")

    def _is_granted(self, name: str) -> bool:
        life = self.made.life(name)
        return life is not None and bool(life.segments) and life.segments[-1].granted_s is not None

    def _is_whole(self) -> bool:
        life = self.made.life(self.name)
        return life is not None and life.phase == "Running" and life.size == 2


@figure(area="cluster", lane="real life")
def resizes(quick: bool) -> Iterator[Row]:
    """One job that is resized very often: what that does to its Workflow's status, and what is lost."""
    in_place, between = (IN_PLACE_QUICK, CHECKPOINTS_QUICK) if quick else (IN_PLACE, CHECKPOINTS)
    with only(FREE) as made:
        job = Driven(made=made, name=made.job("often", LIFE, epochs=LONG, min_gpus="1", max_gpus="2"))
        trains(made, job.name, size=2)
        for number in range(between):
            job.displace(gpus=2)
            for _ in range(in_place * (number + 1) // between // 2 - in_place * number // between // 2):
                job.displace(gpus=1)
            sys.stderr.write(f"resizes: {job.rivals} rivals, status {job.sizes[-1]} bytes\n")
        changed = {kind: job.resizes(kind) for kind in ("grow", "shrink", "stop", "start")}
        yield exactly(
            "resizes: in place, growths and shrinkings", changed["grow"] + changed["shrink"] >= in_place, True
        )
        yield exactly("resizes: through a checkpoint", changed["start"] - 1, between)
        yield information("resizes: as drivers tell of them", json.dumps(changed))
        yield at_most("resizes: status of its Workflow, largest", max(job.sizes), STATUS_BYTES, "bytes")
        yield from _pinned(job)
        argo(made, "stop", job.name)
        made.wait_ended(job.name)
        lost, done = loss(root(made, job.name)), epochs(root(made, job.name), SAMPLES)
        yield exactly("resizes: steps lost in place and between segments", (lost.in_place, lost.between), (0, 0))
        yield exactly("resizes: epochs done once each, none left out", done == list(range(len(done))), True)


def _pinned(job: Driven) -> Iterator[Row]:
    """With its budget used up it is left alone, and that is said."""
    made = job.made
    made.configure(**made.settings, segments_limit="1")
    rival = made.job("rival-last", LIFE, min_gpus="2", max_gpus="2", priority="high")
    job.until(lambda: "waits for 2 GPUs" in explained(made, rival), f"{rival} to wait")
    yield exactly("resizes: with its budget used up it keeps its GPUs", job._is_whole(), True)
    yield exactly("resizes: voda explain says that it is pinned", "It is pinned" in explained(made, job.name), True)
    made.store.delete("Workflow", NAMESPACE, rival)
    assert phase_of(made.workflow(job.name)) == "Running"
