"""Jobs' lives read from Workflows and pods."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.report.world import START_S, Building
from voda_flows.report.lives import JobLife, Segment, lives


def life(job: Building) -> JobLife:
    """The one job of a building."""
    (found,) = lives(job.workflow(), job.pods.values())
    return found


def test_a_job_that_waits_is_queued_and_says_what_its_gate_says() -> None:
    """A job before its first grant is Queued, with the queue's message."""
    found = life(Building(name="a").say("place 2 of 3"))

    assert (found.phase, found.message, found.gpus, found.label) == ("Queued", "place 2 of 3", 0, "a")
    assert found.segments == (Segment(number=0, queued_s=START_S, message="place 2 of 3"),)


def test_a_granted_job_starts_and_runs_once_its_driver_has_a_document() -> None:
    """Starting until an allocation document was written, Running from then on."""
    job = Building(name="a", asked={"epochs": "2"}).grant(5, ("w0", "n0"), ("w1", "n1"))
    assert (life(job).phase, life(job).gpus, life(job).size) == ("Starting", 2, 0)

    job.publish("w0", "w1").progress(50, 200)
    found = life(job)

    assert (found.phase, found.size, found.done, found.total, found.fraction) == ("Running", 2, 50, 200, 0.25)
    assert [(held.worker, held.node, held.start_s) for held in found.holding] == [
        ("w0", "n0", START_S + 5),
        ("w1", "n1", START_S + 5),
    ]


def test_workers_of_the_grow_gate_belong_to_the_segment() -> None:
    """A worker that came through the grow gate is held like the first ones, in the slots its pod wrote down."""
    found = life(Building(name="a").grant(5, ("w0", "n0")).publish("w0").grow(9, "w1", "n1", slot=1))

    assert [(held.worker, held.slots) for held in found.holding] == [("w0", ()), ("w1", (1,))]


def test_a_resize_begins_a_segment_of_its_own() -> None:
    """After a checkpoint the job waits at the next segment's gate; the old segment keeps its holdings and outcome."""
    job = Building(name="a").grant(5, ("w0", "n0")).publish("w0").stop(20, "resize", "w0")
    found = life(job)
    first, second = found.segments

    assert (found.phase, found.gpus) == ("Queued", 0)
    assert (first.outcome, first.ended_s, [held.end_s for held in first.holdings]) == (
        "resize",
        START_S + 20.5,
        [START_S + 20],
    )
    assert (second.number, second.queued_s, second.granted_s, second.holdings) == (1, START_S + 21, None, ())
    assert found.waited_s(START_S + 30) == 5 + 9


def test_a_gate_completed_by_somebody_else_does_not_count_as_a_grant() -> None:
    """`argo resume` answers a gate with its defaults: the job waits on, in the same segment, since its first gate."""
    found = life(Building(name="a").resume(4))

    assert (found.phase, len(found.segments), found.segments[0].queued_s) == ("Queued", 1, START_S)


@pytest.mark.parametrize(("state", "phase"), [("done", "Succeeded"), ("lost", "Queued")])
def test_the_checkpoint_step_says_how_a_segment_ended(state: str, phase: str) -> None:
    """`done` ends the job, `lost` brings it back to a gate."""
    found = life(Building(name="a").grant(5, ("w0", "n0")).publish("w0").stop(20, state, "w0"))

    assert (found.phase, found.segments[0].outcome) == (phase, state)


def test_a_stopped_workflow_is_asked_before_its_nodes() -> None:
    """After `argo stop` nodes may stay Running for ever; the Workflow's phase counts."""
    job = Building(name="a").grant(5, ("w0", "n0")).publish("w0")
    job.phase, job.finished = "Failed", 9.0

    assert (life(job).phase, life(job).ended_s) == ("Failed", START_S + 9)


def test_a_suspended_job_says_so_until_it_has_ended() -> None:
    """Nothing new of it is started, which its phase alone would not tell."""
    job = Building(name="a").grant(5, ("w0", "n0")).publish("w0")
    going, ended = job.workflow(), job.workflow()
    going["spec"]["suspend"] = ended["spec"]["suspend"] = True
    ended["status"]["phase"] = "Failed"

    assert [lives(body, job.pods.values())[0].status for body in (job.workflow(), going, ended)] == [
        "Running",
        "Running (suspended)",
        "Failed",
    ]


def test_a_failed_job_says_which_pod_failed_it_and_how() -> None:
    """Argo only says that a child failed; the pod behind it knows why."""
    job = Building(name="a").grant(5, ("w0", "n0"))
    job.end(f"{job.train}.driver", 6, "Error")
    job.nodes[f"{job.train}.driver"]["message"] = "cannot start: no such volume"
    job.finish(7, "Failed")
    job.nodes[job.root]["message"] = "child 'a-1' failed"

    assert life(job).message == "driver: cannot start: no such volume"


def test_driver_that_failed_takes_back_nothing_of_what_was_shown() -> None:
    """What it did since its checkpoint is done again, and progress stands still until then."""
    job = Building(name="a", asked={"epochs": "1"}).grant(5, ("w0", "n0")).publish("w0").progress(50, 100)
    job.end(f"{job.train}.driver", 8, "Failed")

    assert (life(job).done, life(job).total) == (50, 100)


def test_jobs_of_one_workflow_are_told_apart_by_their_names() -> None:
    """Several calls of the template in one Workflow are several jobs, called <workflow>/<job-name>."""
    one = Building(name="pipe", root="pipe.a", asked={"job-name": "a"}).grant(3, ("w0", "n0"))
    other = Building(name="pipe", root="pipe.b", asked={"job-name": "b"})
    workflow = one.workflow()
    for job in (one, other):
        job.nodes[job.root]["templateRef"] = {"name": "voda-elastic-job", "template": "job"}
    workflow["spec"] = {}
    workflow["status"]["nodes"] = {
        "pipe": {"name": "pipe", "type": "Steps", "templateName": "main", "phase": "Running"},
        **one.nodes,
        **other.nodes,
    }

    found = lives(workflow, one.pods.values())

    assert [(job.label, job.phase, job.gpus) for job in found] == [("pipe/a", "Starting", 1), ("pipe/b", "Queued", 0)]


def test_pods_of_others_and_broken_documents_change_nothing() -> None:
    """A document that cannot be read counts as none, and pods that belong to no node are left alone."""
    job = Building(name="a").grant(5, ("w0", "n0"))
    job.pods["a-driver-0"]["metadata"]["annotations"]["voda.dev/allocation"] = "{torn"
    stranger = {"metadata": {"name": "x", "namespace": "default"}, "status": {}}

    (found,) = lives(job.workflow(), [*job.pods.values(), stranger])

    assert (found.phase, found.gpus) == ("Starting", 1)


def test_the_recorded_life_of_a_real_controller_is_read_to_its_end() -> None:
    """What Argo 4.0.5 recorded of a whole elastic life: three segments, one resized, one lost, one done."""
    path = Path(__file__).parents[2] / "contract" / "argo_golden" / "elastic-job.json"
    final = json.loads(path.read_text(encoding="utf-8"))["final"]
    nodes = {node["name"]: _as_node(node) for node in final["nodes"]}
    nodes["elastic-job"]["templateRef"] = {"name": "voda-elastic-job", "template": "job"}
    meta = {"name": "elastic-job", "namespace": "argo", "uid": "u"}
    workflow = {"metadata": meta, "spec": {}, "status": {"phase": final["phase"], "nodes": nodes}}

    (found,) = lives(workflow, ())

    assert found.phase == "Succeeded"
    assert [segment.outcome for segment in found.segments] == ["resize", "lost", "done"]


def _as_node(node: dict[str, object]) -> dict[str, object]:
    """A recorded node in the shape of a status."""
    return {**node, "id": node["name"], "boundaryID": node.get("boundary", "")}
