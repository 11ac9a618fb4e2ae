"""From a user's documents and the options of ``voda submit`` to what is created; the documents' own fields stay."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from scheduler_core.errors import Conflict, InvalidValue
from voda_flows.config import near_miss
from voda_flows.objects import Object
from voda_flows.store import ObjectStore
from voda_flows.submission.checks import check_shape
from voda_flows.submission.places import Document, Place
from voda_flows.submission.places import Path as FieldPath

API: Final = "argoproj.io/v1alpha1"
#: Templates come first, so that a file may bring the template that its Workflow calls.
ORDER: Final = ("WorkflowTemplate", "CronWorkflow", "Workflow")
WORKDIR: Final = "voda.dev/workdir"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the options ask for.

    Attributes:
        parameters: Arguments to set, by name.
        name: Name of the one Workflow, empty to keep the document's.
        namespace: Namespace, None to keep the document's.
        otherwise: Namespace of documents that name none, where none is asked for.
    """

    parameters: Mapping[str, str]
    name: str = ""
    namespace: str | None = None
    otherwise: str = "default"

    @classmethod
    def of(
        cls, *, parameters: Sequence[str], name: str = "", namespace: str | None = None, otherwise: str = "default"
    ) -> Wishes:
        """Read ``k=v`` texts.

        Raises:
            InvalidValue: One has no ``=``.
        """
        for pair in parameters:
            if not pair.partition("=")[1] or pair.startswith("="):
                raise InvalidValue(f"-p: expected `name=value`, found `{pair}`")
        parsed = dict(pair.split("=", 1) for pair in parameters)
        return cls(parameters=parsed, name=name, namespace=namespace, otherwise=otherwise)


def prepared(documents: Sequence[Document], wishes: Wishes, *, workdir: Path | None) -> list[Document]:
    """Documents ready to be checked and created, templates first.

    Args:
        documents: As read.
        wishes: What the options ask for.
        workdir: Folder in which pods start when their container names none; None on a cluster, where images say that.

    Returns:
        Copies with namespace, name, arguments and working folder set.

    Raises:
        InvalidValue: A document is of a kind that cannot be submitted or misshapen, or a wish fits none or several
            documents.
    """
    for number, document in enumerate(documents, start=1):
        _check_kind(document, number, named=bool(wishes.name))
    documents = [replace(document, body=_without_nulls(document.body)) for document in documents]
    for document in documents:
        check_shape(document, is_local=workdir is not None)
    workflows = [document for document in documents if document.kind == "Workflow"]
    if wishes.name and len(workflows) != 1:
        raise InvalidValue(f"--name: expected one Workflow to name, found {len(workflows)}")
    if wishes.parameters and not workflows:
        raise InvalidValue("-p: expected a Workflow whose arguments to set, found none")
    ready = [_prepare(document, wishes, workdir) for document in documents]
    return sorted(ready, key=lambda document: ORDER.index(document.kind))


def apply(store: ObjectStore, document: Object) -> tuple[Object, str]:
    """Create a Workflow; create or replace a template.

    Returns:
        The object as stored, and what was done: ``submitted``, ``created``, ``configured`` or ``unchanged``.

    Raises:
        Conflict: A Workflow of that name exists.
    """
    if document["kind"] == "Workflow":
        return store.create(document), "submitted"
    meta = document["metadata"]
    try:
        return store.create(document), "created"
    except Conflict:
        found = store.get(document["kind"], meta["namespace"], meta["name"])
        changed = copy.deepcopy(document)
        changed["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
        stored = store.replace({**changed, **({"status": found["status"]} if "status" in found else {})})
        same = stored["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]
        return stored, "unchanged" if same else "configured"


def _without_nulls(document: Object) -> Object:
    """A copy in which fields that are null are left out, as the API server does; items of a loop may be null."""
    return {name: part if name == "withItems" else _within(part) for name, part in document.items() if part is not None}


def _within(value: object) -> object:
    if isinstance(value, dict):
        return _without_nulls(value)
    return [_within(each) for each in value] if isinstance(value, list) else value


def _check_kind(document: Document, number: int, *, named: bool) -> None:
    """Refuse what is no document of Argo's that can be submitted."""
    body, kind = document.body, document.body.get("kind")
    if kind not in ORDER:
        near = near_miss(str(kind), ORDER) if kind else f"; known are {', '.join(ORDER)}"
        said = f"document {number}: expected a kind that can be submitted, found {kind!r} at $.kind{near}"
        raise document.fault(InvalidValue(said, path="kind"))
    if body.get("apiVersion") != API:
        said = f"document {number} ({kind}): expected {API!r}, found {body.get('apiVersion')!r} at $.apiVersion"
        raise document.fault(InvalidValue(said, path="apiVersion"))
    meta = body.get("metadata")
    named = named and kind == "Workflow"
    if not isinstance(meta, dict) or not (meta.get("name") or meta.get("generateName") or named):
        said = (
            f"document {number} ({kind}): expected `name` or `generateName` at $.metadata, found {meta!r}\n"
            "give it one in the document, or with --name"
        )
        raise document.fault(InvalidValue(said, path="metadata"))
    if not isinstance(body.get("spec"), dict):
        said = f"document {number} ({kind}): expected fields at $.spec, found {body.get('spec')!r}"
        raise document.fault(InvalidValue(said, path="spec"))


def _prepare(document: Document, wishes: Wishes, workdir: Path | None) -> Document:
    """One document with the wishes that concern it."""
    made, places = document.body, dict[FieldPath, Place](document.places)
    meta = made["metadata"]
    if wishes.namespace and meta.get("namespace") not in (None, wishes.namespace):
        said = (
            f"{made['kind']} {meta.get('name')!r}: -n says {wishes.namespace!r}, the document {meta['namespace']!r}\n"
            "leave out one of the two"
        )
        raise document.fault(InvalidValue(said, path="metadata.namespace"))
    if "namespace" not in meta:
        places["metadata", "namespace"] = "-n"
    meta.setdefault("namespace", wishes.namespace or wishes.otherwise)
    if made["kind"] != "Workflow":
        return replace(document, places=places)
    if wishes.name:
        meta["name"] = wishes.name
        places["metadata", "name"] = "--name"
        meta.pop("generateName", None)
    if workdir is not None:
        meta["annotations"] = {WORKDIR: str(workdir), **(meta.get("annotations") or {})}
    for name, index in _set_arguments(made["spec"], wishes.parameters).items():
        for field in ("name", "value"):
            places["spec", "arguments", "parameters", index, field] = f"-p {name}"
    return replace(document, places=places)


def _set_arguments(spec: Object, values: Mapping[str, str]) -> dict[str, int]:
    """Set arguments by name, in place; new ones come last. Returns where each stands now."""
    if not values:
        return {}
    arguments = spec["arguments"] = dict(spec.get("arguments") or {})
    given = [dict(entry) for entry in arguments.get("parameters") or []]
    known = {entry.get("name"): entry for entry in given}
    for name, value in values.items():
        if name in known:
            known[name].pop("valueFrom", None)
            known[name]["value"] = value
        else:
            given.append({"name": name, "value": value})
    arguments["parameters"] = given
    return {entry["name"]: index for index, entry in enumerate(given) if entry.get("name") in values}
