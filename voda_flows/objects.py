"""Objects as plain documents: what holds for each of them wherever it is kept.

In and out are raw ``dict`` in Kubernetes' shape; nothing here keeps or changes anything. Stores, the engine of local
mode and the control loop stand on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from scheduler_core.errors import InvalidValue

Object = dict[str, Any]

CLUSTER_SCOPED = frozenset({"Node"})
#: Phases in which a pod, a Workflow and a Workflow's node do not move any more.
POD_ENDED = frozenset({"Succeeded", "Failed"})
WORKFLOW_ENDED = POD_ENDED | {"Error"}
NODE_ENDED = WORKFLOW_ENDED | {"Skipped", "Omitted"}
#: GPUs as nodes offer and containers ask for them.
GPU = "nvidia.com/gpu"
#: Labels: of a pod, its Workflow; of both, whether they have ended; of a Workflow, the cron workflow that made it; of a
#: node, its own name.
WORKFLOW_LABEL = "workflows.argoproj.io/workflow"
COMPLETED_LABEL = "workflows.argoproj.io/completed"
CRON_LABEL = "workflows.argoproj.io/cron-workflow"
HOSTNAME_LABEL = "kubernetes.io/hostname"
KINDS = frozenset({"Workflow", "WorkflowTemplate", "CronWorkflow", "Pod", "Node", "ConfigMap", "Secret", "Lease"})


class Key(NamedTuple):
    """Where an object is found."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """As people name it: ``Pod default/x``."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def phase_of(body: Object) -> str:
    """An object's phase; empty before it has one."""
    return (body.get("status") or {}).get("phase") or ""


def key_of(body: Object) -> Key:
    """The place of a document that has a name.

    Raises:
        InvalidValue: It has no kind that is known, or no metadata.
    """
    kind, metadata = body.get("kind"), body.get("metadata")
    if kind not in KINDS:
        raise InvalidValue(f"expected a kind out of {', '.join(sorted(KINDS))}, got {kind!r} (at $.kind)")
    if not isinstance(metadata, dict):
        raise InvalidValue(f"{kind}: expected an object, got {metadata!r} (at $.metadata)")
    namespace = "" if kind in CLUSTER_SCOPED else metadata.get("namespace") or "default"
    return Key(str(kind), str(namespace), str(metadata.get("name") or ""))


def merge_patch(target: Any, patch: Any) -> Any:  # noqa: ANN401 - RFC 7386 is about any JSON value
    """The target with the patch laid over it, by RFC 7386; neither is changed.

    >>> merge_patch({"a": {"b": 1, "c": 2}}, {"a": {"b": None, "d": [3]}})
    {'a': {'c': 2, 'd': [3]}}
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def has_labels(body: Object, labels: Mapping[str, str]) -> bool:
    """Whether the object carries all these labels."""
    found = body["metadata"].get("labels") or {}
    return all(found.get(name) == value for name, value in labels.items())


def num_gpus(amounts: Mapping[str, object] | None) -> int:
    """How many GPUs a list of resources names; text, as Kubernetes writes them, or numbers.

    >>> num_gpus({"nvidia.com/gpu": "2", "cpu": "500m"})
    2
    """
    text = str((amounts or {}).get(GPU) or 0)
    return int(text) if text.isascii() and text.isdigit() else 0


def owner_uids(body: Object) -> tuple[str, ...]:
    """The uids of those with whom the object goes."""
    return tuple(owner["uid"] for owner in body["metadata"].get("ownerReferences") or ())


def format_time(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds, as local mode writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """The moment of an RFC 3339 text, with a fraction of the second or without.

    Raises:
        InvalidValue: It is none.
    """
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"expected an RFC 3339 time such as 2026-01-31T10:00:00Z, got {text!r}") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def seconds(text: object) -> float | None:
    """Seconds since the epoch of a time in an object.

    Args:
        text: RFC 3339 in UTC, with or without a fraction; anything else is no time.

    Returns:
        The time, or None where there is none.

    >>> seconds("1970-01-01T00:01:00.500000Z")
    60.5
    >>> seconds(None) is None
    True
    """
    if not isinstance(text, str) or not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
