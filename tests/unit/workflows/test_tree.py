"""Finding a job's segments among a Workflow's nodes."""

from __future__ import annotations

from voda_flows.objects import Object
from voda_flows.workflows.tree import SegmentNodes, tree


def node(name: str, template: str, inside: str = "", kind: str = "Pod", **inputs: str) -> Object:
    """A node that began when its name says: names are in order of start."""
    given = [{"name": key, "value": value} for key, value in inputs.items()]
    return {"name": name, "templateName": template, "boundaryID": inside, "type": kind, "startedAt": name,
            "inputs": {"parameters": given}}  # fmt: skip


def workflow(*nodes: Object) -> Object:
    """A Workflow that is one job, ``0``."""
    return {
        "metadata": {"name": "0"},
        "spec": {"workflowTemplateRef": {"name": "voda-elastic-job"}},
        "status": {"nodes": {each["name"]: each for each in nodes}},
    }


def names(segment: SegmentNodes) -> dict[str, list[str]]:
    """Nodes of a segment by template, by their names."""
    return {template: [each["name"] for each in nodes] for template, nodes in segment.by_template.items()}


def test_a_segment_has_what_lies_in_it_but_not_in_the_next() -> None:
    """Each segment lies inside the one before; what was skipped, and groups of steps, are nobody's."""
    found = tree(
        workflow(
            node("0", "job", kind="Steps"),
            node("1", "segment", "0", "Steps", segment="0"),
            node("2", "gate", "1", "Suspend"),
            node("3", "train", "1", "Steps"),
            node("4", "", "3", "StepGroup"),
            node("5", "worker", "3"),
            node("6", "segment", "3", "Steps", segment="1"),
            node("7", "gate", "6", "Suspend"),
            node("8", "train", "6", "Skipped"),
            node("9", "segment", "6", "Steps", segment="1"),
        )
    ).segments("0")

    assert [(segment.number, names(segment)) for segment in found] == [
        (0, {"gate": ["2"], "train": ["3"], "worker": ["5"], "segment": ["6"]}),
        (1, {"gate": ["7"], "segment": ["9"]}),
        (1, {}),
    ]
