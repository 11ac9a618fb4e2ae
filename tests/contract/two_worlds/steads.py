"""Places where Voda is up, for a whole life with real training: local mode, and an installation on a cluster."""

from __future__ import annotations

from tests.cluster.installed import NAMESPACE, Installation
from tests.cluster.trial import PODS, pod
from tests.contract.two_worlds.real_life import Stead
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
