"""Clusters as fixtures of all tests (the root ``conftest.py`` names this file); mark such tests ``cluster``.

Each is one of its own, beside the one that a user may have up, and is shared by all tests of a run. Where it cannot run
the tests are skipped with the reason, or fail where ``VODA_CLUSTER_REQUIRED`` is set. Runs on one computer take turns,
unless ``VODA_TEST_CLUSTER`` gives each a folder of its own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from deploy.setup.progress import one_at_a_time
from tests.cluster import nodes, requirements
from tests.cluster.cluster import Cluster
from tests.cluster.places import cache_folder

if TYPE_CHECKING:
    from tests.cluster.installed import Installation

REQUIRED_VARIABLE = "VODA_CLUSTER_REQUIRED"
#: Folder of the tests' clusters; runs with different ones need not wait for each other.
FOLDER_VARIABLE = "VODA_TEST_CLUSTER"
#: Set in each of several test processes that run side by side (pytest-xdist): they have a cluster each.
_LANE_VARIABLE = "PYTEST_XDIST_WORKER"
SHAPE = "3x2"
#: By what a test stands on: whole lives of jobs, a cluster, an API server.
_WEIGHTS = {"installed": 3, "cluster": 2, "control_plane": 1}
#: For a test and the cluster that it may have to wait for.
LIMIT_S = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whichever test comes first has its cluster come up within its own time; modules that take longest come first.

    Where test processes run side by side, short ones at the end keep all of them busy.
    """
    longest: dict[str, int] = {}
    for item in items:
        if item.get_closest_marker("cluster"):
            weight = max((_WEIGHTS.get(name, 0) for name in getattr(item, "fixturenames", ())), default=0)
            longest[_module(item)] = max(weight, longest.get(_module(item), 0))
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(LIMIT_S))
    items.sort(key=lambda item: -longest.get(_module(item), 0))


def _module(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def skip_where_it_cannot_run() -> None:
    """Skip the test, or fail it where the tier is required."""
    reason = requirements.obstacle()
    if reason is not None:
        skip(reason)


def skip(reason: str) -> NoReturn:
    """Skip the test, or fail it where the tier is required."""
    if os.environ.get(REQUIRED_VARIABLE):
        pytest.fail(f"the cluster is required here, but: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster of three nodes with two GPUs each; down at the end."""
    with running_cluster() as made:
        yield made


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Iterator[Installation]:
    """Voda on that cluster, its scheduler a pod that decides; ``installed.reset()`` first where tests came before."""
    from tests.cluster.installed import installation

    with installation(cluster) as made:
        yield made


@pytest.fixture(scope="session")
def control_plane() -> Iterator[Cluster]:
    """A control plane with Argo's definitions, without nodes and controller: objects stay as they are written."""
    with _ours("control-plane-of-tests") as made:
        made.up((), controller=False)
        yield made


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A cluster of three nodes with two GPUs each; down at the end of the block."""
    with _ours("cluster-of-tests") as made:
        made.up(nodes.parse(SHAPE))
        yield made


@contextlib.contextmanager
def _ours(name: str) -> Iterator[Cluster]:
    """A cluster that nobody else uses; down at the end."""
    skip_where_it_cannot_run()
    parent = Path(os.environ.get(FOLDER_VARIABLE) or cache_folder(), os.environ.get(_LANE_VARIABLE, "")).resolve()
    parent.mkdir(parents=True, exist_ok=True)
    folder = parent / name
    # A folder with one name: what a run that was killed has left is found by the next. So runs take turns.
    with one_at_a_time(folder.with_suffix(".lock"), "the tests on a cluster"):
        made = Cluster(folder)
        try:
            yield made
        finally:
            made.down()
