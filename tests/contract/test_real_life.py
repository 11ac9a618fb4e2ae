"""A whole elastic life with real Horovod: its history reads the same on the local engine and on the real controller."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.installed import NAMESPACE, Installation
from tests.cluster.trial import PODS, pod
from tests.contract.two_worlds.real_life import Stead, real_life
from tests.e2e import local_world
from tests.e2e.local_world import LocalWorld
from voda_flows.objects import Object


def foreign(node: str, gpus: int) -> Object:
    """A pod that is not a job's and holds GPUs."""
    return pod(f"foreign-{node}", "sleep", "3600", node=node, gpus=gpus)


def on_this_machine(world: LocalWorld) -> Stead:
    """Local mode."""

    def hold(node: str, gpus: int) -> None:
        body = foreign(node, gpus)
        body["metadata"]["namespace"] = local_world.NAMESPACE
        body["spec"].pop("volumes")
        body["spec"]["containers"][0].pop("volumeMounts")
        world.store.create(body)

    return Stead(store=world.store, namespace=local_world.NAMESPACE, hold=hold,
                 free=lambda node: world.store.delete("Pod", local_world.NAMESPACE, f"foreign-{node}"))  # fmt: skip


def on_the_cluster(voda: Installation) -> Stead:
    """The tests' cluster."""
    api = voda.cluster.api

    def hold(node: str, gpus: int) -> None:
        api.post(PODS, foreign(node, gpus))

    return Stead(store=voda.store, namespace=NAMESPACE, hold=hold,
                 free=lambda node: api.delete(f"{PODS}/foreign-{node}?gracePeriodSeconds=1"))  # fmt: skip


@pytest.mark.cluster
@pytest.mark.timeout(1500)
def test_an_elastic_life_reads_the_same_in_both_worlds(installed: Installation, tmp_path: Path) -> None:
    """Start, growth, preemption to a checkpoint, resume, end: the same nodes, names, phases and decisions."""
    installed.reset()
    there = real_life(on_the_cluster(installed))
    installed.reset()

    with local_world.local_world(tmp_path, "3x2") as world:
        here = real_life(on_this_machine(world))

    assert here == there
