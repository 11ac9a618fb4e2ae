"""DAGs beyond the golden documents: conditions over ends, fan-outs, and how a branch's failure ends the whole."""

from __future__ import annotations

import pytest

from tests.unit.local.argo.builders import Bench, call, dag, shell, steps, workflow
from voda_flows.objects import Object

M = {"parameters": [{"name": "m"}]}


def ended(document: Object, **codes: int) -> Bench:
    """A Workflow whose pods end with these codes (0 where none is given) as soon as they are there."""
    bench = Bench(document)
    for _ in range(10):
        bench.look()
        for node in list(bench.nodes.values()):
            if node["type"] == "Pod" and node["phase"] == "Pending":
                bench.end(node["name"], codes.get(node["displayName"], 0))
        if bench.status["phase"] != "Running":
            return bench
    raise AssertionError(bench.phases)


@pytest.mark.parametrize(
    ("depends", "codes", "phase", "runs"),
    [
        ("a.Failed", {"a": 1}, "Succeeded", True),
        ("a.Failed", {}, "Succeeded", False),
        ("a && b", {"b": 1}, "Failed", False),
        ("a || b", {"b": 1}, "Succeeded", True),
        ("!a.Succeeded", {"a": 1}, "Succeeded", True),
        ("(a.Failed && b.Failed) || (a && b)", {"a": 1, "b": 1}, "Succeeded", True),
    ],
)
def test_condition_decides_whether_a_task_runs(depends: str, codes: dict[str, int], phase: str, runs: bool) -> None:
    """One that does not hold leaves the task omitted; the branch before it decides how the DAG ends."""
    document = workflow(dag(call("a"), call("b"), call("c", depends=f"({depends}) || a.Errored || b.Errored")), shell())

    bench = ended(document, **codes)

    assert bench.status["phase"] == phase
    assert bench.phases["w.c"] == ("Succeeded" if runs else "Omitted")


def test_old_spelling_goes_on_after_what_may_fail() -> None:
    """ContinueOn of a task lets those that name it among their dependencies run."""
    may_fail = call("a", continueOn={"failed": True})
    bench = ended(workflow(dag(may_fail, call("b", dependencies=["a"])), shell()), a=1)

    assert bench.phases == {"w": "Succeeded", "w.a": "Failed", "w.b": "Succeeded"}


def test_task_reads_what_those_before_it_put_out() -> None:
    """Near and far, also of a fan-out."""
    out = shell("out", outputs={"parameters": [{"name": "o", "valueFrom": {"path": "/o", "default": "d"}}]})
    say = shell("say", "{{inputs.parameters.m}}", inputs=M)
    reads = "{{tasks.a-1.outputs.parameters.o}} {{tasks.a-1.status}}"
    main = dag(
        call("a-1", "out", withItems=["x", "y"]),
        call("b", depends="a-1"),
        call("c", "say", depends="b", arguments={"m": reads}),
    )
    bench = ended(workflow(main, out, say, shell()))

    assert bench.nodes["w.c"]["inputs"] == {"parameters": [{"name": "m", "value": '["d","d"] Succeeded'}]}
    assert bench.phases["w.a-1(0:x)"] == "Succeeded"


@pytest.mark.parametrize(("items", "code", "phase"), [("[]", 0, "Skipped"), ("[1,2]", 0, "Succeeded")])
def test_fan_out_over_a_parameter(items: str, code: int, phase: str) -> None:
    """An empty list leaves a skipped task, and what depends on it runs."""
    main = dag(call("a", withParam="{{inputs.parameters.m}}"), call("b", depends="a"), inputs=M)
    bench = ended(workflow(main, shell(), arguments={"parameters": [{"name": "m", "value": items}]}), a=code)

    assert bench.status["phase"] == "Succeeded"
    assert (bench.phases["w.a"], bench.phases["w.b"]) == (phase, "Succeeded")


def test_dag_inside_steps_hands_its_outputs_up() -> None:
    """The outputs of a group's template are taken from its tasks, and read by the next step."""
    out = shell("out", outputs={"parameters": [{"name": "o", "valueFrom": {"path": "/o", "default": "deep"}}]})
    up = {"parameters": [{"name": "r", "valueFrom": {"parameter": "{{tasks.t.outputs.parameters.o}}"}}]}
    inner = dag(call("t", "out"), name="inner", outputs=up)
    say = shell("say", "{{inputs.parameters.m}}", inputs=M)
    reads = call("b", "say", arguments={"m": "{{steps.a.outputs.parameters.r}}"})
    bench = ended(workflow(steps([call("a", "inner")], [reads]), inner, out, say))

    assert bench.nodes["w[0].a"]["outputs"] == {"parameters": [{"name": "r", "value": "deep"}]}
    assert bench.nodes["w[1].b"]["inputs"] == {"parameters": [{"name": "m", "value": "deep"}]}
    assert bench.status["progress"] == "2/2"


@pytest.mark.parametrize(("when", "expected"), [("true", "from b"), ("false", "from a")])
def test_an_output_is_taken_from_the_step_that_ran(when: str, expected: str) -> None:
    """An expression may name outputs of a step that was skipped, where it does not choose them."""
    shells = [
        shell(name, outputs={"parameters": [{"name": "o-1", "valueFrom": {"path": "/o", "default": f"from {name}"}}]})
        for name in ("a", "b")
    ]
    chosen = "steps.b.status == 'Skipped' ? steps.a.outputs.parameters['o-1'] : steps.b.outputs.parameters['o-1']"
    up = {"parameters": [{"name": "r", "valueFrom": {"expression": chosen, "default": "unknown"}}]}
    main = steps([call("a", "a")], [call("b", "b", when=when)], outputs=up)
    bench = ended(workflow(main, *shells))

    assert bench.nodes["w"]["outputs"] == {"parameters": [{"name": "r", "value": expected}]}


def test_an_output_of_what_never_was_is_its_default() -> None:
    """As on the real controller, whatever is wrong with the value."""
    up = {"parameters": [{"name": "r", "valueFrom": {"expression": "steps.a.outputs.parameters.x", "default": "d"}}]}
    bench = ended(workflow(steps([call("a", "a")], outputs=up), shell("a")))

    assert bench.nodes["w"]["outputs"] == {"parameters": [{"name": "r", "value": "d"}]}


def test_fan_out_item_that_needs_what_never_came_fails_its_group() -> None:
    """The reference is named; nothing hangs."""
    out = shell("out", outputs={"parameters": [{"name": "o", "valueFrom": {"path": "/o"}}]})
    say = shell("say", "{{inputs.parameters.m}}", inputs=M)
    reads = call("b", "say", withItems=[1], arguments={"m": "{{steps.a.outputs.parameters.o}}"})
    bench = ended(workflow(steps([call("a", "out", when="false")], [reads]), out, say))

    assert bench.status["message"] == "failed to resolve {{steps.a.outputs.parameters.o}}"


def test_tries_inside_a_dag_count_as_one_task() -> None:
    """A task that is retried ends as its last try; what depends on it comes behind that one."""
    tried = shell("tried", retryStrategy={"limit": "1"})
    document = workflow(dag(call("a", "tried"), call("b", depends="a")), tried, shell())
    bench = ended(document, **{"a(0)": 1})

    assert bench.phases == {
        "w": "Succeeded",
        "w.a": "Succeeded",
        "w.a(0)": "Failed",
        "w.a(1)": "Succeeded",
        "w.b": "Succeeded",
    }
    assert bench.nodes["w.a(1)"]["children"] == [bench.nodes["w.b"]["id"]]
    assert bench.status["progress"] == "2/3"
