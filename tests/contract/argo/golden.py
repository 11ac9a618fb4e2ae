"""What the real controller did with the golden documents, and what an imitation must agree with.

See ``tests/contract/argo_golden/README.md``: "What an imitation must do".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from voda_flows.objects import Object

FOLDER = Path(__file__).parent.parent / "argo_golden"

MAY_BE_REFUSED = frozenset({
    "deadline-template", "deadline-workflow", "enum-expression", "hooks-running", "parallelism", "retry-expression",
    "step-exit-hook", "steps-inline-template", "with-sequence", "dag-failfast-off",
})  # fmt: skip

NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "elastic-job"))


def document(name: str) -> Object:
    """The document that was posted."""
    loaded: Object = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return loaded


def outcome(name: str) -> Object:
    """What came of it."""
    loaded: Object = json.loads((FOLDER / f"{name}.json").read_text())
    return loaded


def is_refused(name: str) -> bool:
    """Whether the API server refused it, or the controller before anything ran."""
    found = outcome(name)
    return "refused_by" in found or str(found["message"]).startswith("invalid spec: ")


def refusal(name: str) -> str:
    """The words of a refusal, without what the API server or the controller puts before them."""
    said = str(outcome(name)["message"])
    for before in (" is invalid: ", "cannot be handled as a Workflow: ", "invalid spec: "):
        said = said.rsplit(before, maxsplit=1)[-1]
    return said


def agreed(status: Object) -> dict[str, Any]:
    """What must agree of a Workflow's status, in the form of the golden outcomes."""
    nodes = {node["id"]: node for node in status.get("nodes", {}).values()}
    return {
        "phase": status["phase"],
        "message": status.get("message"),
        "progress": status["progress"],
        "nodes": {node["name"]: _seen(node, nodes) for node in nodes.values()},
    }


def _seen(node: Object, nodes: Mapping[str, Object]) -> dict[str, Any]:
    names = {key: each["name"] for key, each in nodes.items()}
    seen = dict(node)
    if node.get("boundaryID"):
        seen["boundary"] = names[node["boundaryID"]]
    if node.get("outboundNodes"):
        seen["outbound"] = sorted(names[key] for key in node["outboundNodes"])
    if node.get("children"):
        seen["children"] = sorted(names[key] for key in node["children"])
    return must_agree(seen)


def out_of_order(status: Object) -> list[tuple[str, str]]:
    """(leaf, what follows it) where the second began before the first had ended."""
    nodes = status.get("nodes", {})
    leaves = [node for node in nodes.values() if node["type"] in ("Pod", "Suspend")]
    return [
        (node["name"], nodes[key]["name"])
        for node in leaves
        for key in node.get("children", ())
        if nodes[key]["startedAt"] < node["finishedAt"]
    ]


def must_agree(node: Object) -> dict[str, Any]:
    """What must agree of one node of a golden outcome (and a little more: what it runs, its inputs, its place)."""
    fields = ("displayName", "type", "phase", "message", "boundary", "outputs", "progress", "templateName", "inputs",
              "children", "outbound")  # fmt: skip
    return {field: node[field] for field in fields if node.get(field) not in (None, [], {})}


def expected(found: Object) -> dict[str, Any]:
    """A golden outcome in the same form."""
    return {
        "phase": found["phase"],
        "message": found["message"],
        "progress": found["progress"],
        "nodes": {node["name"]: must_agree(node) for node in found.get("nodes", ())},
    }
