"""The one place where documents are fitted to the cluster's nodes, which have no registry: images and mounts.

In: a document as the suite has it; out: the same with the image whose root is links into this machine's files. The
local engine heeds no images, so it is given the documents as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from tests.cluster.images import HOST_IMAGE, host_mount, host_volume
from voda_flows.objects import Object


def for_cluster(document: Object) -> Object:
    """The document as the cluster's nodes can run it."""
    dressed = deepcopy(document)
    spec = dressed.get("spec") or {}
    for template in _templates(spec.get("workflowSpec") or spec):
        _dress(template)
    return dressed


def _templates(spec: Object) -> Iterator[Object]:
    """All templates of a spec, those written in place of a call too."""
    for template in spec.get("templates") or ():
        yield template
        calls = [step for group in template.get("steps") or () for step in group]
        calls += (template.get("dag") or {}).get("tasks") or []
        yield from (call["inline"] for call in calls if "inline" in call)


def _dress(template: Object) -> None:
    for kind in ("container", "script"):
        container = template.get(kind)
        if container is None:
            continue
        container |= {"image": HOST_IMAGE, "imagePullPolicy": "Never"}
        _add(container, "volumeMounts", host_mount())
        _add(template, "volumes", host_volume())


def _add(holder: Object, field: str, entry: Object) -> None:
    """Add an entry to a list that may not be there; once."""
    found = holder.get(field) or []
    holder[field] = found if entry in found else [*found, entry]
