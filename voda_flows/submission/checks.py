"""What `voda submit` refuses, before anything is created: the same that the gate and the engine would refuse later.

First every document's shape, before anybody reads a field of it; later, when it is ready, what it asks for.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_core.errors import InvalidValue, NotFound
from voda_flows.control.cluster import OtherGpus, cluster_of, gpus_by_type
from voda_flows.control.request import Limits, check_submission
from voda_flows.control.settings import settings
from voda_flows.local.argo import TemplateSource, validate, validate_template
from voda_flows.local.argo.schema import check_fields
from voda_flows.local.cron import validate_cron
from voda_flows.objects import Object
from voda_flows.store import ObjectStore


def check_shape(document: Object) -> None:
    """Refuse fields that do not exist and values of another type than their field's.

    Args:
        document: As read, of a kind that can be submitted, with `metadata` and `spec`.

    Raises:
        InvalidValue: Says where in which document what was expected and what was found.
    """
    kind, meta = document["kind"], document["metadata"]
    name = f"{kind} {meta.get('name') or meta.get('generateName') or '(no name)'}"
    try:
        if kind == "CronWorkflow":
            check_fields({"metadata": meta})
            validate_cron(document)
            name += ", in the Workflow that it makes"
            document = {"spec": document["spec"]["workflowSpec"]}
        check_fields(document)
    except InvalidValue as wrong:
        raise InvalidValue(str(wrong) if str(wrong).startswith(name) else f"{name}: {wrong}") from wrong


def check_all(documents: Sequence[Object], store: ObjectStore) -> None:
    """Check every document.

    Args:
        documents: Ready to be created, in any order.
        store: The world they go to: its settings, nodes and templates.

    Raises:
        InvalidValue: Says where in which document what was expected, what was found and what to do.
    """
    chosen = settings(store)
    cluster = cluster_of(store.list("Node"), OtherGpus(), chosen.topology_levels)
    limits = Limits(settings=chosen, gpus_by_type=gpus_by_type(cluster))
    brought = {
        (document["metadata"]["namespace"], document["metadata"].get("name", "")): document
        for document in documents
        if document["kind"] == "WorkflowTemplate"
    }

    def template(namespace: str, name: str, /) -> Object | None:
        """A WorkflowTemplate that comes with the documents, or that is there."""
        try:
            return brought.get((namespace, name)) or store.get("WorkflowTemplate", namespace, name)
        except NotFound:
            return None

    for document in documents:
        _check(document, limits, template)


def _check(document: Object, limits: Limits, template: TemplateSource) -> None:
    """Refuse one document in the words of whoever would refuse it later: the gate or the engine."""
    kind, meta = document["kind"], document["metadata"]
    name = meta.get("name") or meta["generateName"]
    if kind == "CronWorkflow":
        name = f"{name}, in the Workflow that it makes"
        document = {"kind": "Workflow", "metadata": {"uid": "", **meta}, "spec": document["spec"]["workflowSpec"]}
    if kind != "WorkflowTemplate":
        check_submission(document, limits)
    try:
        (validate_template if kind == "WorkflowTemplate" else validate)(document, template)
    except InvalidValue as wrong:
        raise InvalidValue(f"{kind} {name}: {wrong}") from wrong
