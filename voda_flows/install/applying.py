"""An installation carried out: documents applied by the API server, in order.

Applying can be repeated and cut off anywhere. Before anything is changed it is looked whether the cluster has what the
documents need: Argo Workflows, and the namespaces that are not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from scheduler_core.errors import Conflict, InvalidValue, NotFound
from voda_flows.install.images import Part, with_images_of
from voda_flows.install.kustomize import CLUSTER_WIDE
from voda_flows.kube.api import Api, plain
from voda_flows.kube.resources import Resource, resource_of
from voda_flows.objects import Key, Object
from voda_flows.store import json_text

#: As whom the API server notes which fields are ours.
MANAGER: Final = "voda"
#: What all documents of an installation carry.
LABELS: Final = {"app.kubernetes.io/part-of": "voda"}
_RBAC = "rbac.authorization.k8s.io"
#: Kinds in the order in which they are applied, each after those that it names.
_RESOURCES: Mapping[str, Resource] = {
    resource.kind: resource
    for resource in (
        Resource(kind="Namespace", plural="namespaces"),
        Resource(kind="ServiceAccount", plural="serviceaccounts"),
        Resource(kind="ClusterRole", plural="clusterroles", group=_RBAC),
        Resource(kind="ClusterRoleBinding", plural="clusterrolebindings", group=_RBAC),
        Resource(kind="Role", plural="roles", group=_RBAC),
        Resource(kind="RoleBinding", plural="rolebindings", group=_RBAC),
        resource_of("ConfigMap"),
        Resource(kind="PersistentVolume", plural="persistentvolumes"),
        resource_of("PersistentVolumeClaim"),
        Resource(kind="NetworkPolicy", plural="networkpolicies", group="networking.k8s.io"),
        Resource(kind="PodDisruptionBudget", plural="poddisruptionbudgets", group="policy"),
        resource_of("WorkflowTemplate"),
        resource_of("CronWorkflow"),
    )
}
_ORDER = tuple(_RESOURCES)
#: Metadata that says nothing about what an object is.
_COUNTERS = ("resourceVersion", "generation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What became of one document.

    Attributes:
        key: Which object.
        what: ``created``, ``changed``, ``unchanged``, or ``not checked`` where its namespace is yet to be made.
    """

    key: Key
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How documents are applied.

    Attributes:
        is_trial: Whether the server only says what it would do.
        is_forced: Whether fields that somebody else set otherwise are taken over.
    """

    is_trial: bool = False
    is_forced: bool = False

    @property
    def query(self) -> dict[str, str]:
        """As a request says it."""
        trial = {"dryRun": "All"} if self.is_trial else {}
        return {"fieldManager": MANAGER, "force": "true" if self.is_forced else "false", **trial}


def resource_for(kind: str) -> Resource:
    """Where the API server has a kind of an installation.

    Raises:
        InvalidValue: No installation has it.
    """
    if kind not in _RESOURCES:
        raise InvalidValue(f"expected kinds out of {', '.join(_ORDER)}, got {kind!r}")
    return _RESOURCES[kind]


def ordered(documents: Iterable[Object]) -> list[Object]:
    """Documents in the order in which they are applied.

    Raises:
        InvalidValue: One is of a kind that no installation has.
    """
    return sorted(documents, key=lambda document: _ORDER.index(resource_for(document["kind"]).kind))


def apply(api: Api, documents: Iterable[Object], manner: Manner) -> Iterator[Applied]:
    """Apply documents; each is told of as soon as it is done.

    Raises:
        NotFound: Argo Workflows is not there, or a namespace.
        Conflict: Somebody else set a field otherwise.
        InvalidValue: The server refuses a document.
        Forbidden: The account may not do that.
    """
    wanted = ordered(documents)
    made = {document["metadata"]["name"] for document in wanted if document["kind"] == "Namespace"}
    there = _namespaces(api)
    _check_needs(api, wanted, made | there)
    before = installed(api, wanted)
    for document in wanted:
        key = document_key(document)
        if manner.is_trial and key.namespace and key.namespace not in there:
            yield Applied(key=key, what="not checked")
        else:
            yield Applied(key=key, what=_apply_one(api, document, manner, before.get(key)))


def with_live_images(api: Api, documents: Iterable[Object], parts: Iterable[Part]) -> list[Object]:
    """Documents with the images that the cluster has now; where it has none yet, with their own.

    Args:
        api: The API server.
        documents: An installation's.
        parts: Whose images are to stay.
    """
    wanted, staying = list(documents), tuple(parts)
    live = installed(api, [body for body in wanted if any(part.is_part(body) for part in staying)])
    return [
        with_images_of(body, live[key]) if (key := document_key(body)) in live else body  # others name no image
        for body in wanted
    ]


def installed(api: Api, documents: Iterable[Object]) -> dict[Key, Object]:
    """What is there of an earlier installation, by key: what bears its label in the places of these documents."""
    places = dict.fromkeys((document["kind"], document_key(document).namespace) for document in documents)
    found = [body for kind, place in places for body in all_of(api, _RESOURCES[kind], place, LABELS)]
    return {document_key(body): body for body in found}


def all_of(api: Api, resource: Resource, namespace: str, labels: Mapping[str, str] | None = None) -> list[Object]:
    """All objects of a kind: none where the server does not know it, as after its definition was taken away.

    Raises:
        NotFound: It does not know a kind of Kubernetes' own core: it is no such server.
    """
    try:
        return api.list(resource, namespace, labels).items
    except NotFound:
        if not resource.group:
            raise
        return []


def document_key(document: Object) -> Key:
    """The place of a document of any kind that an installation has."""
    metadata = document["metadata"]
    namespace = "" if document["kind"] in CLUSTER_WIDE else metadata.get("namespace") or "default"
    return Key(document["kind"], namespace, metadata["name"])


def _apply_one(api: Api, document: Object, manner: Manner, before: Object | None) -> str:
    key, resource = document_key(document), resource_for(document["kind"])
    try:
        answer = api.apply(resource, key, json_text(key, document), manner.query)
    except Conflict as theirs:
        raise Conflict(
            f"{theirs}\nsomebody else has set this otherwise: keep it so in an overlay of your own, or take it over "
            "with --force"
        ) from theirs
    if answer.status == HTTPStatus.CREATED:
        return "created"
    after = plain(answer.document(), resource)
    return "unchanged" if before is not None and _content(before) == _content(after) else "changed"


def _check_needs(api: Api, documents: list[Object], namespaces: set[str]) -> None:
    """Whether the cluster has what the documents do not bring."""
    for kind in ("WorkflowTemplate", "CronWorkflow"):
        api.list(resource_of(kind), "")
    for name in sorted({document_key(document).namespace for document in documents} - namespaces - {""}):
        raise NotFound(f"namespace {name!r}: expected it to exist, it does not; `kubectl create namespace {name}`")


def _namespaces(api: Api) -> set[str]:
    return {body["metadata"]["name"] for body in api.list(_RESOURCES["Namespace"], "").items}


def _content(body: Object) -> Object:
    metadata = {name: value for name, value in body["metadata"].items() if name not in _COUNTERS}
    return {**body, "metadata": metadata}
