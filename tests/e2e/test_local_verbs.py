"""``terminate`` and ``retry`` of a job that trains, in a real world of local mode."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.job_record import epochs, loss
from tests.e2e.local_world import LIFE, NAMESPACE, LocalWorld, local_world
from voda_flows import operations
from voda_flows.objects import Object

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SAMPLES, STEP_S, EPOCHS, CHECKPOINT_STEPS = 1200, 0.05, 3, 10
NAME = "cut"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalWorld]:
    """One node with one slot."""
    with local_world(tmp_path_factory.mktemp("world") / "home", "1x1") as made:
        yield made


def workflow(world: LocalWorld) -> Object:
    """The job's Workflow."""
    return world.store.get("Workflow", NAMESPACE, NAME)


def test_terminated_job_is_retried_from_its_checkpoint(world: LocalWorld) -> None:
    """Terminated it leaves no process and no slot; retried it trains every epoch once and loses little.

    Its pods come back on the old grant: the driver waits for a document that the scheduler writes for itself.
    """
    asked = {"command": f"{LIFE} {SAMPLES} {STEP_S}", "epochs": str(EPOCHS), "checkpoint-steps": str(CHECKPOINT_STEPS)}
    uid = world.submit(NAME, asked)
    root = world.root(uid)
    assert world.until(lambda: any(root.glob("segment-0/step-*/manifest.json"))), world.logs()
    operations.terminate(world.store, workflow(world))
    assert world.until(lambda: world.phases()[NAME] == "Failed")
    assert world.until(lambda: not (world.orphans() or world.slots_of_the_dead() or world.processes("worker")))

    operations.retry(world.store, workflow(world))
    assert world.until(lambda: world.phases()[NAME] in ("Succeeded", "Failed", "Error")), world.logs()

    assert world.phases()[NAME] == "Succeeded", world.logs()
    assert epochs(root, SAMPLES) == list(range(EPOCHS))
    assert max(loss(root).between, loss(root).in_place) <= CHECKPOINT_STEPS
    assert world.until(lambda: not (world.orphans() or world.slots_of_the_dead()))
