"""Whole lives of jobs on real Kubernetes and Argo: Horovod in pods, GPUs given by the scheduler that runs there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.cluster.installed import EXAMPLES, Installation
from tests.cluster.places import REPOSITORY
from tests.cluster.trial import PODS, delete_pods, pod
from tests.e2e.job_record import epochs, loss
from voda_flows.objects import Object, phase_of
from voda_flows.report.files import SegmentFiles

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(900)]
SAMPLES = 120
#: Ten steps an epoch; each worker adds a row for every step.
LIFE = f"python {REPOSITORY}/tests/e2e/train_life.py {SAMPLES} 0.2"


@pytest.fixture
def voda(installed: Installation) -> Iterator[Installation]:
    """Voda with nothing on it, and foreign pods gone at the end."""
    installed.reset()
    yield installed
    delete_pods(installed.cluster)


def kinds(files: Mapping[int, SegmentFiles]) -> list[tuple[str, int, int, int]]:
    """Kind, sizes and lost steps of every resize, in order."""
    return [
        (str(row["kind"]), int(row["from_size"]), int(row["to_size"]), int(row["steps_lost"]))
        for each in files.values()
        for row in each.resizes
    ]


def occupy(voda: Installation, gpus_by_node: Mapping[str, int]) -> None:
    """GPUs held by pods that are not ours."""
    for node, gpus in gpus_by_node.items():
        voda.cluster.api.post(PODS, pod(f"foreign-{node}", "sleep", "3600", node=node, gpus=gpus))
    voda.until(lambda: all(phase_of(found) == "Running" for found in foreign(voda)))


def foreign(voda: Installation) -> list[Object]:
    """The pods that hold GPUs and are not ours."""
    return [body for key, body in voda.store.snapshot("Pod").items() if key.name.startswith("foreign-")]


def test_an_example_trains_on_two_workers_and_succeeds(voda: Installation) -> None:
    """`digits` as it is shipped but shorter: two pods, one Horovod world, all its epochs, and nothing is left held."""
    name = voda.submit(EXAMPLES / "digits.yaml", min_gpus="2", max_gpus="2", epochs="2")

    ended = voda.wait_ended(name)

    (files,) = voda.files(name).values()
    assert (phase_of(ended), ended["status"].get("message")) == ("Succeeded", None), voda.story(name)
    assert kinds({0: files}) == [("start", 0, 2, 0)]
    assert [row["world_size"] for row in files.rows if row["kind"] == "epoch"] == [2, 2]
    assert (files.end["outcome"], files.verdict["state"]) == ("done", "done")
    assert {phase_of(each) for each in voda.pods(name)} == {"Succeeded"}
    assert voda.gpus_held() == 0


def test_a_job_grows_and_shrinks_in_place(voda: Installation) -> None:
    """It takes a GPU that becomes free and gives it up for a job that waits, and loses no step."""
    occupy(voda, {"n0": 1, "n1": 2, "n2": 2})
    name = voda.job("elastic", LIFE, min_gpus="1", max_gpus="2", epochs="60")
    voda.until_life(name, lambda life: life.phase == "Running" and life.size == 1)

    voda.cluster.api.delete(f"{PODS}/foreign-n0?gracePeriodSeconds=1")
    voda.until_life(name, lambda life: life.size == 2)
    voda.until(lambda: ("grow", 1, 2, 0) in kinds(voda.files(name)))
    rival = voda.job("rival", LIFE, min_gpus="1", max_gpus="1", epochs="1")
    ended = [voda.wait_ended(each) for each in (rival, name)]

    root = next((voda.volume / "voda" / ended[1]["metadata"]["uid"]).iterdir())
    assert [phase_of(each) for each in ended] == ["Succeeded"] * 2, voda.story(name)
    assert kinds(voda.files(name))[:3] == [("start", 0, 1, 0), ("grow", 1, 2, 0), ("shrink", 2, 1, 0)]
    assert (epochs(root, SAMPLES), loss(root).in_place) == (list(range(60)), 0)
    assert len(voda.files(name)) == 1


def test_a_job_is_preempted_to_its_checkpoint_and_resumes(voda: Installation) -> None:
    """For one of a higher class it stops at a commit and gives up all; when that is done it goes on where it was."""
    occupy(voda, {"n0": 1, "n1": 2, "n2": 2})
    name = voda.job("patient", LIFE, epochs="30")
    voda.until_life(name, lambda life: life.phase == "Running" and life.size == 1)
    voda.until(lambda: bool(kinds(voda.files(name))))

    urgent = voda.job("urgent", LIFE, epochs="1", priority="high")
    ended = [voda.wait_ended(each) for each in (urgent, name)]

    root = next((voda.volume / "voda" / ended[1]["metadata"]["uid"]).iterdir())
    assert [phase_of(each) for each in ended] == ["Succeeded"] * 2, voda.story(name)
    assert kinds(voda.files(name)) == [("start", 0, 1, 0), ("stop", 1, 0, 0), ("start", 0, 1, 0)]
    assert [each.verdict["state"] for each in voda.files(name).values()] == ["resize", "done"]
    assert (epochs(root, SAMPLES), loss(root).between) == (list(range(30)), 0)
