"""Kustomizations as our manifests use them, read without kubectl: resources, patches from files, a namespace.

In: a folder with a kustomization, or one that was made up. Out: documents, as ``kubectl kustomize`` has them but for
their order. What else kustomize knows is refused by name: for that there is kubectl. A test with the real kubectl
keeps both equal (docs/adr/0013).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from scheduler_core.errors import InvalidValue, NotFound
from voda_flows.config import near_miss
from voda_flows.install.json_patch import json_patch
from voda_flows.objects import Object

#: A kustomization's file has one of these names.
FILES = ("kustomization.yaml", "Kustomization")
FIELDS = ("apiVersion", "kind", "namespace", "resources", "patches")
PATCH_FIELDS = ("path", "target")
#: Of a target.
TARGET_FIELDS = ("group", "version", "kind", "name")
#: What kustomize knows beyond that, and is no slip of the pen: it might choose other documents than we would.
KUSTOMIZES_OWN = frozenset({"patch", "options", "namespace", "labelSelector", "annotationSelector"})
#: Kinds of ours without a namespace.
CLUSTER_WIDE = frozenset({"Namespace", "ClusterRole", "ClusterRoleBinding", "PersistentVolume"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kustomization:
    """What a kustomization says.

    Attributes:
        folder: What its paths are relative to.
        resources: Files of documents, and folders with kustomizations.
        patches: As in its file: ``path`` and, for JSON patches, ``target``.
        namespace: Where all its documents go; empty to leave them where they are.
    """

    folder: Path
    resources: tuple[str, ...] = ()
    patches: tuple[Mapping[str, Any], ...] = ()
    namespace: str = ""


def find_file(folder: Path) -> Path | None:
    """The kustomization's file of a folder; None where there is none."""
    return next((folder / name for name in FILES if (folder / name).is_file()), None)


def read(folder: Path) -> Kustomization:
    """The kustomization of a folder.

    Raises:
        NotFound: There is none.
        InvalidValue: It says what only kubectl understands.
    """
    path = find_file(folder)
    if path is None:
        raise NotFound(f"{folder}: expected a kustomization there, found none of {', '.join(FILES)}")
    (found,) = _documents(path)
    _check_fields(found, FIELDS, str(path))
    for patch in found.get("patches") or ():
        _check_patch(patch, path)
    return Kustomization(
        folder=folder,
        resources=tuple(found.get("resources") or ()),
        patches=tuple(found.get("patches") or ()),
        namespace=found.get("namespace") or "",
    )


def _check_patch(patch: object, path: Path) -> None:
    """Refuse an entry of ``patches`` that says more than we read, or too little."""
    if not isinstance(patch, Mapping) or not patch:
        raise InvalidValue(f"{path}: expected patches with a path, got {patch!r}; or use `kubectl apply -k`")
    _check_fields(patch, PATCH_FIELDS, f"{path}: in a patch")
    target = patch.get("target")
    if target is None:
        return
    where = f"{path}: in the target of {patch.get('path')}"
    if not isinstance(target, Mapping) or not target.get("kind") or not target.get("name"):
        raise InvalidValue(f"{where}: expected kind and name, got {target!r}; or use `kubectl apply -k`")
    _check_fields(target, TARGET_FIELDS, where)


def _check_fields(found: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in found:
        if name not in known:
            meant = f"; known are {', '.join(known)}" if name in KUSTOMIZES_OWN else near_miss(str(name), known)
            raise InvalidValue(
                f"{where}: expected fields that Voda reads, got {name!r}{meant}; or use `kubectl apply -k`"
            )


def render(kustomization: Kustomization) -> list[Object]:
    """All its documents, patched and placed.

    Raises:
        NotFound: A file is not there.
        InvalidValue: Something in it cannot be read, or fits nothing.
    """
    documents: list[Object] = []
    for name in kustomization.resources:
        path = kustomization.folder / name
        documents += render(read(path)) if path.is_dir() else _documents(path)
    for patch in kustomization.patches:
        documents = _patched(documents, patch, kustomization.folder)
    if kustomization.namespace:
        documents = placed(documents, kustomization.namespace)
    seen = [_identity(document) for document in documents]
    for identity in seen:
        if seen.count(identity) > 1:
            raise InvalidValue(f"{kustomization.folder}: expected each document once, got {' '.join(identity)} again")
    return documents


def placed(documents: Iterable[Object], namespace: str) -> list[Object]:
    """Documents in another namespace: they, the Namespace itself, and accounts among them where they are subjects."""
    before = list(documents)
    accounts = {
        (document["metadata"]["name"], document["metadata"].get("namespace"))
        for document in before
        if document["kind"] == "ServiceAccount"
    }
    return [_placed(document, namespace, accounts) for document in before]


def _placed(document: Object, namespace: str, accounts: set[tuple[str, str | None]]) -> Object:
    metadata, moved = dict(document["metadata"]), dict(document)
    if document["kind"] == "Namespace":
        metadata["name"] = namespace
    elif document["kind"] not in CLUSTER_WIDE:
        metadata["namespace"] = namespace
    moved["metadata"] = metadata
    if "subjects" in document:
        moved["subjects"] = [
            {**subject, "namespace": namespace}
            if subject["kind"] == "ServiceAccount" and (subject["name"], subject.get("namespace")) in accounts
            else subject
            for subject in document["subjects"]
        ]
    return moved


def _patched(documents: list[Object], patch: Mapping[str, Any], folder: Path) -> list[Object]:
    """Documents after one entry of ``patches``: a JSON patch for a target, or the deletion of a document."""
    path = folder / str(patch.get("path"))
    loaded = _load(path)
    found = loaded[0] if len(loaded) == 1 else None
    if isinstance(found, list) and isinstance(patch.get("target"), Mapping):
        target: Mapping[str, Any] = patch["target"]
        chosen = [document for document in documents if _fits(document, target)]
        changed = [json_patch(one, found, where=str(path)) if one in chosen else one for one in documents]
    elif isinstance(found, dict) and found.get("$patch") == "delete" and "target" not in patch:
        chosen = [document for document in documents if _identity(document) == _identity(found)]
        changed = [document for document in documents if document not in chosen]
    else:
        raise InvalidValue(
            f"{path}: expected a JSON patch with a target, or `$patch: delete` without one; for others use "
            "`kubectl apply -k`"
        )
    if not chosen:
        raise InvalidValue(f"{path}: expected a document that it is for, found none")
    return changed


def _fits(document: Object, target: Mapping[str, Any]) -> bool:
    group, _, version = str(document.get("apiVersion") or "").rpartition("/")
    found = {"group": group, "version": version, "kind": document["kind"], "name": document["metadata"]["name"]}
    return all(found[field] == wanted for field, wanted in target.items() if wanted)


def _identity(document: Object) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return (str(document["kind"]), str(metadata.get("namespace") or ""), str(metadata["name"]))


def _documents(path: Path) -> list[Object]:
    """The documents of a file."""
    found = _load(path)
    if not found or not all(isinstance(one, dict) for one in found):
        raise InvalidValue(f"{path}: expected documents that are mappings, found something else")
    return found


def _load(path: Path) -> list[Any]:
    """What is in a file, by document."""
    try:
        return [one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one is not None]
    except OSError as missing:
        raise NotFound(f"{path}: expected a file to read, found: {missing.strerror or missing}") from missing
    except (UnicodeDecodeError, yaml.YAMLError) as wrong:
        raise InvalidValue(f"{path}: expected YAML, it cannot be read: {wrong}") from wrong
