"""What holds for every reconcile: it may be repeated, cut off and called late, and changes nothing it was given."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.local.argo.builders import START, Bench, call, dag, shell, steps, workflow
from voda_flows.local.argo import advance
from voda_flows.objects import Object

ECHO = shell("echo", "echo {{inputs.parameters.m}}", inputs={"parameters": [{"name": "m"}]})
OUT = shell("out", outputs={"parameters": [{"name": "o", "valueFrom": {"path": "/tmp/o"}}]})


def test_same_state_again_changes_nothing() -> None:
    """An advance of its own result, with the same pods, makes no pods and gives the very same document."""
    bench = Bench(workflow(steps([call("a"), call("b")], [call("c")]), shell()))
    first = bench.look()

    second = bench.look(after_s=5)

    assert [pod["metadata"]["name"][:5] for pod in first.create] == ["w-sh-", "w-sh-"]
    assert second.workflow is first.workflow
    assert (second.create, second.delete) == ((), ())


def test_what_comes_in_stays_as_it_was() -> None:
    """Neither the Workflow nor its pods are changed."""
    bench = Bench(workflow(steps([call("a", withItems=[1, 2])], [call("b", "out")]), shell(), OUT))
    for _ in range(3):
        before = deepcopy((bench.workflow, bench.pods))
        found = advance(bench.workflow, bench.pods, lambda _namespace, _name: None, START)
        assert (bench.workflow, bench.pods) == before
        bench.look()
        for node in [name for name, node in bench.nodes.items() if node["type"] == "Pod"]:
            bench.end(node, o="x")
        assert found.workflow["status"]["phase"] in ("Running", "Succeeded")


def test_crash_before_the_status_was_kept_makes_no_pod_twice() -> None:
    """Pods are there, the status is not: the next advance takes them over."""
    bench = Bench(workflow(steps([call("a"), call("b")]), shell()))
    submitted = bench.workflow
    first = bench.look()
    bench.workflow = submitted

    again = bench.look(after_s=1)

    assert len(first.create) == 2
    assert again.create == ()
    assert bench.phases == {"w": "Running", "w[0]": "Running", "w[0].a": "Pending", "w[0].b": "Pending"}


def test_crash_before_the_pods_were_made_makes_them_later() -> None:
    """The status is there, the pods are not: the next advance asks for them again."""
    bench = Bench(workflow(steps([call("a")]), shell()))
    first = bench.look()
    bench.pods.clear()

    assert bench.look(after_s=1).create == first.create


def test_running_pod_that_is_gone_is_an_error() -> None:
    """The node of a pod that was seen running and is not there any more ends as "pod deleted"."""
    bench = Bench(workflow(shell()))
    bench.look()
    bench.run("w")
    bench.look()
    bench.pods.clear()
    bench.look()

    assert (bench.status["phase"], bench.status["message"]) == ("Error", "pod deleted")


def test_pod_of_another_workflow_is_left_alone() -> None:
    """A pod of that name whose owner is an earlier Workflow is waited for, not taken over."""
    bench = Bench(workflow(shell()))
    bench.look()
    bench.end("w")
    old = deepcopy(bench.pods)
    bench = Bench({**workflow(shell()), "metadata": {"name": "w", "namespace": "default", "uid": "uid-2"}})
    bench.pods = old

    found = bench.look()

    assert (found.create, bench.phases, found.again_s) == ((), {"w": "Pending"}, 0.5)


def test_changed_template_changes_no_running_workflow() -> None:
    """What a templateRef and a workflowTemplateRef named is kept in the status with the first use."""
    library = {"spec": {"templates": [shell("used", "old")]}}
    whole = {"spec": {"entrypoint": "main", "templates": [
        steps([call("a", "sh")], [{"name": "b", "templateRef": {"name": "library", "template": "used"}}],
              [{"name": "c", "templateRef": {"name": "library", "template": "used"}}]), shell("sh")]}}  # fmt: skip
    document = workflow()
    document["spec"] = {"workflowTemplateRef": {"name": "whole"}}
    bench = Bench(document, {"library": library, "whole": whole})
    bench.look()
    bench.templates["whole"] = {"spec": {"entrypoint": "other", "templates": [shell("other")]}}
    bench.end("a")
    bench.look()
    bench.templates["library"] = {"spec": {"templates": [shell("used", "new")]}}
    bench.end("b")
    bench.look()

    assert bench.pod("c")["spec"]["containers"][0]["command"] == ["sh", "-c", "old"]
    assert bench.nodes["w[2].c"]["templateRef"] == {"name": "library", "template": "used"}
    assert bench.nodes["w[2].c"]["templateScope"] == "local/"


def test_arguments_of_the_workflow_go_before_its_templates() -> None:
    """Arguments are joined by name: the Workflow's value, else the WorkflowTemplate's."""
    whole = {"spec": {"entrypoint": "echo", "templates": [ECHO], "arguments": {"parameters": [
        {"name": "m", "value": "template's"}, {"name": "x", "value": "1"}]}}}  # fmt: skip
    document = workflow()
    document["spec"] = {
        "workflowTemplateRef": {"name": "whole"},
        "arguments": {"parameters": [{"name": "m", "value": "mine"}]},
    }
    bench = Bench(document, {"whole": whole})
    bench.look()

    assert bench.nodes["w"]["inputs"] == {"parameters": [{"name": "m", "value": "mine"}]}


def test_reference_to_what_never_came_fails_the_step() -> None:
    """An output of a skipped step has no value: who needs it fails with its name instead of hanging."""
    reads = call("b", "echo", arguments={"m": "{{steps.a.outputs.parameters.o}}"})
    bench = Bench(workflow(steps([call("a", "out", when="1 == 2")], [reads]), OUT, ECHO))
    bench.look()

    assert bench.status["phase"] == "Failed"
    assert bench.status["message"] == (
        "failed to resolve references: failed to resolve {{steps.a.outputs.parameters.o}}"
    )


def test_invalid_workflow_ends_at_the_first_look() -> None:
    """Who was not asked at submission is told by the status."""
    bench = Bench(workflow(steps([call("a", "nothing")])))
    found = bench.look()

    assert found.create == ()
    assert (bench.status["phase"], bench.status["message"]) == (
        "Failed",
        "invalid spec: templates.main.steps[0].a template name 'nothing' undefined",
    )


def test_terminated_workflow_names_its_pods_until_they_have_ended() -> None:
    """A crash between the end of the Workflow and that of its pods leaves none behind."""
    bench = Bench(workflow(shell()))
    bench.look()
    bench.run("w")
    bench.look()
    bench.workflow = {**bench.workflow, "spec": {**bench.workflow["spec"], "shutdown": "Terminate"}}

    assert (bench.look().end, bench.status["phase"]) == (("w",), "Failed")
    assert bench.look().end == ("w",)
    bench.end("w", 143)
    assert bench.look().end == ()


def test_stop_deletes_what_has_not_begun() -> None:
    """A pod that runs is ended and stays, with its log; one that waits for a node goes."""
    bench = Bench(workflow(steps([call("a"), call("b")]), shell()))
    bench.look()
    bench.run("a")
    bench.workflow = {**bench.workflow, "spec": {**bench.workflow["spec"], "shutdown": "Stop"}}
    found = bench.look()

    names = {node: bench.pod(node)["metadata"]["name"] for node in ("a", "b")}
    assert (found.end, found.delete) == ((names["a"],), (names["b"],))


def test_late_workflow_fails_its_gates_and_starts_nothing() -> None:
    """ActiveDeadlineSeconds of the Workflow ends what is open; pods get what is left of it."""
    document = workflow(steps([call("a"), call("g", "gate")]), shell(), {"name": "gate", "suspend": {}},
                        activeDeadlineSeconds=10)  # fmt: skip
    bench = Bench(document)

    assert bench.look().again_s == 10
    assert bench.pod("a")["spec"]["activeDeadlineSeconds"] == 10
    bench.end("a")
    bench.look(after_s=11)
    assert bench.nodes["w[0].g"]["message"] == "Step exceeded its deadline"
    assert bench.status["phase"] == "Failed"


def test_parallelism_lets_no_more_run() -> None:
    """Steps and tasks beyond the limit are begun as others end."""
    items: dict[str, Any] = {"withItems": [0, 1, 2]}
    for template in (steps([call("a", **items)], parallelism=2), dag(call("a", **items), parallelism=2)):
        bench = Bench(workflow(template, shell()))
        bench.look()
        assert len(bench.pods) == 2
        bench.end("a(0:0)")
        bench.look()
        assert len(bench.pods) == 3
        for name in ("a(1:1)", "a(2:2)"):
            bench.end(name)
        bench.look()
        assert (bench.status["phase"], bench.status["progress"]) == ("Succeeded", "3/3")


@pytest.mark.parametrize("depth", [101])
def test_recursion_without_an_end_is_stopped(depth: int) -> None:
    """More than a hundred nested templates are an error, not a hang."""
    bench = Bench(workflow(steps([call("again", "main")])))
    bench.look()

    assert bench.status["phase"] in ("Failed", "Error")
    assert len(bench.nodes) < 3 * depth


def test_large_workflow_at_rest_stays_the_same_object() -> None:
    """A hundred pods: a look at which nothing has happened makes no new document, so nothing is stored or sent."""
    items = {"withItems": list(range(50)), "arguments": {"m": "{{item}}"}}
    bench = Bench(workflow(steps([call("a", "echo", **items)], [call("b", "echo", **items)]), ECHO))
    bench.look()
    for pod in list(bench.pods.values()):
        _end(pod)
    bench.look()
    bench.look()

    before = bench.workflow
    looked = bench.look()

    assert len(bench.nodes) == 103
    assert looked.create == ()
    assert looked.workflow is before


def _end(pod: Object) -> None:
    said: dict[str, Any] = {"parameters": {}, "exitCode": "0"}
    pod["metadata"]["annotations"]["voda.dev/outputs"] = json.dumps(said)
    pod["status"] = {"phase": "Succeeded"}


def test_gate_waits_for_its_duration() -> None:
    """A suspended node with a duration ends by itself, and says when to look again."""
    bench = Bench(workflow({"name": "wait", "suspend": {"duration": "1m30s"}}))

    assert bench.look().again_s == 90
    assert bench.look(after_s=89).again_s == pytest.approx(1)
    bench.look(after_s=1)
    assert bench.status["phase"] == "Succeeded"
    assert bench.now - START == timedelta(seconds=90)
