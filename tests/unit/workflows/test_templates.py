"""Rendered templates are the twins of their definitions, and hold what every reader of YAML takes alike."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from voda_flows.render import TEMPLATES, rendered, write
from voda_flows.workflows.elastic_job import w
from voda_flows.workflows.examples import EXAMPLES, Example
from voda_flows.workflows.parameters import PARAMETERS
from voda_flows.workflows.told import CALLED
from voda_flows.yaml_text import dump_yaml


def strings(value: Any) -> list[Any]:
    """Every scalar of a document."""
    if isinstance(value, dict):
        return [found for entry in value.values() for found in strings(entry)] + list(value)
    if isinstance(value, list):
        return [found for entry in value for found in strings(entry)]
    return [value]


@pytest.mark.parametrize("name", sorted(rendered()))
def test_the_file_says_what_the_definition_says(name: str) -> None:
    """A twin that is out of date fails; ``make render`` mends it."""
    assert yaml.safe_load((TEMPLATES / name).read_text(encoding="utf-8")) == rendered()[name][1]


def test_there_is_no_file_without_a_definition() -> None:
    """A workflow that was renamed leaves no old twin behind."""
    assert sorted(str(path.relative_to(TEMPLATES)) for path in TEMPLATES.rglob("*.yaml")) == sorted(rendered())


def test_rendering_twice_changes_nothing(tmp_path: Path) -> None:
    """Rendering is deterministic: the second time leaves no diff."""
    assert len(write(tmp_path)) == len(rendered())
    assert write(tmp_path) == []


def test_every_parameter_value_is_text() -> None:
    """Kubernetes refuses parameters that YAML reads as numbers or booleans."""
    document = w.to_dict()
    values = [row.get("value") for row in document["spec"]["arguments"]["parameters"]]

    assert all(value is None or isinstance(value, str) for value in values)


def test_only_the_command_must_be_given() -> None:
    """A submit form asks for what has no default, and for nothing else."""
    (job,) = [template for template in w.to_dict()["spec"]["templates"] if template["name"] == "job"]

    assert [row["name"] for row in job["inputs"]["parameters"] if "default" not in row] == ["command"]
    assert [row["name"] for row in job["inputs"]["parameters"]] == [row.name for row in PARAMETERS]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example.workflow.name))
def test_an_example_says_in_argos_ui_what_it_is(example: Example) -> None:
    """A title that begins with the name, by which it is found, and its header as description."""
    annotations = example.workflow.to_dict()["metadata"]["annotations"]

    assert annotations["workflows.argoproj.io/title"].startswith(f"{example.workflow.name}: ")
    assert annotations["workflows.argoproj.io/description"] == example.header


def test_nodes_are_called_so_that_argo_takes_it() -> None:
    """A template's annotation, not its pods'; what is put into a name is a number, or made by the scheduler for it."""
    templates = w.to_dict()["spec"]["templates"]
    called = {row["name"]: row["annotations"]["workflows.argoproj.io/display-name"]
              for row in templates if "annotations" in row}  # fmt: skip

    assert called == CALLED
    assert {tag for name in called.values() for tag in re.findall("{{(.*?)}}", name)} == {
        "inputs.parameters.segment",
        "inputs.parameters.shown",
    }


def test_templates_and_steps_have_the_names_of_the_contract() -> None:
    """The scheduler knows nodes by these names."""
    templates = {template["name"]: template for template in w.to_dict()["spec"]["templates"]}
    steps = {
        name: [[step["name"] for step in group] for group in template["steps"]]
        for name, template in templates.items()
        if "steps" in template
    }

    assert sorted(templates) == sorted(
        ["job", "segment", "train", "grow", "gate", "grow-gate", "worker", "driver", "checkpoint"]
    )
    assert steps == {
        "job": [["segment"]],
        "segment": [["gate"], ["train", "requeue"]],
        "train": [["driver", "worker", "grow"], ["checkpoint"], ["resize"]],
        "grow": [["gate"], ["worker", "again"]],
    }


def test_a_jobs_pods_can_be_where_all_nodes_have_gpus() -> None:
    """GPU nodes are tainted against pods that do not say so: driver and checkpoint step must have a place too."""
    pods = [template for template in w.to_dict()["spec"]["templates"] if "container" in template]
    tolerated = {template["name"]: [row["key"] for row in template["tolerations"]] for template in pods}
    keys = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "nvidia.com/gpu"]

    assert tolerated == dict.fromkeys(("worker", "driver", "checkpoint"), keys)


def test_every_input_is_used_and_given() -> None:
    """Argo fails a node for an input that nobody gives, and drops an argument that nobody takes."""
    templates = {template["name"]: template for template in w.to_dict()["spec"]["templates"]}
    takes = {
        name: {row["name"] for row in (template.get("inputs") or {}).get("parameters", [])}
        for name, template in templates.items()
    }
    for name, template in templates.items():
        for step in [step for group in template.get("steps", []) for step in group]:
            given = {row["name"] for row in (step.get("arguments") or {}).get("parameters", [])}
            assert given == takes[step["template"]], f"{name}.{step['name']}"


def test_every_pod_sets_something_aside() -> None:
    """A pod that asks for nothing is the first to be ended where a node's memory runs short."""
    templates = {template["name"]: template for template in w.to_dict()["spec"]["templates"]}
    patch = json.loads(templates["worker"]["podSpecPatch"])
    asked = {name: templates[name]["container"]["resources"]["requests"] for name in ("driver", "checkpoint")}

    assert patch["containers"][0]["resources"]["requests"] == {
        "cpu": "{{inputs.parameters.cpu-per-worker}}",
        "memory": "{{inputs.parameters.memory-per-worker}}",
    }
    assert all(amounts == {"cpu": "100m", "memory": "256Mi"} for amounts in asked.values())


@pytest.mark.parametrize(
    "text", ["n", "y", "on", "no", "Yes", "null", "~", "0", "1e3", "0x1f", "1_000", "", "-", "12:30:45"]
)
def test_text_that_could_be_read_as_something_else_is_quoted(text: str) -> None:
    """YAML 1.1 reads a bare n as false and 12:30:45 as a number."""
    written = dump_yaml([{"value": text}])

    assert written in (f'value: "{text}"\n', f"value: '{text}'\n")


def test_documents_come_back_as_they_were() -> None:
    """Whatever is dumped loads to the same document."""
    document = {
        "a": ["x: y", "# no comment", "it's", '{"json": 1}', "two\nlines\n"],
        "n": {"b": None, "c": 1.5, "d": True},
    }

    assert yaml.safe_load(dump_yaml([document])) == document
