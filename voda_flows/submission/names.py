"""Whether a document's name, namespace and labels are such as Kubernetes and Argo keep: what their API checks first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from scheduler_core.errors import InvalidValue
from voda_flows.objects import Object

#: Argo's limits: the Workflow's name is a label of its pods, a cron workflow's gets eleven more characters.
LONGEST: Final = {"Workflow": 63, "WorkflowTemplate": 63, "CronWorkflow": 52}
SUFFIX: Final = 5  # characters that `generateName` adds
_PART: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(rf"{_PART}(\.{_PART})*")
_LABEL: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_KEY: Final = re.compile(rf"(?:(?P<prefix>{_PART}(?:\.{_PART})*)/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_MAX_LABEL, _MAX_PREFIX, _MAX_NAMESPACE = 63, 253, 63
_NAME_RULE: Final = "lower-case letters, digits, '-' and '.', a letter or digit first and last"
_LABEL_RULE: Final = f"at most {_MAX_LABEL} letters, digits, '-', '_' and '.', a letter or digit first and last"


def check_names(document: Object) -> None:
    """Refuse a name, a namespace or a label that no cluster would take.

    Args:
        document: Of a kind that can be submitted, its shape checked.

    Raises:
        InvalidValue: With the path of the first.
    """
    kind, meta = document["kind"], document["metadata"]
    _check_name(meta, LONGEST[kind])
    namespace = meta.get("namespace") or "default"
    if len(namespace) > _MAX_NAMESPACE or not re.fullmatch(_PART, namespace):
        raise _wrong("metadata.namespace", namespace, f"at most {_MAX_NAMESPACE} lower-case letters, digits and '-'")
    for path, labels in _labels(document):
        for key, value in labels.items():
            _check_label(f"{path}.{key}", key, value)
    for key in meta.get("annotations") or {}:
        _check_key(f"metadata.annotations.{key}", key)


def _check_name(meta: Object, longest: int) -> None:
    name, prefix = meta.get("name"), meta.get("generateName") or ""
    if not name:
        if len(prefix) > longest - SUFFIX:
            rule = f"at most {longest - SUFFIX} characters ({SUFFIX} more are added)"
            raise _wrong("metadata.generateName", prefix, f"{rule}, not {len(prefix)}")
        if not _NAME.fullmatch(f"{prefix}x"):
            raise _wrong("metadata.generateName", prefix, f"the beginning of a name of {_NAME_RULE}")
    elif len(name) > longest:
        raise _wrong("metadata.name", name, f"at most {longest} characters, not {len(name)}")
    elif not _NAME.fullmatch(name):
        raise _wrong("metadata.name", name, f"{_NAME_RULE}{_proposal(name)}")


def _proposal(name: str) -> str:
    """A name that would do, to end a message with."""
    better = re.sub(r"[^-a-z0-9.]+", "-", name.lower()).strip("-.")
    return f"; did you mean {better!r}?" if "{{" not in name and _NAME.fullmatch(better) else ""


def _labels(document: Object) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The labels of a document, of the Workflows that it makes and of their pods."""
    spec, base = document["spec"], "spec"
    yield "metadata.labels", document["metadata"].get("labels") or {}
    if document["kind"] == "CronWorkflow":
        yield "spec.workflowMetadata.labels", (spec.get("workflowMetadata") or {}).get("labels") or {}
        spec, base = spec["workflowSpec"], "spec.workflowSpec"
    for name in ("workflowMetadata", "podMetadata"):
        yield f"{base}.{name}.labels", (spec.get(name) or {}).get("labels") or {}
    for index, template in enumerate(spec.get("templates") or ()):
        yield f"{base}.templates[{index}].metadata.labels", (template.get("metadata") or {}).get("labels") or {}


def _check_label(path: str, key: str, value: object) -> None:
    _check_key(path, key)
    text = str(value)
    if "{{" not in text and (len(text) > _MAX_LABEL or not _LABEL.fullmatch(text)):
        raise _wrong(path, text, _LABEL_RULE)


def _check_key(path: str, key: str) -> None:
    found = _KEY.fullmatch(key) if len(key) <= _MAX_PREFIX + 1 + _MAX_LABEL else None
    prefix = (found["prefix"] or "") if found else ""
    if found is None or len(key) - len(prefix) - bool(prefix) > _MAX_LABEL or len(prefix) > _MAX_PREFIX:
        rule = f"a key of {_LABEL_RULE}, after a domain and '/' if it has one"
        raise InvalidValue(f"{path}: Invalid value: {_cut(key)}: expected {rule}", path=path)


def _wrong(path: str, value: str, rule: str) -> InvalidValue:
    return InvalidValue(f"{path}: Invalid value: {_cut(value)}: expected {rule}", path=path)


def _cut(value: str) -> str:
    return repr(value) if len(value) <= _MAX_PREFIX else f"{value[:_MAX_LABEL]!r}..."
