"""What documents are held against: the settings, GPUs, templates and names of the world they go to, or of none.

``voda lint --offline`` has no world: then the settings are the defaults, the templates those that Voda ships, and
what only a cluster knows is left open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scheduler_core.errors import Forbidden, NotFound
from voda_flows.config import Settings
from voda_flows.control.cluster import OtherGpus, cluster_of, gpus_by_type
from voda_flows.control.request import Limits
from voda_flows.control.settings import settings
from voda_flows.local.up import shipped_templates
from voda_flows.objects import Key, Object, key_of
from voda_flows.store import ObjectStore
from voda_flows.world import NotGiven
from voda_flows.world import World as Surroundings


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A world to submit to.

    Attributes:
        limits: What a job may ask for; None where the settings are not to be had, and the gate will say.
        find: An object by its key, or None.
        templates: Gives every WorkflowTemplate's (namespace, name), for suggestions.
        attempt: Asks a cluster whether it would take a document; None for local mode, which has rules of its own.
    """

    limits: Limits | None
    find: Callable[[Key], Object | None]
    templates: Callable[[], Sequence[tuple[str, str]]]
    attempt: Callable[[Object], None] | None = None


def world_of(there: Surroundings) -> World:
    """What documents are held against in a world, as it is now.

    Raises:
        InvalidValue: Its settings are none.
        Forbidden: One may not read its settings.
    """
    store = there.store

    def find(key: Key) -> Object | None:
        try:
            return store.get(*key)
        except NotFound:
            return None

    def templates() -> list[tuple[str, str]]:
        return [(key.namespace, key.name) for key in map(key_of, _listed(store))]

    return World(
        limits=_limits(there),
        find=find,
        templates=templates,
        attempt=None if there.home is not None else there.check,
    )


def _listed(store: ObjectStore) -> list[Object]:
    """The WorkflowTemplates that one may see."""
    try:
        return store.list("WorkflowTemplate")
    except (Forbidden, NotGiven):
        return []


def _limits(there: Surroundings) -> Limits | None:
    """What a job may ask for there."""
    try:
        chosen = settings(there.whole, there.scheduler_namespace)
    except NotGiven:
        return None
    return Limits(settings=chosen, gpus_by_type=_gpus(there.whole, chosen))


def _gpus(store: ObjectStore, chosen: Settings) -> Mapping[str, int]:
    """GPUs of the cluster by type; none where one may not see its nodes: the scheduler will say what there is."""
    try:
        nodes = store.list("Node")
    except Forbidden:
        return {}
    return gpus_by_type(cluster_of(nodes, OtherGpus(), chosen.topology_levels))


def offline_world() -> World:
    """A world of the shipped templates, in every namespace, and nothing else."""
    shipped: Mapping[str, Object] = {
        template["metadata"]["name"]: template
        for template in shipped_templates()
        if template["kind"] == "WorkflowTemplate"
    }
    return World(
        limits=Limits(settings=Settings()),
        find=lambda key: shipped.get(key.name) if key.kind == "WorkflowTemplate" else None,
        templates=lambda: [("default", name) for name in shipped],
    )
