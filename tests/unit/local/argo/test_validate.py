"""What is refused at submission, with the path of the fault; the golden refusals are in tests/contract/argo."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_core.errors import InvalidValue
from tests.unit.local.argo.builders import Bench, call, dag, shell, steps, workflow
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
                "spec.templates[0].inputs.parameters[0].name in body must be of type string: "
                '"boolean"; put it in quotes'
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
        (
            workflow(dag(call("a", depends="a.Succeeded")), shell()),
            "templates.main sorting failed: graph with cycle: a -> a",
        ),
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


MAIN = {"image": "i", "command": ["true"]}
#: What a container may ask for that this machine does not do, with the path of the part that is not done.
UNHEEDED: Sequence[tuple[Object, str]] = [
    ({"envFrom": [{"configMapRef": {"name": "c"}}]}, "envFrom"),
    ({"securityContext": {"runAsUser": 1}}, "securityContext"),
    ({"livenessProbe": {"exec": {"command": ["true"]}}}, "livenessProbe"),
    ({"readinessProbe": {"httpGet": {"port": 80}}}, "readinessProbe.httpGet"),
    ({"readinessProbe": {"exec": {"command": ["true"]}}}, "readinessProbe.exec"),
    ({"readinessProbe": {"tcpSocket": {"port": 80}, "initialDelaySeconds": 5}}, "readinessProbe.initialDelaySeconds"),
    ({"terminationMessagePath": "/dev/x"}, "terminationMessagePath"),
    ({"tty": True}, "tty"),
    ({"resources": {"limits": {"amd.com/gpu": "1"}}}, "resources.limits.amd.com/gpu"),
    ({"volumeMounts": [{"name": "v", "mountPath": "/v", "subPathExpr": "$(X)"}]}, "volumeMounts[0].subPathExpr"),
]


@pytest.mark.parametrize(("fields", "path"), UNHEEDED, ids=[path for _, path in UNHEEDED])
def test_part_of_a_container_that_would_not_be_heeded_is_refused(fields: Object, path: str) -> None:
    """In a template and in a podSpecPatch alike: nobody is to believe that it is obeyed."""
    template = {"name": "main", "container": {**MAIN, **fields}}
    patch = json.dumps({"containers": [{"name": "main", **fields}]})

    for document, start in (
        (workflow(template), "spec.templates[0].container"),
        (workflow(shell(podSpecPatch=patch)), "templates.sh.podSpecPatch.containers[0]"),
        (workflow(shell(), podSpecPatch=patch), "spec.podSpecPatch.containers[0]"),
    ):
        with pytest.raises(InvalidValue) as fault:
            validate(document, nothing)

        assert str(fault.value) == f"{start}.{path}: not supported in local mode"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"affinity": {"nodeAffinity": {}}}, "affinity"),
        ({"hostAliases": [{"ip": "1.2.3.4"}]}, "hostAliases"),
        ({"securityContext": {"runAsNonRoot": True}}, "securityContext"),
        ({"priorityClassName": "high"}, "priorityClassName"),
        ({"schedulerName": "mine"}, "schedulerName"),
        ({"volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}]}, "volumes[0].nfs"),
        ({"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}, "volumes[0].emptyDir.medium"),
        ({"volumes": [{"name": "v", "secret": {"secretName": "s", "defaultMode": 292}}]},
         "volumes[0].secret.defaultMode"),
    ],
)  # fmt: skip
def test_part_of_a_pod_that_would_not_be_heeded_is_refused(fields: Object, path: str) -> None:
    """In a template, in the Workflow and in a podSpecPatch."""
    for document, start in (
        (workflow(shell(**fields)), "spec.templates[0]"),
        (workflow(shell(), **fields), "spec"),
        (workflow(shell(podSpecPatch=json.dumps(fields))), "templates.sh.podSpecPatch"),
    ):
        with pytest.raises(InvalidValue) as fault:
            validate(document, nothing)

        assert str(fault.value) == f"{start}.{path}: not supported in local mode"


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (
            '{"initContainers": [{"name": "i"}]}',
            "templates.sh.podSpecPatch.initContainers: not supported in local mode",
        ),
        (
            '{"containers": [{"name": "side", "image": "i"}]}',
            "templates.sh.podSpecPatch.containers: expected only 'main', got 'side': not supported in local mode",
        ),
        (
            '{"nodeName": "n0", "hostpid": true}',
            'strict decoding error: unknown field "templates.sh.podSpecPatch.hostpid" (did you mean hostPID?)',
        ),
        ("[1]", "templates.sh.podSpecPatch: expected an object, got '[1]'"),
    ],
)
def test_patch_that_brings_more_than_one_container_has_is_refused(patch: str, message: str) -> None:
    """A pod of local mode is one process: a second container would never run."""
    with pytest.raises(InvalidValue) as fault:
        validate(workflow(shell(podSpecPatch=patch)), nothing)

    assert str(fault.value) == message


def test_patch_with_variables_is_checked_when_they_have_values() -> None:
    """What is no document before is let pass at submission; the node then ends in error, with the path."""
    inputs = {"parameters": [{"name": "more", "value": '"hostPID": true'}]}
    bench = Bench(workflow(shell(inputs=inputs, podSpecPatch="{ {{inputs.parameters.more}} }")))
    bench.look()

    assert (bench.workflow["status"]["phase"], bench.workflow["status"]["message"]) == (
        "Error",
        "error in entry template execution: podSpecPatch.hostPID: not supported in local mode",
    )


def test_template_of_another_document_is_checked_field_by_field() -> None:
    """What a templateRef brings is no more trusted than what the Workflow itself says."""
    library = {"spec": {"templates": [shell(daemon=True)]}}
    document = workflow(steps([{"name": "a", "templateRef": {"name": "lib", "template": "sh"}}]))

    with pytest.raises(InvalidValue) as fault:
        validate(document, lambda _namespace, _name: library)

    assert str(fault.value) == "workflow template lib: templates.sh.daemon: not supported in local mode"


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
