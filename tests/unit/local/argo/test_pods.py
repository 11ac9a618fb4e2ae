"""The pod that is asked for: what of a template and its Workflow goes where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler_core.errors import InvalidValue
from tests.unit.local.argo.builders import Bench, call, shell, steps, workflow
from voda_flows.local.argo.podpatch import patched
from voda_flows.objects import Object

SPEC: Object = {
    "containers": [{"name": "main", "command": ["a"], "env": [{"name": "A", "value": "1"}], "args": ["x"]}],
    "volumes": [{"name": "v", "emptyDir": {}}],
    "nodeSelector": {"a": "1"},
}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ('{"nodeSelector": {"b": "2"}}', {**SPEC, "nodeSelector": {"a": "1", "b": "2"}}),
        ("nodeSelector: {a: null}\nhostNetwork: true", {**SPEC, "nodeSelector": {}, "hostNetwork": True}),
        ('{"volumes": [{"name": "w", "emptyDir": {}}]}',
         {**SPEC, "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]}),
        ('{"volumes": [{"name": "v", "$patch": "delete"}]}', {**SPEC, "volumes": []}),
        ('{"containers": [{"name": "main", "args": ["y"], "env": [{"name": "A", "value": "2"}]}]}',
         {**SPEC, "containers": [{"name": "main", "command": ["a"], "env": [{"name": "A", "value": "2"}],
                                  "args": ["y"]}]}),
    ],
)  # fmt: skip
def test_patch_merges_lists_by_their_key(patch: str, expected: Object) -> None:
    """Strategic merge: containers, volumes and variables by name, plain lists replaced whole, null takes away."""
    assert patched(SPEC, patch) == expected


@pytest.mark.parametrize(
    "patch",
    [
        *("[1]", "{", "a: b: c", "nodeSelector: &n {a: *n}", "[" * 5000, "a: " + "[" * 200, '{"containers": [3]}'),
        *('{"volumes": [{"name": ["x"]}]}', "a: 2026-99-99"),
    ],
    ids=lambda patch: patch[:30],
)
def test_patch_that_is_none_is_refused(patch: str) -> None:
    """The message shows the patch."""
    with pytest.raises(InvalidValue, match="podSpecPatch: expected"):
        patched(SPEC, patch)


def test_pod_says_whose_it_is_and_what_to_collect() -> None:
    """Labels, annotations, owner and ``voda.dev/collect``; standard output is kept only where somebody reads it."""
    outputs = {"parameters": [{"name": "o", "valueFrom": {"path": "/tmp/{{inputs.parameters.m}}", "default": "d"}}]}
    script: dict[str, Any] = {
        "name": "s",
        "inputs": {"parameters": [{"name": "m"}]},
        "outputs": outputs,
        "metadata": {"labels": {"l": "{{inputs.parameters.m}}"}, "annotations": {"voda.dev/allocation": ""}},
        "script": {"image": "i", "command": ["sh"], "source": "echo {{inputs.parameters.m}}"},
    }
    reads = call("b", arguments={"m": "{{steps.a.outputs.result}}"})
    bench = Bench(workflow(steps([call("a", "s", arguments={"m": "x"})], [reads]), script, shell()))
    bench.look()

    pod = bench.pod("a")
    collect = json.loads(pod["metadata"]["annotations"].pop("voda.dev/collect"))

    assert collect == {
        "parameters": {"o": "/tmp/x"},
        "result": True,
        "outputs": [{"name": "o", "valueFrom": {"path": "/tmp/x", "default": "d"}}],
        "source": "echo x",
        "sourcePath": "/argo/staging/script",
    }
    assert pod["spec"] == {
        "containers": [{"name": "main", "image": "i", "command": ["sh"], "args": ["/argo/staging/script"],
                        "env": [{"name": "ARGO_PROGRESS_FILE", "value": "/var/run/argo/progress"}]}],
        "restartPolicy": "Never",
    }  # fmt: skip
    assert pod["metadata"]["labels"] == {
        "l": "x",
        "workflows.argoproj.io/workflow": "w",
        "workflows.argoproj.io/completed": "false",
    }
    assert pod["metadata"]["annotations"] == {
        "voda.dev/allocation": "",
        "workflows.argoproj.io/node-id": bench.nodes["w[0].a"]["id"],
        "workflows.argoproj.io/node-name": "w[0].a",
    }
    assert [owner["uid"] for owner in pod["metadata"]["ownerReferences"]] == ["uid-w"]


def test_volume_of_the_workflow_goes_to_who_mounts_it() -> None:
    """A mount takes the Workflow's volume of that name; one that is nowhere fails the node."""
    mounts = shell("mounts")
    mounts["container"]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "unused", "emptyDir": {}}]
    bench = Bench(workflow(mounts, volumes=volumes))
    bench.look()
    assert bench.pod("w")["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]

    bench = Bench(workflow(mounts))
    bench.look()
    assert bench.status["message"] == "error in entry template execution: volume 'v' not found in workflow spec"


@pytest.mark.parametrize("claim", ["../../x", "/etc", "a/b"])
def test_claim_that_leaves_the_volumes_is_refused_once_its_name_is_known(claim: str) -> None:
    """A variable cannot bring what a document may not say."""
    mounts = shell(
        "mounts", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "{{workflow.parameters.c}}"}}]
    )
    mounts["container"]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    bench = Bench(workflow(mounts, arguments={"parameters": [{"name": "c", "value": claim}]}))

    bench.look()

    assert bench.pods == {}
    assert "persistentVolumeClaim.claimName: Invalid value" in bench.status["message"]
