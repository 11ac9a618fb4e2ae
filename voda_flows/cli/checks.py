"""What `voda submit` refuses, before anything is created: the same that the gate and the engine would refuse later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from scheduler_core.errors import InvalidValue, NotFound
from voda_flows.cli.settings import settings
from voda_flows.control.request import Limits, check_submission
from voda_flows.local.argo import TemplateSource, validate
from voda_flows.objects import Object
from voda_flows.store import ObjectStore

_GPU = "nvidia.com/gpu"
_GPU_TYPE = "nvidia.com/gpu.product"


def check_all(documents: Iterable[Object], store: ObjectStore) -> None:
    """Check every document.

    Args:
        documents: Ready to be created, templates before the Workflows that call them.
        store: The world they go to: its settings, nodes and templates.

    Raises:
        InvalidValue: Says where in which document what was expected, what was found and what to do.
    """
    limits = Limits(settings=settings(store), gpus_by_type=gpus_by_type(store.list("Node")))
    brought: dict[tuple[str, str], Object] = {}

    def template(namespace: str, name: str, /) -> Object | None:
        """A WorkflowTemplate that comes with the documents, or that is there."""
        try:
            return brought.get((namespace, name)) or store.get("WorkflowTemplate", namespace, name)
        except NotFound:
            return None

    for document in documents:
        meta = document["metadata"]
        if document["kind"] == "WorkflowTemplate":
            brought[meta["namespace"], meta["name"]] = document
        if document["kind"] == "Workflow":
            check_submission(document, limits)
            _check_engine(document, template)


def _check_engine(document: Object, template: TemplateSource) -> None:
    """Refuse what the engine could not run, in its own words."""
    try:
        validate(document, template)
    except InvalidValue as wrong:
        meta = document["metadata"]
        raise InvalidValue(f"Workflow {meta.get('name') or meta['generateName']}: {wrong}") from wrong


def gpus_by_type(nodes: Iterable[Object]) -> Mapping[str, int]:
    """All GPUs of the nodes by product; those without a label under the empty name."""
    count: Counter[str] = Counter()
    for node in nodes:
        kind = (node["metadata"].get("labels") or {}).get(_GPU_TYPE, "")
        count[kind] += int(((node.get("status") or {}).get("allocatable") or {}).get(_GPU, 0))
    return dict(count)
