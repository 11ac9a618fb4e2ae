"""What `voda submit` refuses, before anything is created: the same that the gate and the engine would refuse later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from voda_flows.cli.settings import settings
from voda_flows.control.request import Limits, check_submission
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
    for document in documents:
        if document["kind"] == "Workflow":
            check_submission(document, limits)


def gpus_by_type(nodes: Iterable[Object]) -> Mapping[str, int]:
    """All GPUs of the nodes by product; those without a label under the empty name."""
    count: Counter[str] = Counter()
    for node in nodes:
        kind = (node["metadata"].get("labels") or {}).get(_GPU_TYPE, "")
        count[kind] += int(((node.get("status") or {}).get("allocatable") or {}).get(_GPU, 0))
    return dict(count)
