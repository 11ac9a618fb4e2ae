"""The cluster as a fixture: ``from tests.cluster.fixture import cluster``; mark such tests ``cluster``.

It is one of its own, beside the one that a user may have up, and is shared by all tests of a run. Where it cannot run
the tests are skipped with the reason, or fail where ``VODA_CLUSTER_REQUIRED`` is set. Runs on one computer take turns,
unless ``VODA_TEST_CLUSTER`` gives each a folder of its own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.setup.progress import one_at_a_time
from tests.cluster import nodes, requirements
from tests.cluster.cluster import Cluster
from tests.cluster.places import cache_folder

REQUIRED_VARIABLE = "VODA_CLUSTER_REQUIRED"
#: Folder of the tests' cluster; runs with different ones need not wait for each other.
FOLDER_VARIABLE = "VODA_TEST_CLUSTER"
SHAPE = "3x2"


def skip_where_it_cannot_run() -> None:
    """Skip the test, or fail it where the tier is required."""
    reason = requirements.obstacle()
    if reason is not None and os.environ.get(REQUIRED_VARIABLE):
        pytest.fail(f"the cluster is required here, but: {reason}")
    if reason is not None:
        pytest.skip(reason)


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A cluster of three nodes with two GPUs each; down at the end of the block."""
    folder = Path(os.environ.get(FOLDER_VARIABLE) or cache_folder() / "cluster-of-tests").resolve()
    # A folder with one name: what a run that was killed has left is found by the next. So runs take turns.
    with one_at_a_time(folder.with_suffix(".lock"), "the tests on a cluster"):
        made = Cluster(folder)
        try:
            made.up(nodes.parse(SHAPE))
            yield made
        finally:
            made.down()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The cluster, for all tests of a run."""
    skip_where_it_cannot_run()
    with running_cluster() as made:
        yield made
