"""The manifests under deploy/kustomize as tests read them: folders, files, documents, and what is in each overlay."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from voda_flows.install.kustomize import find_file, read
from voda_flows.install.overlays import OVERLAYS, Wanted, documents, manifests
from voda_flows.objects import Object
from voda_flows.render import TEMPLATES


def folders() -> list[Path]:
    """Every folder with a kustomization of resources; those of the templates too."""
    found = [path for path in [*sorted(manifests().rglob("*")), TEMPLATES] if path.is_dir() and find_file(path)]
    return [path for path in found if path.name != "controller"]  # a component: patches for Argo's own objects


def listed(folder: Path) -> set[str]:
    """The files and folders that a kustomization names."""
    found = read(folder)
    return {*found.resources, *(str(patch["path"]) for patch in found.patches)}


@cache
def overlay(name: str) -> tuple[Object, ...]:
    """The documents of an overlay."""
    return tuple(documents(Wanted(overlay=name)))


def everything() -> list[tuple[str, Object]]:
    """Every document of every overlay, with a name for messages."""
    return [
        (f"{name}: {document['kind']} {document['metadata']['name']}", document)
        for name in OVERLAYS
        for document in overlay(name)
    ]


def one(name: str, kind: str, called: str) -> Object:
    """The one document of a kind and name in an overlay."""
    (found,) = [body for body in overlay(name) if body["kind"] == kind and body["metadata"]["name"] == called]
    return found


def read_yaml(path: Path) -> list[Object]:
    """The documents of a file."""
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document is not None]
