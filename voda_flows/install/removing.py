"""An installation taken away: the scheduler first, then its rights, then what it has written. What people made stays.

It can be repeated and cut off anywhere, and is possible after Argo has gone. Namespaces, volumes and claims stay, and
with them checkpoints and the Workflows that have ended; so does what other kustomizations brought into further
namespaces.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from scheduler_core.errors import Conflict, NotFound
from voda_flows.control import lease, targets
from voda_flows.control.jobs import find_jobs
from voda_flows.control.kept import LEARNED_MAP
from voda_flows.install.applying import all_of, document_key, installed, ordered, resource_for
from voda_flows.kube.api import Api
from voda_flows.kube.resources import Resource, resource_of
from voda_flows.kube.store import KubeStore
from voda_flows.objects import CRON_LABEL, Key, Object
from voda_flows.report.history import HISTORY_MAP
from voda_flows.store import json_text

#: What holds what people made.
KEPT: Final = frozenset({"Namespace", "PersistentVolume", "PersistentVolumeClaim"})
#: What the scheduler makes in its own namespace.
_WRITTEN = (
    ("ConfigMap", targets.TARGET_MAP),
    ("ConfigMap", HISTORY_MAP),
    ("ConfigMap", LEARNED_MAP),
    ("Lease", lease.NAME),
)
#: The scheduler's runs are told to stop before they are deleted; with their cron they would go without.
_PROPAGATION: Final = {"CronWorkflow": "Orphan"}
#: Live jobs that are named when they are in the way.
_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What became of one object.

    Attributes:
        key: Which object.
        what: ``deleted`` or ``stays``.
    """

    key: Key
    what: str


def check_no_jobs(api: Api, documents: Iterable[Object], *, everywhere: bool) -> None:
    """Refuse where jobs of this installation are still live: without their account's rights their pods fail.

    Args:
        api: The API server.
        documents: The installation's.
        everywhere: Whether its scheduler serves all namespaces.

    Raises:
        Conflict: There are such jobs.
    """
    places = {document_key(body).namespace for body in documents if body["kind"] == "WorkflowTemplate"}
    workflows = [
        body for place in sorted({""} if everywhere else places) for body in all_of(api, resource_of("Workflow"), place)
    ]
    live = [f"{job.asked.namespace}/{job.asked.workflow}" for body in workflows for job in find_jobs(body)]
    if live:
        more = f" and {len(live) - _NAMED} more" if len(live) > _NAMED else ""
        raise Conflict(
            f"expected no live jobs, found {', '.join(sorted(live)[:_NAMED])}{more}\n"
            "end them first (voda stop), or take Voda from under them with --force: they fail then"
        )


def remove(api: Api, documents: Iterable[Object], *, is_trial: bool) -> Iterator[Removed]:
    """Take an installation away; each object is told of as soon as it is done.

    Args:
        api: The API server.
        documents: What was installed.
        is_trial: Whether the server only says whether it would.

    Raises:
        Forbidden: The account may not do that.
    """
    wanted = ordered(documents)
    there = {key: body for key, body in installed(api, wanted).items() if "deletionTimestamp" not in body["metadata"]}
    ours = [document_key(body) for body in wanted if document_key(body) in there]
    going = [key for key in reversed(ours) if key.kind not in KEPT]
    crons = [document_key(body) for body in wanted if body["kind"] == "CronWorkflow"]
    yield from delete(api, [there[key] for key in crons if key in there], is_trial=is_trial)
    for key in crons:  # whether they are there or not: who was cut off here last time has left their runs
        yield from delete(api, runs_of(api, key), is_trial=is_trial)
    rest = [key for key in going if key.kind not in ("CronWorkflow", "ConfigMap")]
    yield from delete(api, [there[key] for key in rest], is_trial=is_trial)
    # Now nobody can write them any more.
    yield from delete(api, [there[key] for key in going if key.kind == "ConfigMap"], is_trial=is_trial)
    for place in sorted({key.namespace for key in crons}):
        yield from delete(api, _written(api, place), is_trial=is_trial)
    yield from (Removed(key=key, what="stays") for key in ours if key.kind in KEPT)


def runs_of(api: Api, cron: Key) -> list[Object]:
    """The scheduler's runs that have not been told to go, those that people started too."""
    runs = all_of(api, resource_of("Workflow"), cron.namespace, {CRON_LABEL: cron.name})
    return [run for run in runs if "deletionTimestamp" not in run["metadata"]]


def _written(api: Api, namespace: str) -> list[Object]:
    found = []
    for kind, name in _WRITTEN:
        found += [body for body in api.list(resource_of(kind), namespace).items if body["metadata"]["name"] == name]
    return found


def delete(api: Api, bodies: Iterable[Object], *, is_trial: bool) -> Iterator[Removed]:
    """Delete objects, Workflows after they were told to stop; each is told of as soon as it is done.

    Args:
        api: The API server.
        bodies: They, as they are there.
        is_trial: Whether the server only says whether it would.
    """
    for body in bodies:
        key = document_key(body)
        with contextlib.suppress(NotFound):  # it went with its owner, or somebody else took it away meanwhile
            _delete_one(api, key, body["metadata"]["uid"], is_trial=is_trial)
        yield Removed(key=key, what="deleted")


def _delete_one(api: Api, key: Key, uid: str, *, is_trial: bool) -> None:
    if key.kind == "Workflow" and not is_trial:
        KubeStore(api).delete(key.kind, key.namespace, key.name, uid=uid)  # it tells Argo to stop it first
        return
    options = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": uid},
        "propagationPolicy": _PROPAGATION.get(key.kind, "Background"),
        **({"dryRun": ["All"]} if is_trial else {}),
    }
    api.delete(key, json_text(key, options), uid, _resource(key.kind))


def _resource(kind: str) -> Resource:
    return resource_of(kind) if kind in ("Workflow", "Lease") else resource_for(kind)
