"""Local mode agrees with the real controller on every golden document, in both of its worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

import pytest

from scheduler_core.errors import InvalidValue
from tests.contract.argo import engine_world, golden
from tests.contract.argo.engine_world import EngineWorld
from tests.contract.argo.small_world import SmallWorld
from tests.contract.argo.world import World, finish, is_ready_to_end, pod_of, running
from voda_flows.local.argo import validate
from voda_flows.local.argo.operate import resume, stop, terminate
from voda_flows.local.up import down
from voda_flows.objects import Object

REFUSED = tuple(name for name in golden.NAMES if golden.is_refused(name))
UNSUPPORTED = ("enum-expression", "hooks-running", "step-exit-hook")
RUN = tuple(name for name in golden.NAMES if name not in (*REFUSED, *UNSUPPORTED))

Endings = Mapping[str, Future[Object]]


def _delete_pod(world: World, node: str) -> None:
    world.delete_pod(pod_of(world, node))


def _operate(operation: Callable[[Object], Object]) -> Callable[[World, str], None]:
    return lambda world, _node: world.operate(operation)


# What was done to a document by hand while it ran: (node that must run first, what is done).
ACTIONS: Mapping[str, tuple[str, Callable[[World, str], None]]] = {
    "pod-deleted": ("pod-deleted", _delete_pod),
    "pod-deleted-retry": ("pod-deleted-retry(0)", _delete_pod),
    "stop-while-running": ("stop-while-running[0].a", _operate(stop)),
    "terminate-while-running": ("terminate-while-running[0].a", _operate(terminate)),
    "suspend-whole": ("", _operate(lambda workflow: resume(workflow, datetime.now(UTC)))),
}


def _may_act(world: World, node: str) -> bool:
    """Whether what must run first does."""
    if not node:
        return bool(world.status.get("phase") == "Running")
    return running(world, node) and is_ready_to_end(world, pod_of(world, node))


def _run(make: Callable[[Object], World], name: str) -> Object:
    """The status with which a golden document ends."""
    world = make(golden.document(name))
    try:
        if name in ACTIONS:
            node, act = ACTIONS[name]
            world.until(lambda: _may_act(world, node))
            act(world, node)
        return finish(world)
    finally:
        world.close()


@pytest.fixture(scope="module", params=["processes", "engine"])
def endings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endings]:
    """How each document ends in one of the worlds; all run at once, since they mostly sleep."""
    folder = tmp_path_factory.mktemp(request.param)
    make: Callable[[Object], World]
    if request.param == "engine":
        engine_world.begin(folder)
        make = partial(EngineWorld, home=folder)
    else:
        make = partial(SmallWorld, folder=folder)
    with ThreadPoolExecutor(max_workers=16) as pool:
        yield {name: pool.submit(_run, make, name) for name in RUN}
    if request.param == "engine":
        down(folder, drain_s=0.2)


@pytest.mark.parametrize("name", RUN)
def test_document_ends_as_on_the_real_controller(name: str, endings: Endings) -> None:
    """Phase, messages, progress and every node agree with what Argo itself did."""
    status = endings[name].result(timeout=60)

    assert golden.agreed(status) == golden.expected(golden.outcome(name))
    assert golden.out_of_order(status) == []


@pytest.mark.parametrize("name", REFUSED)
def test_document_is_refused_as_by_the_real_controller(name: str) -> None:
    """What the API server or the controller refused is refused at submission, in the same words."""
    with pytest.raises(InvalidValue) as refusal:
        validate(golden.document(name), lambda _namespace, _name: None)

    assert str(refusal.value).startswith(golden.refusal(name))


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_document_that_local_mode_cannot_run_is_refused_by_name(name: str) -> None:
    """Only documents that may be refused are, and the message names the part that is not supported."""
    assert name in golden.MAY_BE_REFUSED
    with pytest.raises(InvalidValue, match="not supported in local mode"):
        validate(golden.document(name), lambda _namespace, _name: None)
