"""What the contract suite found to differ from the real controller (tests/contract/two_worlds), as small cases."""

from __future__ import annotations

import pytest

from scheduler_core.errors import InvalidValue
from tests.unit.local.argo.builders import Bench, call, dag, shell, steps, workflow
from voda_flows.local.argo import validate
from voda_flows.local.argo.conditions import should_run
from voda_flows.objects import Object


def names_of_children(bench: Bench, node: str) -> list[str]:
    """The display names of a node's children, in order."""
    by_id = bench.status["nodes"]
    return [by_id[key]["displayName"] for key in bench.nodes[node].get("children", ())]


def test_children_of_a_group_are_in_the_order_of_its_steps() -> None:
    """Whether a step runs or is passed over makes no difference to its place."""
    bench = Bench(workflow(steps([call("a"), call("b", when="false"), call("c")]), shell()))

    bench.look()

    assert names_of_children(bench, "w[0]") == ["a", "b", "c"]


def test_tasks_on_which_no_other_depends_begin_in_the_order_of_their_names() -> None:
    """Not in the order in which the template has them."""
    bench = Bench(workflow(dag(call("c"), call("b"), call("a")), shell()))

    bench.look()

    assert names_of_children(bench, "w") == ["a", "b", "c"]


def test_workflow_without_pods_says_that_none_runs() -> None:
    """From the second look on, as the controller does."""
    bench = Bench(workflow(steps([call("g", "gate")]), {"name": "gate", "suspend": {"duration": "5s"}}))

    first = bench.look().workflow["status"]["conditions"]
    bench.look(after_s=6)

    assert first == []
    assert bench.status["conditions"] == [
        {"type": "PodRunning", "status": "False"},
        {"type": "Completed", "status": "True"},
    ]


def test_expression_of_a_retry_knows_the_number_of_tries_before() -> None:
    """`retries` is 0 when the first try has failed."""
    strategy = {"limit": "5", "expression": "asInt(retries) < 1"}
    bench = Bench(workflow(shell(retryStrategy=strategy)))
    bench.look()
    bench.end("w(0)", 1)
    bench.look(after_s=1)
    bench.end("w(1)", 1)
    bench.look(after_s=1)

    assert bench.status["phase"] == "Failed"
    assert bench.status["message"] == "retryStrategy.expression evaluated to false"


def test_backoff_without_a_limit_is_no_wait() -> None:
    """The controller waits only where there is a limit that leaves another try."""
    bench = Bench(workflow(shell(retryStrategy={"backoff": {"duration": "60"}})))
    bench.look()
    bench.end("w(0)", 1)

    bench.look(after_s=1)

    assert bench.phases["w(1)"] == "Pending"


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("yes in ('yes', 'no')", True),
        ("maybe in ('yes', 'no')", False),
        ("1 in (2, 1)", True),
        ("!(x in (a, b)) && true", True),
        ("'1' in (1, 2)", False),
    ],
)
def test_condition_may_ask_for_one_of_a_list(condition: str, *, holds: bool) -> None:
    """`in` and brackets, each compared as by `==`."""
    assert should_run(condition) is holds


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("two words == 'x'", "VARIABLE [two] to VARIABLE [words]"),
        ("'a' 'b' == 'x'", "STRING [a] to STRING [b]"),
        ("7 up == 'x'", "NUMERIC [7] to VARIABLE [up]"),
    ],
)
def test_condition_with_two_values_in_a_row_is_refused_in_argos_words(condition: str, words: str) -> None:
    """What people get when they forget quotes."""
    with pytest.raises(InvalidValue) as fault:
        should_run(condition)

    assert str(fault.value) == f"Invalid 'when' expression '{condition}': Cannot transition token types from {words}"


@pytest.mark.parametrize("around", [lambda one: steps([one]), dag])
def test_condition_with_a_pattern_is_refused_by_name_at_submission(around: object) -> None:
    """Rather than when its turn has come; one in quotes is text."""
    fine, wrong = call("a", when="'=~' == x"), call("a", when="{{workflow.name}} =~ 'w.*'")

    def document(one: Object) -> Object:
        return workflow(around(one), shell())  # type: ignore[operator]  # a builder

    validate(document(fine), lambda _namespace, _name: None)
    with pytest.raises(InvalidValue, match=r"when: =~: not supported in local mode"):
        validate(document(wrong), lambda _namespace, _name: None)


def test_arguments_of_an_exit_hook_are_filled_in() -> None:
    """With how the Workflow ended, above all."""
    asked = {"template": "bye", "arguments": {"parameters": [{"name": "m", "value": "{{workflow.status}}"}]}}
    bye = shell("bye", inputs={"parameters": [{"name": "m"}]})
    bench = Bench(workflow(shell(), bye, hooks={"exit": asked}))
    bench.look()
    bench.end("w", 3)
    bench.look(after_s=1)

    assert bench.nodes["w.onExit"]["inputs"] == {"parameters": [{"name": "m", "value": "Failed"}]}


@pytest.mark.parametrize(
    ("source", "default", "phase", "words"),
    [
        ("{{steps.a.outputs.parameters.o}}{{steps.b.outputs.parameters.o}}", {}, "Error",
         'Unable to resolve: "steps.a.outputs.parameters.o}}{{steps.b.outputs.parameters.o"'),
        ("{{steps.a.outputs.parameters.o}}{{steps.b.outputs.parameters.o}}", {"default": "d"}, "Succeeded", "d"),
        ("{{steps.a.outputs.parameters.o}}", {}, "Succeeded", "x"),
    ],
)  # fmt: skip
def test_output_of_a_group_is_taken_from_one_place(
    source: str, default: dict[str, str], phase: str, words: str
) -> None:
    """A `parameter` is one reference, not a text with several."""
    out = shell("out", outputs={"parameters": [{"name": "o", "valueFrom": {"path": "/tmp/o"}}]})
    taken = {"parameters": [{"name": "both", "valueFrom": {"parameter": source, **default}}]}
    bench = Bench(workflow(steps([call("a", "out"), call("b", "out")], outputs=taken), out))
    bench.look()
    for name in ("a", "b"):
        bench.end(name, o="x")
    bench.look(after_s=1)

    node = bench.nodes["w"]
    said = node["message"] if phase == "Error" else node["outputs"]["parameters"][0]["value"]
    assert (node["phase"], said) == (phase, words)


def test_labels_that_the_spec_adds_are_variables_too() -> None:
    """From the first look on."""
    tells = shell("tells", "echo {{workflow.labels.l}} {{workflow.annotations.a}}")
    bench = Bench(workflow(tells, workflowMetadata={"labels": {"l": "one"}, "annotations": {"a": "two"}}))

    validate(bench.workflow, lambda _namespace, _name: None)
    bench.look()

    assert bench.pod("w")["spec"]["containers"][0]["command"][-1] == "echo one two"


def test_labels_of_all_pods_go_before_those_of_a_template() -> None:
    """Where both name the same."""
    labelled = shell(metadata={"labels": {"both": "template", "own": "yes"}})
    bench = Bench(workflow(labelled, podMetadata={"labels": {"both": "all"}}))

    bench.look()

    labels = bench.pod("w")["metadata"]["labels"]
    assert (labels["both"], labels["own"]) == ("all", "yes")


def test_values_outside_an_enum_are_taken() -> None:
    """The list is for people who fill in a form; the controller does not hold anybody to it."""
    picks = shell("picks", inputs={"parameters": [{"name": "m", "enum": ["a", "b"]}]})
    bench = Bench(workflow(steps([call("x", "picks", arguments={"m": "c"})]), picks))

    bench.look()

    assert bench.nodes["w[0].x"]["inputs"]["parameters"] == [{"name": "m", "enum": ["a", "b"], "value": "c"}]


def test_stop_begins_no_task_of_a_graph() -> None:
    """Nor passes one over: what depended on a pod that is stopped has no node, and the graph has failed."""
    bench = Bench(workflow(dag(call("a"), call("b", dependencies=["a"])), shell()))
    bench.look()
    bench.run("a")
    bench.look(after_s=1)
    bench.workflow = {**bench.workflow, "spec": {**bench.workflow["spec"], "shutdown": "Terminate"}}

    bench.look(after_s=1)

    assert bench.phases == {"w": "Failed", "w.a": "Failed"}
    assert bench.nodes["w"].get("outboundNodes", []) == []


def test_nodes_of_a_referred_template_are_of_no_workflow_of_their_own() -> None:
    """Their scope is empty where a Workflow is made from a WorkflowTemplate."""
    whole = {**workflow(steps([call("a")]), shell()), "kind": "WorkflowTemplate"}
    bench = Bench({**workflow(), "spec": {"workflowTemplateRef": {"name": "whole"}}}, {"whole": whole})

    bench.look()

    assert {node["templateScope"] for node in bench.nodes.values()} == {"local/"}


def test_pod_goes_where_the_template_around_it_says() -> None:
    """Its own node selector goes first, then that of its steps, then the Workflow's."""
    inner = steps([call("a"), call("b", "own")], name="inner", nodeSelector={"on": "steps"})
    own = shell("own", nodeSelector={"on": "own"})
    bench = Bench(workflow(steps([call("x", "inner"), call("c")]), inner, shell(), own, nodeSelector={"on": "all"}))

    bench.look()

    found = {name: bench.pod(name)["spec"]["nodeSelector"]["on"] for name in ("a", "b", "c")}
    assert found == {"a": "steps", "b": "own", "c": "all"}


def test_item_without_what_is_asked_of_it_is_an_error() -> None:
    """Its text is not taken as it stands: a grant that lacks what the template shows must be seen at once."""
    fan = call("a", "sh", withParam='[{"id": "w0"}]', when="{{item.id}} == {{item.shown}}")
    bench = Bench(workflow(steps([fan]), shell()))

    bench.look()

    assert bench.nodes["w[0]"]["phase"] == "Error"
    assert bench.nodes["w"]["message"] == "failed to resolve {{item.shown}}"


def test_a_shown_name_is_that_of_the_node_around_the_tries() -> None:
    """The tries themselves are called as the step is, with their numbers."""
    shown = shell(annotations={"workflows.argoproj.io/display-name": "shown"}, retryStrategy={"limit": "1"})
    bench = Bench(workflow(steps([call("a")]), shown))

    bench.look()

    assert [(node["type"], node["displayName"]) for node in bench.nodes.values() if node["name"] != "w"] == [
        ("StepGroup", "[0]"),
        ("Retry", "shown"),
        ("Pod", "a(0)"),
    ]


def test_a_patch_that_is_none_makes_no_pod() -> None:
    """What Argo says of it, and why; and nothing is said of pods that run, as there never was one."""
    patch = '{"nodeSelector":{"a":"{{inputs.parameters.n}}"}}'
    where = shell(inputs={"parameters": [{"name": "n"}]}, podSpecPatch=patch)
    bench = Bench(workflow(steps([call("a", arguments={"n": 'n"0'})]), where))

    bench.look()

    assert bench.nodes["w[0].a"]["message"].startswith("Error applying PodSpecPatch: expected JSON or YAML, got")
    assert bench.status["conditions"] == [{"type": "Completed", "status": "True"}]
