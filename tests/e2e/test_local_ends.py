"""Jobs that fail, hang, or are deleted, in a real world of local mode: how they end; nothing is left of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.local_ends import Ending, always_fails, ends, hangs, is_deleted
from tests.e2e.local_world import LocalWorld, local_world
from voda_flows.report import jobs
from voda_flows.report.sources import Volumes, Workflows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalWorld]:
    """One world for all of them; each job has it for itself."""
    with local_world(tmp_path_factory.mktemp("world") / "home", "1x2") as made:
        yield made


def test_a_script_that_always_fails_ends_its_job_failed(world: LocalWorld) -> None:
    """Each start that fails counts against the retry limit; the last words are the script's, and its GPU is free."""
    found = always_fails(world, retry_limit=3)

    assert "w0.4's command ended with exit code 1 before it joined the training" in found.message, world.logs()
    assert found == Ending(phase="Failed", message=found.message, segments=("lost", "failed"))


def test_what_a_workflow_tells_of_a_job_is_what_lies_beside_its_checkpoints(world: LocalWorld) -> None:
    """End, verdict, resizes and rows of a segment, as far as its record keeps their digits."""
    (life,) = jobs.find(world.store, "default", ends(world)).lives
    (written,) = Volumes(home=world.home).files([life])[life.id].values()
    (told,) = Workflows(pods=None).files([life])[life.id].values()

    assert (told.end, told.verdict) == (written.end, written.verdict), world.logs()
    assert [(one["kind"], one["to_size"]) for one in told.resizes] == [("start", 1)]
    assert [one["first_step_s"] for one in told.resizes] == [
        pytest.approx(one["first_step_s"], abs=0.001) for one in written.resizes
    ]
    assert [(one["kind"], one["epoch"], one["step"]) for one in told.rows] == [
        (one["kind"], one["epoch"], one["step"]) for one in written.rows
    ]
    assert len(told.rows) > 1


def test_a_script_that_hangs_is_ended_by_its_deadline(world: LocalWorld) -> None:
    """The Workflow fails, and its pods end, though the script never looks up."""
    found = hangs(world, 30, "hangs-training")

    assert found == Ending(phase="Failed", message=found.message, segments=()), world.logs()


def test_a_running_job_that_is_deleted_leaves_nothing(world: LocalWorld) -> None:
    """No Workflow, pod, process, slot or key; its checkpoints stay on the volume."""
    assert is_deleted(world) == Ending(phase="", message="", segments=()), world.logs()
