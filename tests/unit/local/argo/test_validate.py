"""What is refused at submission, with the path of the fault; the golden refusals are in tests/contract/argo."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_core.errors import InvalidValue
from tests.unit.local.argo.builders import call, dag, shell, steps, workflow
from voda_flows.local.argo import validate, validate_template
from voda_flows.objects import Object

TEMPLATES = Path(__file__).parents[4] / "templates"
M = {"parameters": [{"name": "m"}]}


def nothing(namespace: str, name: str) -> Object | None:
    """No WorkflowTemplates."""
    return None


def shipped(namespace: str, name: str) -> Object | None:
    """The WorkflowTemplates of this repository."""
    path = TEMPLATES / f"{name}.yaml"
    return yaml.safe_load(path.read_text()) if path.exists() else None


def metadata(**fields: Any) -> Callable[[Object], Object]:
    """A change of a Workflow's metadata."""
    return lambda document: {**document, "metadata": fields}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            workflow(shell(retrystrategy={})),
            ('strict decoding error: unknown field "spec.templates[0].retrystrategy" (did you mean retryStrategy?)'),
        ),
        (
            workflow(shell(), entryPoint="x"),
            ('strict decoding error: unknown field "spec.entryPoint" (did you mean entrypoint?)'),
        ),
        (
            workflow(shell(http={"url": "x"})),
            ('spec.templates: Invalid value: "array": template must have at most one template type'),
        ),
        (workflow({"name": "h", "http": {"url": "x"}}), "spec.templates[0].http: not supported in local mode"),
        (workflow(shell(daemon=True)), "spec.templates[0].daemon: not supported in local mode"),
        (workflow(shell(), parallelism=1), "spec.parallelism: not supported in local mode"),
        (
            workflow(steps([call("a", hooks={})]), shell()),
            ("spec.templates[0].steps[0][0].hooks: not supported in local mode"),
        ),
        (
            workflow(shell(name="no-command") | {"container": {"image": "i"}}),
            "templates.no-command.container.command: expected a command; local mode has no image to take one from",
        ),
        (
            workflow(shell(inputs={"parameters": [{"name": False}]})),
            (
                'spec.templates[0].inputs.parameters[0].name: Invalid value: "boolean": '
                'spec.templates[0].inputs.parameters[0].name in body must be of type string: "boolean"'
            ),
        ),
        (
            workflow(shell(), templates={}),
            ('spec.templates: Invalid value: "object": spec.templates in body must be of type array: "object"'),
        ),
        (
            workflow(shell(), suspend="yes"),
            ('spec.suspend: Invalid value: "string": spec.suspend in body must be of type boolean: "string"'),
        ),
        (
            workflow(shell(), arguments={"parameters": [{"name": "p"}]}),
            "spec.arguments.p.value or spec.arguments.p.valueFrom is required",
        ),
        (workflow(shell(inputs=M)), "templates.sh inputs.parameters.m was not supplied"),
        (
            workflow(shell(command="echo {{inputs.parameters.x}}")),
            ("templates.sh: failed to resolve {{inputs.parameters.x}}"),
        ),
        (workflow(shell(command="echo {{item}}")), "templates.sh: failed to resolve {{item}}"),
        (
            workflow(shell(command="echo {{=sprig.trim(' x')}}")),
            (
                "templates.sh: expression 'sprig.trim(' x')': function sprig.trim: not supported in local mode"
                " (known: asFloat, asInt, float, int, len, string)"
            ),
        ),
        (
            workflow(steps([call("a", when="{{tasks.b.status}} == x")]), shell()),
            "templates.main.steps failed to resolve {{tasks.b.status}}",
        ),
        (
            workflow(steps([call("a"), call("b", when="{{steps.a.status}} == x")]), shell()),
            "templates.main.steps failed to resolve {{steps.a.status}}",
        ),
        (
            workflow(steps([{"name": "a"}]), shell()),
            ("templates.main.steps[0].a: expected one of template, templateRef and inline"),
        ),
        (
            workflow(steps([call("a", withItems=[1], withParam="[]")]), shell()),
            "templates.main.steps[0].a: expected one of withItems, withParam, withSequence, got withItems, withParam",
        ),
        (workflow(dag(call("a", depends="a.Succeeded")), shell()), "templates.main sorting failed: graph with cycle"),
        (
            workflow(dag(call("a"), call("b", when="{{tasks.a.status}} == x")), shell()),
            "templates.main.tasks.b failed to resolve {{tasks.a.status}}",
        ),
        (
            workflow(shell(retryStrategy={"retryPolicy": "Sometimes"})),
            (
                "templates.sh.retryStrategy.retryPolicy: expected one of Always, OnFailure, OnError, OnTransientError,"
                " got 'Sometimes'"
            ),
        ),
        (
            workflow(shell(outputs={"parameters": [{"name": "o", "valueFrom": {"parameter": "x"}}]})),
            "templates.sh.outputs.parameters.o.valueFrom: expected path in a template of this kind, got parameter",
        ),
        (workflow(shell()) | {"metadata": {}}, "metadata.name: Required value: name or generateName is required"),
        (
            workflow(shell(), workflowTemplateRef={"name": "x"}),
            'workflow templates.argoproj.io "x" not found in namespace default',
        ),
    ],
)
def test_fault_is_refused_with_its_path(document: Object, message: str) -> None:
    """One clear sentence: where, and what."""
    with pytest.raises(InvalidValue) as fault:
        validate(document, nothing)

    assert str(fault.value) == message


@pytest.mark.parametrize(
    "document",
    [
        workflow(shell(command="echo {{workflow.name}} {{workflow.uid}} {{workflow.creationTimestamp}} {{pod.name}}")),
        workflow(shell(command="echo {{retries}} {{lastRetry.exitCode}}", retryStrategy={"limit": 2})),
        workflow(steps([call("a", withItems=[{"x": 1}], arguments={"m": "{{item.x}}"})]), shell(inputs=M)),
        workflow(steps([call("a")], [call("b", when="{{steps.a.status}} == {{steps.a.exitCode}}")]), shell()),
        workflow(dag(call("a-b"), call("c", depends="a-b.Failed || a-b.AnySucceeded")), shell()),
        workflow(shell(), onExit="bye", templates=[shell(), shell("bye", "echo {{workflow.status}}")]),
        workflow(steps([{"name": "a", "inline": {"container": {"image": "i", "command": ["true"]}}}])),
    ],
)
def test_what_argo_runs_is_accepted(document: Object) -> None:
    """Variables of every kind, in the places where they have a value."""
    validate(document, nothing)


@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("examples/*.yaml")), ids=lambda path: path.stem)
def test_examples_are_accepted(path: Path) -> None:
    """Every example job of this repository can be submitted as it is."""
    for document in yaml.safe_load_all(path.read_text()):
        validate(document, shipped)


def test_templates_are_accepted_without_their_users_arguments() -> None:
    """The job's template has a required argument: it is no fault of the template."""
    validate_template(shipped("", "voda-elastic-job") or {}, nothing)


def test_fault_of_a_template_that_nobody_calls_is_found() -> None:
    """A WorkflowTemplate is checked as a whole, before anybody uses it."""
    document = {"metadata": {"name": "t"}, "spec": {"templates": [shell(command="{{nope}}")]}}

    with pytest.raises(InvalidValue, match=r"templates\.sh: failed to resolve {{nope}}"):
        validate_template(document, nothing)
