"""The demo's script, what it holds its record against, and its folder; the demo itself runs in tests/e2e."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scheduler_core.errors import Conflict, NotFound, VodaError
from tests.unit.cli.world import World
from tests.unit.report.five_jobs import five_jobs
from tests.unit.report.world import Building, node
from voda_flows.demo import run as demo
from voda_flows.demo.cluster_stage import LABEL, ClusterStage
from voda_flows.demo.local_stage import LocalStage, empty_home
from voda_flows.demo.script import ACTS, acts
from voda_flows.demo.verify import checks
from voda_flows.local.world import LocalWorld
from voda_flows.objects import Object
from voda_flows.report.lives import lives
from voda_flows.report.record import Record


def test_a_record_that_shows_everything_holds() -> None:
    """Growth, shrinking, preemption and resumption, nothing lost, accuracy reached: all but the jobs that failed."""
    found = {check.figure: (check.value, check.holds) for check in checks(five_jobs(), 5)}

    assert found == {
        "jobs succeeded": ("3 of 5", False),
        "in-place growths": ("1", True),
        "in-place shrinks": ("2", True),
        "preempted to zero and resumed": ("digits, text", True),
        "steps lost in graceful changes": ("0", True),
        "accuracy of digits": ("0.978", True),
    }


def test_a_step_lost_in_a_graceful_change_does_not_hold() -> None:
    """Whoever lost it is named."""
    made = five_jobs()
    text = made.jobs[1]
    happened = tuple(replace(event, steps_lost=2) if event.kind == "preempt" else event for event in text.happened)
    worse = replace(made, jobs=(made.jobs[0], replace(text, happened=happened)))

    lost = next(check for check in checks(worse, 5) if check.figure.startswith("steps lost"))

    assert (lost.value, lost.holds) == ("text 2", False)


def test_an_empty_record_holds_nothing() -> None:
    """No jobs, no figures."""
    empty = Record(taken_s=0.0, nodes=(), jobs=())

    assert [check.holds for check in checks(empty, 5)] == [False, False, False, False, True, False]


def test_under_a_policy_that_resizes_nobody_no_resize_is_looked_for() -> None:
    """Nor does any act wait for one: text comes when digits trains, on however many GPUs."""
    figures = [check.figure for check in checks(five_jobs(), 5, resizes=False)]
    assert figures == [
        "jobs succeeded",
        "preempted to zero and resumed",
        "steps lost in graceful changes",
        "accuracy of digits",
    ]

    digits = Building(name="digits", uid="1").grant(1, ("w0", "n0")).publish("w0").progress(2, 36)
    known = {life.workflow: life for life in lives(digits.workflow(), digits.pods.values())}
    assert [row[2].when(known) for row in (acts(resizes=True), acts(resizes=False))] == [False, True]
    assert [act.example for act in acts(resizes=False)] == [act.example for act in ACTS]


def test_the_policy_of_a_demo_is_a_setting_of_its_world(tmp_path: Path) -> None:
    """One that there is not is refused before anything is started."""
    said = World(tmp_path / "home").voda("demo", "--policy", "afs-l", "--folder", str(tmp_path / "demo"))

    assert said.code == 2
    assert "expected one of afs_l, elastic_fifo" in said.err
    assert said.err.splitlines()[0].endswith("got 'afs-l'; did you mean 'afs_l'?")


def test_acts_wait_for_events_of_the_jobs_before_them() -> None:
    """Text comes when digits has grown and trains on four, pipeline when text trains."""
    digits = Building(name="digits", uid="1").grant(1, ("w0", "n0"), ("w1", "n0"), ("w2", "n1"), ("w3", "n1"))
    text_act, pipeline_act = ACTS[2], ACTS[3]

    def seen(*jobs: Building) -> dict[str, object]:
        found = [life for job in jobs for life in lives(job.workflow(), job.pods.values())]
        return {life.workflow: life for life in found}

    assert not text_act.when(seen(digits))  # type: ignore[arg-type]
    digits.publish("w0", "w1", "w2", "w3").progress(10, 900)
    assert text_act.when(seen(digits))  # type: ignore[arg-type]
    text = Building(name="text", uid="2").grant(5, ("w0", "n1"))
    assert not pipeline_act.when(seen(digits, text))  # type: ignore[arg-type]
    text.publish("w0").progress(1, 9)
    assert pipeline_act.when(seen(digits, text))  # type: ignore[arg-type]


def director(world: World, now: list[float]) -> demo.Director:
    """The demo's director on local mode's objects."""
    stage = LocalStage(world.home, demo.root_folder())
    return demo.Director(stage=stage, root=demo.root_folder(), clock=lambda: now[0])


def test_the_director_submits_when_it_is_time_and_knows_the_end(world: World) -> None:
    """Each example once, in order; the demo is over when all were submitted and have ended."""
    now = [0.0]
    made = director(world, now)

    assert not made.act()
    assert [body["metadata"]["name"] for body in world.store.list("Workflow")] == ["rigid"]
    for _ in ACTS:
        now[0] += demo.PATIENCE_S + 1
        assert not made.act()
    assert made.submitted == [act.example for act in ACTS]
    assert "not seen in" in made.note
    for name in made.submitted:
        world.store.merge_patch("Workflow", "default", name, {"status": {"phase": "Succeeded"}})
    assert made.act()


def test_the_director_gives_up_in_the_end(world: World) -> None:
    """A demo that does not end is a failure, not a wait."""
    now = [0.0]
    made = director(world, now)
    now[0] = demo.LIMIT_S + 1

    with pytest.raises(VodaError, match="expected the demo to end within"):
        made.act()


def test_the_folder_of_an_earlier_demo_is_used_again_and_no_other(tmp_path: Path) -> None:
    """State of an earlier demo goes; a folder with something else in it is left alone."""
    folder = tmp_path / "demo"
    demo.prepare_folder(folder)
    home = empty_home(folder)
    (home / "old").touch()
    (folder / "record.json").touch()
    demo.prepare_folder(folder)

    assert list(empty_home(folder).iterdir()) == []

    (folder / "thesis.tex").touch()
    with pytest.raises(Conflict, match=r"found thesis\.tex"):
        demo.prepare_folder(folder)
    assert (folder / "thesis.tex").exists()


def on_cluster(world: World) -> ClusterStage:
    """The demo's stage on a cluster, whose objects are those of a local store."""
    return ClusterStage(LocalWorld(world.home), "default", "-n default")


def workflow(name: str, **labels: str) -> Object:
    """A Workflow of one step of its user's own."""
    script = {"name": "main", "script": {"image": "somewhere/else:1", "command": ["python"], "source": "print()"}}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name, "namespace": "default", **({"labels": labels} if labels else {})},
        "spec": {"entrypoint": "main", "templates": [script]},
    }


def test_on_a_cluster_a_users_own_steps_run_in_the_image_of_the_installation(world: World) -> None:
    """What the installed template has as its default; and the demo's Workflows are known by a label."""
    stage = on_cluster(world)
    stage.start()

    placed = stage.placed(workflow("pipeline", team="a"))

    assert placed["spec"]["templates"][0]["script"]["image"] == "voda-train:latest"
    assert placed["metadata"]["labels"] == {"team": "a", LABEL: "yes"}


def test_on_a_cluster_nobody_elses_job_is_touched(world: World) -> None:
    """A Workflow of the demo's name that is no demo's is said by name; one that is goes."""
    stage = on_cluster(world)
    world.store.create(workflow("rigid"))
    world.store.create(workflow("digits", **{LABEL: "yes"}))

    with pytest.raises(Conflict, match=r"expected no Workflow called 'rigid', .* `voda delete rigid -n default`"):
        stage.start()
    assert [body["metadata"]["name"] for body in world.store.list("Workflow")] == ["digits", "rigid"]


def test_on_a_cluster_the_demo_wants_as_many_gpus_as_its_jobs_compete_for(world: World) -> None:
    """With others the record could not show what it must."""
    world.store.create(node("n2", 1))

    with pytest.raises(Conflict, match="expected 4 free GPUs for the demo's jobs to compete for, found 5"):
        on_cluster(world).start()


def test_on_a_cluster_without_voda_the_demo_says_so(world: World) -> None:
    """The template is what jobs need there."""
    world.store.delete("WorkflowTemplate", "default", "voda-elastic-job")

    with pytest.raises(NotFound, match="install Voda with `voda install`"):
        on_cluster(world).start()
