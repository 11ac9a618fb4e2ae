"""A Workflow's nodes where Argo keeps them: in the open, packed when the status grows beyond 1 MB, or elsewhere.

Packed nodes are base64 of gzip of their JSON in ``status.compressedNodes``. Argo unpacks them only where
``status.nodes`` is empty, so a patch that put one node beside them would hide all the others: a change goes into the
package.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import zlib
from collections.abc import Mapping
from typing import Any

from scheduler_core.errors import InvalidValue
from voda_flows.objects import Object, merge_patch

PACKED = "compressedNodes"
#: Names a row of the database that the controller was told to offload nodes to.
ELSEWHERE = "offloadNodeStatusVersion"


def nodes_of(workflow: Object) -> Mapping[str, Object]:
    """The nodes by id; none before the engine has looked, and where they are kept in a database.

    Raises:
        InvalidValue: They are packed in a way that is not known.
    """
    status = workflow.get("status") or {}
    nodes: Mapping[str, Object] = status.get("nodes") or {}
    return nodes if nodes or not status.get(PACKED) else _unpack(workflow, status[PACKED])


def is_packed(workflow: Object) -> bool:
    """Whether the nodes are packed."""
    status = workflow.get("status") or {}
    return bool(status.get(PACKED)) and not status.get("nodes")


def nodes_patch(workflow: Object, changes: Mapping[str, Object]) -> Object:
    """The merge-patch that changes some nodes; only for this very version of the Workflow where they are packed.

    Args:
        workflow: The Workflow.
        changes: What is different, as a merge-patch for each node's id.

    Raises:
        InvalidValue: The nodes are packed in a way that is not known.
    """
    if not is_packed(workflow):
        return {"status": {"nodes": dict(changes)}}
    nodes = merge_patch(dict(nodes_of(workflow)), dict(changes))
    return {"status": {PACKED: pack(nodes)}}


def with_open_nodes(workflow: Object) -> Object:
    """The Workflow with its nodes in the open, to be looked at and changed as a whole.

    Raises:
        InvalidValue: They are packed in a way that is not known, or kept in a database.
    """
    status = workflow.get("status") or {}
    if status.get(ELSEWHERE) and not status.get("nodes"):
        raise InvalidValue(
            f"workflow {workflow['metadata']['name']!r}: expected its nodes in the Workflow, the controller keeps them "
            f"in a database (status.{ELSEWHERE}); use `argo` with an argo-server that has that database"
        )
    if not is_packed(workflow):
        return workflow
    rest = {name: value for name, value in status.items() if name != PACKED}
    return {**workflow, "status": {**rest, "nodes": dict(nodes_of(workflow))}}


def with_packed_nodes(workflow: Object) -> Object:
    """The Workflow with its open nodes packed, as Argo keeps many of them."""
    rest = {name: value for name, value in workflow["status"].items() if name != "nodes"}
    return {**workflow, "status": {**rest, PACKED: pack(workflow["status"]["nodes"])}}


def pack(nodes: Mapping[str, Object]) -> str:
    """Nodes as Argo packs them; the same text for the same nodes."""
    text = json.dumps(nodes, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _unpack(workflow: Object, packed: str) -> Mapping[str, Object]:
    try:
        nodes: Any = json.loads(gzip.decompress(base64.b64decode(packed, validate=True)))
    except (binascii.Error, OSError, EOFError, zlib.error, ValueError) as wrong:
        raise InvalidValue(
            f"workflow {workflow['metadata']['name']!r}: expected gzip of JSON in status.{PACKED}, found another "
            f"packing ({wrong}); let the controller pack with gzip, or end the Workflow and submit the rest as another"
        ) from wrong
    found: Mapping[str, Object] = nodes
    return found
