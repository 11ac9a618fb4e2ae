"""Which images an installation's documents name, the scheduler's and that of jobs, and documents with others instead.

Pure. Places are found by the names of parts and parameters, so that an overlay's patches do not shift them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from voda_flows.config import SCHEDULER_CRON, Settings
from voda_flows.install.json_patch import json_patch
from voda_flows.objects import Object
from voda_flows.workflows.parameters import JOB_TEMPLATE, PARAMETERS

_PARAMETER: Final = "image"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A document that names an image.

    Attributes:
        kind: Its kind.
        name: Its name; it may be there once in each namespace.
        option: The option of ``voda install`` that says which image.
        shipped: The image that our own manifests name.
    """

    kind: str
    name: str
    option: str
    shipped: str

    def is_part(self, document: Object) -> bool:
        """Whether a document is one of these."""
        return bool((document["kind"], document["metadata"]["name"]) == (self.kind, self.name))


SCHEDULER: Final = Part(kind="CronWorkflow", name=SCHEDULER_CRON, option="--image", shipped=Settings().image)
JOBS: Final = Part(
    kind="WorkflowTemplate",
    name=JOB_TEMPLATE,
    option="--training-image",
    shipped=next(row.default or "" for row in PARAMETERS if row.name == _PARAMETER),
)
PARTS: Final = (SCHEDULER, JOBS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """An image where a document names it.

    Attributes:
        place: The same in every version of the document: the template's name, ``arguments`` for arguments.
        path: Where it stands in this document, as a JSON pointer.
        image: It.
    """

    place: str
    path: str
    image: str


def images(document: Object) -> list[Named]:
    """The images that a document names: none unless it is the scheduler's or that of jobs."""
    if SCHEDULER.is_part(document):
        return list(_of_scheduler(document))
    return list(_of_jobs(document)) if JOBS.is_part(document) else []


def with_image(document: Object, image: str) -> Object:
    """A document of a part with another image wherever it names one."""
    return json_patch(
        document,
        [{"op": "replace", "path": named.path, "value": image} for named in images(document)],
        where=f"{document['kind']} {document['metadata']['name']}",
    )


def with_images_of(document: Object, live: Object) -> Object:
    """A document of a part with the images that an earlier one has in the same places.

    Args:
        document: What is to be applied. Where it names another image than our manifests, somebody has written that
            down, and it stays.
        live: The one that is on the cluster.
    """
    before = {named.place: named.image for named in images(live)}
    shipped = [part.shipped for part in PARTS if part.is_part(document)]
    operations = [
        {"op": "replace", "path": named.path, "value": before[named.place]}
        for named in images(document)
        if named.image in shipped and before.get(named.place)
    ]
    return json_patch(document, operations, where=f"{document['kind']} {document['metadata']['name']}")


def _of_scheduler(cron: Object) -> Iterator[Named]:
    spec = (cron.get("spec") or {}).get("workflowSpec") or {}
    for index, template in enumerate(spec.get("templates") or ()):
        if template.get("name") == spec.get("entrypoint") and "image" in (template.get("container") or {}):
            path = f"/spec/workflowSpec/templates/{index}/container/image"
            yield Named(place=template["name"], path=path, image=template["container"]["image"])


def _of_jobs(template: Object) -> Iterator[Named]:
    """What the template's arguments say counts for who submits it, what ``inputs`` say for who calls a part of it."""
    spec = template.get("spec") or {}
    yield from _of_parameters(spec.get("arguments") or {}, "arguments", "/spec/arguments", "value")
    for index, part in enumerate(spec.get("templates") or ()):
        yield from _of_parameters(
            part.get("inputs") or {}, f"template {part.get('name')}", f"/spec/templates/{index}/inputs", "default"
        )


def _of_parameters(holder: Object, place: str, path: str, field: str) -> Iterator[Named]:
    for index, row in enumerate(holder.get("parameters") or ()):
        if row.get("name") == _PARAMETER and field in row:
            yield Named(place=place, path=f"{path}/parameters/{index}/{field}", image=row[field])
