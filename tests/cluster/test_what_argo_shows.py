"""What people see of a job in Argo, in its UI and by ``argo get``: the Workflow's own fields, on a real controller.

One story is lived once and looked at by all tests: ``long`` trains on both GPUs, gives one to ``short``, takes it back,
is stopped for ``urgent``, goes on from its checkpoint, and ends.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property

import pytest

from tests.cluster.installed import NAMESPACE, Installation
from tests.cluster.places import REPOSITORY
from tests.cluster.programs import GROUPS, find_built
from tests.cluster.trial import PODS, delete_pods, pod
from voda_flows.objects import Object, phase_of
from voda_flows.report.gather import gather
from voda_flows.report.lives import JobLife
from voda_flows.report.record import JobRecord
from voda_flows.runtime.segment_record import RECORD_BYTES, stored_bytes
from voda_flows.workflows.tree import parameters

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]
LIFE = f"python {REPOSITORY}/tests/e2e/train_life.py"
_LONG_S = 400.0
EPOCHS = 200


@dataclass(frozen=True, kw_only=True)
class Story:
    """What there is to see of the three jobs at the end, and of the long one on its way.

    Attributes:
        voda: Where they ran.
        queued: What the gate of ``long`` said while ``urgent`` trained.
        living: What was told of ``long`` while its second segment went on.
    """

    voda: Installation
    queued: str
    living: JobRecord

    @property
    def hundredths(self) -> int:
        """How far the first segment came, in hundredths of an epoch, as its checkpoint step told."""
        told = json.loads(parameters(self.called("checkpoint-0")[0], "outputs")["record"])
        return round(100 * float(told["end"]["epoch"]))

    @cached_property
    def long(self) -> Object:
        """The Workflow with everything in it."""
        return self.voda.workflow("long")

    def nodes(self, workflow: str = "long") -> list[Object]:
        """What the UI draws, in order of start; what holds steps together, and what was not run, left out."""
        nodes = (self.voda.workflow(workflow)["status"]["nodes"]).values()
        drawn = [node for node in nodes if node["type"] not in ("StepGroup", "Skipped")]
        return sorted(drawn, key=lambda node: (node["startedAt"], node["name"]))

    def called(self, name: str) -> list[Object]:
        """The nodes of ``long`` that are called so."""
        return [node for node in self.nodes() if node["displayName"] == name]


@pytest.fixture(scope="module")
def story(installed: Installation) -> Story:
    """The story, lived."""
    voda = installed
    voda.reset()
    for node, gpus in (("n0", 1), ("n1", 1), ("n2", 2)):
        voda.cluster.api.post(PODS, pod(f"foreign-{node}", "sleep", "3600", node=node, gpus=gpus))
    try:
        return live(voda)
    finally:
        delete_pods(voda.cluster)


def live(voda: Installation) -> Story:
    """One job grows, shrinks, is preempted and goes on, as others come and go."""
    voda.job("long", f"{LIFE} 240 0.3 hurries", epochs=str(EPOCHS), min_gpus="1", max_gpus="2")
    voda.until_life("long", lambda life: life.size == 2, _LONG_S)
    voda.job("short", f"{LIFE} 120 0.1", epochs="1", max_gpus="1")
    voda.wait_ended("short", _LONG_S)
    voda.until_life("long", lambda life: life.size == 2, _LONG_S)
    voda.job("urgent", f"{LIFE} 120 0.3", epochs="12", min_gpus="2", max_gpus="2", priority="high")
    queued = voda.until_life("long", lambda life: "may start" in life.segments[-1].message, _LONG_S)
    voda.wait_ended("urgent", _LONG_S)
    living: list[JobRecord] = []

    def goes_on(life: JobLife) -> bool:
        living[:] = gather(voda.store, None, [life]).jobs
        return any(event.kind == "resume" for event in living[0].happened)

    voda.until_life("long", goes_on, _LONG_S)
    voda.wait_ended("long", _LONG_S)
    return Story(voda=voda, queued=queued.segments[-1].message, living=living[0])


def test_the_history_reads_by_itself(story: Story) -> None:
    """What is drawn of a job, in words: gates, workers by id and place, growths, checkpoints, segments by number."""
    names = [node["displayName"] for node in story.nodes() if node["templateName"] != "worker"]
    workers = {node["displayName"] for node in story.nodes() if node["templateName"] == "worker"}

    assert names[:5] == ["long", "segment-0", "gate", "train", "driver"]
    assert {"grow", "grow-gate", "checkpoint-0", "segment-1", "checkpoint-1"} <= set(names)
    assert workers
    assert all(re.fullmatch(r"w\d+-on-n[01]", worker) for worker in workers)


def test_what_went_well_is_green(story: Story) -> None:
    """Nothing of it failed: a growth, a worker that was dropped and a preemption are no errors."""
    assert {node["displayName"]: node["phase"] for node in story.nodes() if node["phase"] != "Succeeded"} == {}
    assert (story.long["status"]["phase"], story.long["status"].get("message")) == ("Succeeded", None)


def test_gates_tell_place_and_time_and_then_what_was_given(story: Story) -> None:
    """While a job waits its gate says where in the queue it is; answered, what it got, by which decision."""
    start = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"
    assert re.fullmatch(rf"queued: place 1, waits for 1 GPU; may start at {start}", story.queued), story.queued
    (first, second) = [node["message"] for node in story.called("gate")]
    assert re.fullmatch(r"[12] GPUs?: 1 on n\d(, 1 on n\d)?; decision \d+, elastic_fifo", first), first
    assert re.match(r"[12] GPUs?: 1 on n\d(, 1 on n\d)?; decision \d+", second), second


def test_each_resize_has_its_reason_on_a_node(story: Story) -> None:
    """A worker that was dropped says for whom, a growth by which decision, a driver why it was told to stop."""
    said = [(node["displayName"], node.get("message", "")) for node in story.nodes()]
    dropped = [text for name, text in said if name.startswith("w") and text]
    grown = [node["message"] for node in story.called("grow-gate") if "more GPU" in node.get("message", "")]
    stopped = [node["message"] for node in story.called("driver") if node.get("message")]

    assert any("makes room for short (0 -> 1)" in text for text in dropped), said
    assert grown, said
    assert all(re.match(r"1 more GPU: 1 on n\d; ", text) for text in grown), grown
    assert len(stopped) == 1
    assert stopped[0].startswith("preempted: its GPUs are given to jobs before it; makes room for urgent (0 -> 2)")


def test_progress_is_that_of_the_training(story: Story) -> None:
    """A driver counts hundredths of an epoch of what remained when it began, and the job has done them all.

    Argo, which reads that every few seconds, may miss the last word of one that was stopped, and counts it as done.
    """
    first, second = [node["progress"] for node in story.called("driver")]
    done, whole, life = story.hundredths, 100 * EPOCHS, story.living.life

    assert first in (f"{done}/{done}", f"{whole}/{whole}")
    assert second == f"{whole - done}/{whole - done}"
    assert done <= life.done < life.total == whole, "whatever Argo has missed"
    assert story.long["status"]["progress"].split("/")[0] == story.long["status"]["progress"].split("/")[1]


def test_outputs_sum_the_job_up(story: Story) -> None:
    """Last metric, resizes and GPU seconds: on the last checkpoint step, and on the Workflow itself."""
    outputs = parameters(story.called("long")[0], "outputs")

    assert list(outputs) == ["metric", "resizes", "gpu-seconds"]
    assert outputs == {name: parameters(story.called("checkpoint-1")[0], "outputs")[name] for name in outputs}
    assert re.fullmatch(r"loss \d\.\d+", outputs["metric"]), outputs
    assert {"1 preempt", "1 resume"} <= set(outputs["resizes"].split(", ")), outputs
    life = story.voda.life("long")
    assert life is not None
    held_s = [held.gpus * ((held.end_s or 0.0) - held.start_s) for each in life.segments for held in each.holdings]
    assert 0 < int(outputs["gpu-seconds"]) <= sum(held_s)


def test_a_workflow_tells_what_lies_on_the_volume(story: Story) -> None:
    """Events and numbers from records are those from files, steps and resizes included."""
    life = story.voda.life("long")
    assert life is not None
    (told,) = gather(story.voda.store, None, [life]).jobs
    files = story.voda.files("long")

    happened = [event.kind for event in told.happened]
    assert [kind for kind in happened if kind in ("start", "shrink", "preempt", "resume", "end")] == [
        *("start", "shrink", "preempt", "resume", "end"),
    ]
    assert "grow" in happened
    assert {number: [str(one["kind"]) for one in left.resizes] for number, left in files.items()} == kinds(story)
    assert told.numbers.steps_lost == 0
    assert told.numbers.metric == "loss"


def kinds(story: Story) -> dict[int, list[str]]:
    """Kinds of the resizes in each segment's record."""
    life = story.voda.life("long")
    assert life is not None
    found: dict[int, list[str]] = {}
    for segment in life.segments:
        table = json.loads(segment.record)["resizes"]
        found[segment.number] = [str(row[table["columns"].index("kind")]) for row in table["values"]]
    return found


def test_a_job_that_lives_is_told_by_its_driver(story: Story) -> None:
    """Through the API server: what happened in the segment that goes on, and what it reports."""
    assert len(story.living.life.segments) == 2
    assert story.living.life.phase == "Running"
    assert [row for row in story.living.rows if row["segment"] == 1]


def test_records_are_small_where_they_stand(story: Story) -> None:
    """Twice in a status, on the step and on its try, and nowhere else."""
    text = json.dumps(story.long)
    said = [row["value"] for node in story.nodes() for row in (node.get("outputs") or {}).get("parameters") or ()
            if row["name"] == "record"]  # fmt: skip

    assert len(said) == 4
    assert all(stored_bytes(record) <= RECORD_BYTES for record in said)
    assert text.count('\\"version\\":1') == 4


def test_argo_get_shows_it(story: Story) -> None:
    """The command line of Argo draws the same names, messages and outputs."""
    shown = subprocess.run(
        [argo(), "get", "long", "-n", NAMESPACE, "--kubeconfig", str(story.voda.cluster.kubeconfig)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    assert phase_of(story.long) in shown
    for word in ("segment-1", "grow-gate", "checkpoint(0)", "-on-n", "makes room for urgent"):
        assert word in shown, shown


def argo() -> str:
    """The argo of the cluster's programs, which were all built before it came up."""
    built = [folder / "bin/argo" for group in GROUPS if (folder := find_built(group))]
    found = next((path for path in built if path.exists()), None)
    assert found is not None, built
    return str(found)
