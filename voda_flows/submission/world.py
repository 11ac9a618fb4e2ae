"""What documents are held against: the settings, GPUs, templates and names of the world they go to, or of none.

``voda lint --offline`` has no world: then the settings are the defaults, the templates those that Voda ships, and
what only a cluster knows is left open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scheduler_core.errors import NotFound
from voda_flows.config import Settings
from voda_flows.control.cluster import OtherGpus, cluster_of, gpus_by_type
from voda_flows.control.request import Limits
from voda_flows.control.settings import settings
from voda_flows.local.up import shipped_templates
from voda_flows.objects import Key, Object, key_of
from voda_flows.store import ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A world to submit to.

    Attributes:
        limits: What a job may ask for.
        find: An object by its key, or None.
        templates: Every WorkflowTemplate's (namespace, name), for suggestions.
    """

    limits: Limits
    find: Callable[[Key], Object | None]
    templates: Sequence[tuple[str, str]]


def world_of(store: ObjectStore) -> World:
    """The world of a store, as it is now.

    Raises:
        InvalidValue: Its settings are none.
    """
    chosen = settings(store)
    cluster = cluster_of(store.list("Node"), OtherGpus(), chosen.topology_levels)

    def find(key: Key) -> Object | None:
        try:
            return store.get(*key)
        except NotFound:
            return None

    return World(
        limits=Limits(settings=chosen, gpus_by_type=gpus_by_type(cluster)),
        find=find,
        templates=[(key.namespace, key.name) for key in map(key_of, store.list("WorkflowTemplate"))],
    )


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
        templates=[("default", name) for name in shipped],
    )
