"""``podSpecPatch``: a strategic merge of a pod's spec, as Kubernetes defines it for lists that have a key.

In: a pod's spec and the patch as JSON or YAML text; out: the patched spec. Containers, volumes and the like are
matched by name, mounts by path; other lists are replaced whole. What a patch may bring is for ``schema.py`` to say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from scheduler_core.errors import InvalidValue
from voda_flows.objects import Object

MAX_DEPTH = 100

# Kubernetes' patchMergeKey of the lists that a pod's spec has.
MERGE_KEYS: Mapping[str, str] = {
    "containers": "name", "initContainers": "name", "volumes": "name", "env": "name", "volumeMounts": "mountPath",
    "volumeDevices": "devicePath", "ports": "containerPort", "imagePullSecrets": "name", "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}  # fmt: skip


def patched(spec: Object, patch: str) -> Object:
    """The spec with the patch laid over it.

    Raises:
        InvalidValue: The patch is no JSON or YAML object, or has something else where a list of named objects is due.
    """
    parsed = _parsed(patch)
    if not isinstance(parsed, dict):
        raise InvalidValue(f"podSpecPatch: expected an object, got {patch.strip()[:80]!r}")
    try:
        merged: Object = _merge(spec, parsed)
    except (AttributeError, TypeError) as error:
        keys = ", ".join(sorted(MERGE_KEYS))
        raise InvalidValue(f"podSpecPatch: expected objects in {keys}, got {patch.strip()[:80]!r}") from error
    return merged


def _parsed(patch: str) -> Any:  # noqa: ANN401 - any JSON or YAML value
    try:
        return json.loads(patch)
    except RecursionError as error:
        raise InvalidValue(f"podSpecPatch: expected at most {MAX_DEPTH} levels of nesting, got more") from error
    except ValueError:
        pass
    try:
        _check_yaml(patch)
        return yaml.safe_load(patch)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that is none
        raise InvalidValue(f"podSpecPatch: expected JSON or YAML, got {patch.strip()[:80]!r}: {error}") from error


def _check_yaml(patch: str) -> None:
    """Refuse what would grow, or nest, beyond measure."""
    depth = 0
    for event in yaml.parse(patch):
        if isinstance(event, yaml.AliasEvent):
            raise InvalidValue(f"podSpecPatch: expected no aliases, got *{event.anchor}; write the value out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise InvalidValue(f"podSpecPatch: expected at most {MAX_DEPTH} levels of nesting, got more")


def _merge(base: Any, patch: Any) -> Any:  # noqa: ANN401 - any JSON value
    if not isinstance(base, dict) or not isinstance(patch, dict):
        return patch
    merged = dict(base)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif name in MERGE_KEYS and isinstance(value, list):
            merged[name] = _merge_list(merged.get(name) or [], value, MERGE_KEYS[name])
        else:
            merged[name] = _merge(merged.get(name), value)
    return merged


def _merge_list(base: list[Any], patch: list[Any], key: str) -> list[Any]:
    rows = {row.get(key): row for row in base}
    for row in patch:
        if row.get("$patch") == "delete":
            rows.pop(row.get(key), None)
        else:
            rows[row.get(key)] = _merge(rows.get(row.get(key)), row)
    return list(rows.values())
