"""The cluster of the figures, with Voda on it: brought up when the first figure asks for it, down when all are done.

It is one of its own, beside a user's and the tests'. What bringing it up took is kept, because that is a figure too.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import nodes
from tests.cluster.cluster import Cluster
from tests.cluster.fixture import FOLDER_VARIABLE
from tests.cluster.installed import Installation, install
from tests.cluster.places import cache_folder
from tests.cluster.programs import provide
from tests.cluster.trial import PODS, delete_pods, pod

SHAPE = "3x2"
#: Decisions come as soon as there is something to decide: what is measured is what comes after them.
SETTINGS = {"decide_interval_s": "0"}


@dataclass(frozen=True, kw_only=True)
class Shared:
    """The cluster of the figures.

    Attributes:
        voda: What is installed there.
        up_s: What bringing the cluster up took, programs built.
        install_s: What installing took, until the scheduler decided.
    """

    voda: Installation
    up_s: float
    install_s: float


@functools.cache
def shared() -> Shared:
    """The cluster with Voda on it; the same one for all figures of a run."""
    provide()
    folder = Path(os.environ.get(FOLDER_VARIABLE) or cache_folder()).resolve()
    cluster = Cluster(folder / "cluster-of-figures")
    cluster.down()
    atexit.register(cluster.down)
    began_s = time.monotonic()
    cluster.up(nodes.parse(SHAPE))
    up_s = time.monotonic() - began_s
    voda = install(cluster, SETTINGS)
    return Shared(voda=voda, up_s=up_s, install_s=time.monotonic() - began_s - up_s)


@contextlib.contextmanager
def only(gpus_by_node: dict[str, int]) -> Iterator[Installation]:
    """Voda with nothing on it and so many GPUs free on each node; pods that are not ours hold the others."""
    voda = shared().voda
    voda.reset()
    try:
        for node in nodes.parse(SHAPE):
            held = node.gpus - gpus_by_node.get(node.name, 0)
            if held:
                document = pod(f"foreign-{node.name}", "sleep", "36000", node=node.name, gpus=held)
                voda.cluster.api.post(PODS, document)
        yield voda
    finally:
        voda.reset()
        delete_pods(voda.cluster)
