"""The engine agrees with the real controller on every golden document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler_core.errors import InvalidValue
from tests.contract.argo import golden
from tests.contract.argo.small_world import SmallWorld
from voda_flows.local.argo import validate
from voda_flows.local.argo.operate import resume, stop, terminate
from voda_flows.objects import Object

REFUSED = tuple(name for name in golden.NAMES if golden.is_refused(name))
UNSUPPORTED = ("enum-expression", "hooks-running", "step-exit-hook")
RUN = tuple(name for name in golden.NAMES if name not in (*REFUSED, *UNSUPPORTED))


def _delete_running_pod(world: SmallWorld) -> None:
    node = next(
        node for node in world.status["nodes"].values() if node["type"] == "Pod" and world.running(node["name"])
    )
    world.delete_pod(world.pod_of(node["name"]))


def _operate(operation: Callable[[Object], Object]) -> Callable[[SmallWorld], None]:
    def act(world: SmallWorld) -> None:
        world.workflow = operation(world.workflow)

    return act


def _ready(world: SmallWorld, node: str) -> bool:
    """Whether the pod of that node runs and is ready to be asked to end, where it means to be asked."""
    if not world.running(node):
        return False
    process = world.processes[world.pod_of(node)]
    return "trap" not in str(process.pod["spec"]) or process.catches_term


# What was done to a document by hand while it ran: (node that must run first, what is done).
ACTIONS: Mapping[str, tuple[str, Callable[[SmallWorld], None]]] = {
    "pod-deleted": ("pod-deleted", _delete_running_pod),
    "pod-deleted-retry": ("pod-deleted-retry(0)", _delete_running_pod),
    "stop-while-running": ("stop-while-running[0].a", _operate(stop)),
    "terminate-while-running": ("terminate-while-running[0].a", _operate(terminate)),
    "suspend-whole": ("", _operate(lambda workflow: resume(workflow, datetime.now(UTC)))),
}


def run(name: str, folder: Path) -> Object:
    """The status with which a golden document ends."""
    world = SmallWorld(golden.document(name), folder)
    try:
        if name in ACTIONS:
            node, act = ACTIONS[name]
            world.until(lambda: not node or _ready(world, node))
            act(world)
        world.finish()
        return world.status
    finally:
        world.close()


@pytest.fixture(scope="module")
def endings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Object]]]:
    """All documents at once: they mostly sleep."""
    folder = tmp_path_factory.mktemp("pods")
    with ThreadPoolExecutor(max_workers=8) as pool:
        yield {name: pool.submit(run, name, folder / name) for name in RUN}


@pytest.mark.parametrize("name", RUN)
def test_document_ends_as_on_the_real_controller(name: str, endings: dict[str, Future[Object]]) -> None:
    """Phase, messages, progress and every node agree with what Argo itself did."""
    ended = golden.agreed(endings[name].result(timeout=60))

    assert ended == golden.expected(golden.outcome(name))


@pytest.mark.parametrize("name", REFUSED)
def test_document_is_refused_as_by_the_real_controller(name: str) -> None:
    """What the API server or the controller refused is refused at submission, in the same words."""
    with pytest.raises(InvalidValue) as refusal:
        validate(golden.document(name), lambda _namespace, _name: None)

    said = (
        str(golden.outcome(name)["message"]).split(" is invalid: ")[-1].split("cannot be handled as a Workflow: ")[-1]
    )

    assert str(refusal.value).startswith(said.removeprefix("invalid spec: "))


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_document_that_local_mode_cannot_run_is_refused_by_name(name: str) -> None:
    """Only documents that may be refused are, and the message names the part that is not supported."""
    assert name in golden.MAY_BE_REFUSED
    with pytest.raises(InvalidValue, match="not supported in local mode"):
        validate(golden.document(name), lambda _namespace, _name: None)
