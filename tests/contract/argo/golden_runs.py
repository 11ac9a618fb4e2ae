"""Runs of the golden documents in one of the worlds of local mode: what is done to them, and how they end.

In: how a world is made for a document; out: the status with which each document ends, all run at once since they
mostly sleep. The test holds them against what was recorded, and so does the figure of ``make show AREA=local``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tests.contract.argo import engine_world, golden
from tests.contract.argo.engine_world import EngineWorld
from tests.contract.argo.small_world import SmallWorld
from tests.contract.argo.world import World, finish, is_ready_to_end, pod_of, running
from voda_flows.local.argo.operate import resume, stop, terminate
from voda_flows.local.up import down
from voda_flows.objects import Object

REFUSED = tuple(name for name in golden.NAMES if golden.is_refused(name))
UNSUPPORTED = ("enum-expression", "hooks-running", "step-exit-hook")
RUN = tuple(name for name in golden.NAMES if name not in (*REFUSED, *UNSUPPORTED))
AT_ONCE = 16

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


@contextmanager
def endings(kind: str, folder: Path) -> Iterator[Endings]:
    """How each document that runs ends in one of the worlds.

    Args:
        kind: ``engine`` for a home with its engine, ``processes`` for the pure engine over plain processes.
        folder: Where the world may be.
    """
    make: Callable[[Object], World]
    if kind == "engine":
        engine_world.begin(folder)
        make = partial(EngineWorld, home=folder)
    else:
        make = partial(SmallWorld, folder=folder)
    try:
        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            yield {name: pool.submit(_run, make, name) for name in RUN}
    finally:
        if kind == "engine":
            down(folder, drain_s=0.2)


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


def _may_act(world: World, node: str) -> bool:
    """Whether what must run first does."""
    if not node:
        return bool(world.status.get("phase") == "Running")
    return running(world, node) and is_ready_to_end(world, pod_of(world, node))
