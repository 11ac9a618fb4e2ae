"""The overlay ``test`` for this computer: a kustomization whose pods find what is installed here.

In: a cluster's folder. Out: a folder that ``voda install --overlay`` and ``kubectl apply -k`` take. To the overlay it
adds the PATH with this interpreter's ``python``, the checkout that is to be run, and a volume inside the cluster's
folder, which goes with the cluster.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.images import PATH
from tests.cluster.places import REPOSITORY, Home
from voda_flows.install.overlays import TEST, Wanted, documents, manifests
from voda_flows.objects import Object
from voda_flows.yaml_text import dump_yaml

JOB, SCHEDULER, VOLUME = "WorkflowTemplate", "CronWorkflow", "PersistentVolume"


def environment() -> dict[str, str]:
    """What pods have in their environment so that they run what this process runs."""
    return {
        "PATH": f"{Path(sys.prefix) / 'bin'}:{PATH.removeprefix('PATH=')}",
        "PYTHONPATH": str(REPOSITORY),
    }


def write_overlay(home: Home) -> Path:
    """Write the kustomization into a cluster's folder; returns its folder."""
    folder, volume = home.folder / "overlay", home.folder / "volume"
    for each in (folder, volume):
        each.mkdir(parents=True, exist_ok=True)
    base = documents(Wanted(overlay=TEST))
    by_kind = {JOB: "pods.patch.json", SCHEDULER: "scheduler.patch.json", VOLUME: "volume.patch.json"}
    targets = {document["kind"]: document for document in base if document["kind"] in by_kind}
    patches = {
        JOB: _in_templates("/spec/templates", targets[JOB]["spec"]["templates"]),
        SCHEDULER: _in_templates(
            "/spec/workflowSpec/templates", targets[SCHEDULER]["spec"]["workflowSpec"]["templates"]
        ),
        VOLUME: iter([{"op": "replace", "path": "/spec/hostPath/path", "value": str(volume)}]),
    }
    for kind, operations in patches.items():
        (folder / by_kind[kind]).write_text(json.dumps(list(operations), indent=1), encoding="utf-8")
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(manifests() / "overlays" / TEST, folder)],
        "patches": [
            {"path": by_kind[kind], "target": {"kind": kind, "name": targets[kind]["metadata"]["name"]}}
            for kind in patches
        ],
    }
    (folder / "kustomization.yaml").write_text(dump_yaml([kustomization]), encoding="utf-8")
    return folder


def _in_templates(path: str, templates: list[Object]) -> Iterator[Object]:
    """The environment for each template that has a container."""
    for index, template in enumerate(templates):
        if "container" in template:
            for name, value in environment().items():
                yield {"op": "add", "path": f"{path}/{index}/container/env/-", "value": {"name": name, "value": value}}
