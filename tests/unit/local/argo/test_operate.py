"""Suspend, resume, stop, terminate and retry: what each makes of a Workflow's document."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest

from scheduler_core.errors import Conflict
from tests.unit.local.argo.builders import START, Bench, call, dag, shell, steps, workflow
from voda_flows.local.argo import operate
from voda_flows.objects import Object

GATE = {
    "name": "gate",
    "suspend": {},
    "outputs": {"parameters": [{"name": "x", "valueFrom": {"supplied": {}, "default": "none"}}]},
}


def running() -> Bench:
    """A step that runs beside an open gate, another behind them, an exit handler."""
    bench = Bench(workflow(steps([call("a"), call("g", "gate")], [call("b")]), shell(), GATE, shell("bye"),
                           onExit="bye"))  # fmt: skip
    bench.look()
    bench.run("a")
    bench.look()
    return bench


def test_resume_opens_every_gate_with_its_defaults() -> None:
    """As ``argo resume`` without a selector does; what was given stays apart from what is given."""
    bench = running()
    before = deepcopy(bench.workflow)

    resumed = operate.resume(bench.workflow, START)

    assert bench.workflow == before
    bench.workflow = resumed
    bench.look()
    assert bench.nodes["w[0].g"]["outputs"] == {"parameters": [{"name": "x", "value": "none"}]}
    assert bench.phases["w[0].g"] == "Succeeded"


def test_suspended_workflow_starts_nothing_until_resumed() -> None:
    """What runs goes on and is looked at; the next step waits."""
    bench = running()
    bench.workflow = operate.suspend(bench.workflow)
    bench.end("a")
    bench.look()
    assert bench.phases["w[0].a"] == "Succeeded"
    assert "w[1].b" not in bench.phases

    bench.workflow = operate.resume(bench.workflow, START)
    bench.look()
    assert bench.phases["w[1].b"] == "Pending"


def test_stopped_workflow_ends_its_pods_and_runs_its_exit_handler() -> None:
    """Gates fail, pods are ended and their ends noted, onExit runs, then the Workflow has failed."""
    bench = running()
    bench.workflow = operate.stop(bench.workflow)
    bench.look()
    assert bench.ended == [bench.pod("a")["metadata"]["name"]]
    assert {name: node.get("message") for name, node in bench.nodes.items() if name.startswith("w[0].")} == {
        "w[0].a": "workflow shutdown with strategy:  Stop",
        "w[0].g": "Stopped with strategy 'Stop'",
    }
    bench.end("w.onExit")
    bench.look()
    assert bench.status["phase"] == "Running"

    bench.end("a", 143)
    bench.look()

    assert (bench.status["phase"], bench.status["message"]) == ("Failed", "Stopped with strategy 'Stop'")
    assert bench.nodes["w[0].a"]["outputs"] == {"exitCode": "143"}


def test_terminated_workflow_ends_at_once_without_its_exit_handler() -> None:
    """The same, but nothing else is started and nothing waited for."""
    bench = running()
    bench.workflow = operate.terminate(bench.workflow)
    bench.look()

    assert (bench.status["phase"], bench.status["message"]) == ("Failed", "Stopped with strategy 'Terminate'")
    assert "w.onExit" not in bench.phases


def test_retry_forgets_what_failed_and_all_behind_it() -> None:
    """Failed pods, what followed them and the exit handler go; groups around them run again; the rest stays."""
    main = steps([call("ok")], [call("bad"), call("good")])
    bench = Bench(workflow(main, shell(), shell("bye"), onExit="bye"))
    for ends in ({"ok": 0}, {"bad": 1, "good": 0}, {"w.onExit": 0}):
        bench.look()
        for node, code in ends.items():
            bench.end(node, code)
    bench.look()
    assert bench.status["phase"] == "Failed"

    again = operate.retry(bench.workflow, START)

    assert sorted(again.delete) == sorted(bench.pod(node)["metadata"]["name"] for node in ("bad", "w.onExit"))
    bench.workflow = again.workflow
    for name in again.delete:
        del bench.pods[name]
    found = bench.look()
    assert [pod["metadata"]["annotations"]["workflows.argoproj.io/node-name"] for pod in found.create] == ["w[1].bad"]
    bench.end("bad")
    bench.look()
    bench.end("w.onExit")
    bench.look()
    assert (bench.status["phase"], bench.status["progress"]) == ("Succeeded", "4/4")


def test_retry_leaves_a_failure_that_was_gone_past() -> None:
    """A failed step that may fail, with a success behind it, is no reason to go back."""
    goes_on = call("lost", continueOn={"failed": True})
    bench = Bench(workflow(steps([goes_on], [call("next")], [call("last")]), shell()))
    for node, code in (("lost", 1), ("next", 0), ("last", 1)):
        bench.look()
        bench.end(node, code)
    bench.look()

    again = operate.retry(bench.workflow, START)

    assert again.delete == (bench.pod("last")["metadata"]["name"],)


def test_retry_waits_for_an_old_pod_that_still_ends() -> None:
    """A pod of before the retry that is on its way out is not taken for the new one."""
    bench = Bench(workflow(shell()))
    bench.look()
    bench.end("w", 1)
    bench.look()
    bench.pods["w"]["metadata"]["deletionTimestamp"] = bench.pods["w"]["metadata"]["creationTimestamp"]
    bench.workflow = operate.retry(bench.workflow, START).workflow

    bench.look(after_s=1)
    assert bench.phases == {"w": "Pending"}
    del bench.pods["w"]
    assert [pod["metadata"]["name"] for pod in bench.look(after_s=1).create] == ["w"]


@pytest.mark.parametrize("verb", ["suspend", "stop", "terminate"])
def test_what_has_ended_is_not_changed(verb: str) -> None:
    """The message says what was expected."""
    bench = Bench(workflow(shell()))
    bench.look()
    bench.end("w")
    bench.look()

    with pytest.raises(Conflict, match=f"cannot {verb} what has ended, it is Succeeded"):
        getattr(operate, verb)(bench.workflow)
    with pytest.raises(Conflict, match="cannot retry what has not failed, it is Succeeded"):
        operate.retry(bench.workflow, START)


def test_resubmitted_workflow_is_a_new_one() -> None:
    """The same spec under a new name, with labels and annotations; nothing of the old one's life."""
    bench = running()
    bench.workflow["metadata"]["labels"]["mine"] = "1"
    bench.workflow = operate.stop(bench.workflow)

    again = operate.resubmit(bench.workflow)

    assert again["metadata"] == {"namespace": "default", "generateName": "w-", "labels": {
        "mine": "1", "workflows.argoproj.io/resubmitted-from-workflow": "w",
    }}  # fmt: skip
    assert again["spec"] == {key: value for key, value in bench.workflow["spec"].items() if key != "shutdown"}
    assert "status" not in again


@pytest.mark.parametrize("group", [steps, lambda calls: dag(*calls)])
def test_retry_runs_only_the_items_of_a_fan_out_that_failed(group: Callable[[list[Object]], Object]) -> None:
    """The other items' nodes stay as they are."""
    bench = Bench(workflow(group([call("a", withItems=[0, 1, 2])]), shell()))
    bench.look()
    for node in [name for name in bench.nodes if name.endswith((":1)", ":2)"))]:
        bench.end(node, 1)
    bench.end("a(0:0)")
    bench.look()
    again = operate.retry(bench.workflow, START)
    for name in again.delete:
        del bench.pods[name]
    bench.workflow = again.workflow
    bench.look()

    phases = {node["displayName"]: node["phase"] for node in bench.nodes.values() if node["type"] == "Pod"}
    assert phases == {"a(0:0)": "Succeeded", "a(1:1)": "Pending", "a(2:2)": "Pending"}
    assert len(bench.pods) == 3
