"""Names and ids that Argo gives to nodes and pods.

Pure text in, text out. A node's id is the Workflow's name and a hash of the node's own name; a pod's name (Argo's
version 2) has the template's name in between. Both are functions of names alone, so a reconcile that is repeated
after a crash finds what the one before it made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

FNV_OFFSET = 2166136261  # FNV-1a, 32 bits (http://www.isthe.com/chongo/tech/comp/fnv)
FNV_PRIME = 16777619

POD_PREFIX_LENGTH = 253 - 11  # a pod's name ends at 253 characters; the hash and its dash take 11

STEP_PREFIX = re.compile(r"^(\[\d+\])?\.")


@lru_cache(maxsize=1 << 16)
def fnv32a(text: str) -> int:
    """The 32-bit FNV-1a hash of the text's UTF-8 bytes.

    >>> fnv32a("steps-fail-sibling[0].a")
    829714027
    """
    value = FNV_OFFSET
    for byte in text.encode():
        value = ((value ^ byte) * FNV_PRIME) & 0xFFFFFFFF
    return value


def node_id(workflow: str, node_name: str) -> str:
    """The id of a node: the Workflow's name for the root, else with the hash of the node's name behind it."""
    return workflow if node_name == workflow else f"{workflow}-{fnv32a(node_name)}"


def pod_name(workflow: str, node_name: str, template: str) -> str:
    """The name of a node's pod, as Argo's version 2 of pod names gives it."""
    if node_name == workflow:
        return workflow
    prefix = f"{workflow}-{template}" if template else workflow
    return f"{prefix[:POD_PREFIX_LENGTH]}-{fnv32a(node_name)}"


def display_name(node_name: str, boundary_name: str | None) -> str:
    """What is shown for a node: its name without that of the node around it and without the number of its group."""
    if boundary_name is None or not node_name.startswith(boundary_name):
        return node_name
    return STEP_PREFIX.sub("", node_name[len(boundary_name) :])


def text(value: Any) -> str:  # noqa: ANN401 - any YAML scalar, list or map
    """A parameter's value as Argo keeps it: text stays, everything else is its compact JSON."""
    if isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else go_json(value)


def go_json(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Compact JSON as Go writes it: keys in order, and no character that HTML could take for its own."""
    plain = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    for sign, escaped in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        plain = plain.replace(sign, escaped)
    return plain


def item_name(step: str, index: int, item: Any) -> str:  # noqa: ANN401 - an element of any JSON list
    """The name of one child of a fan-out: ``worker(0:gpus:1,id:w0,node:n0)``; it has no parentheses of the item's."""
    if isinstance(item, Mapping):
        shown = ",".join(sorted(f"{key}:{_printed(value)}" for key, value in item.items()))
    elif isinstance(item, list):
        shown = f"[{' '.join(map(_printed, item))}]"
    else:
        shown = _printed(item)
    return f"{step}({index}:{shown.replace('(', '').replace(')', '')})"


def _printed(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """A value as Go prints an item: its JSON, of a string what is between the quotes."""
    if isinstance(value, float) and value.is_integer():
        return text(value)
    plain = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return plain[1:-1] if isinstance(value, str) else plain
