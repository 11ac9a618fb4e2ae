"""Laws of the local engine: any Workflow ends, whatever its pods do and wherever the engine is cut off."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.local.argo.builders import Bench, call, dag, shell, steps, workflow
from voda_flows.local.argo import operate, validate
from voda_flows.objects import Object

LEAVES = ("sh", "tried", "gate")
ENDED = ("Succeeded", "Failed", "Error")
LIMIT_LOOKS = 200

GATE = {"name": "gate", "suspend": {}}
TRIED = shell("tried", retryStrategy={"limit": "1", "retryPolicy": "Always"})


@st.composite
def calls(draw: st.DrawFn, name: str, inner: tuple[str, ...]) -> Object:
    """A step or task that calls one of the templates, maybe once per item, maybe allowed to fail, maybe not at all."""
    fields: dict[str, Any] = {}
    if draw(st.booleans()):
        fields["withItems"] = draw(st.lists(st.integers(0, 9), max_size=3))
    if draw(st.booleans()):
        fields["when"] = draw(st.sampled_from(["true", "1 == 2"]))
    if draw(st.booleans()):
        fields["continueOn"] = {"failed": True, "error": draw(st.booleans())}
    return call(name, draw(st.sampled_from((*LEAVES, *inner))), **fields)


@st.composite
def groups(draw: st.DrawFn, name: str, inner: tuple[str, ...]) -> Object:
    """A Steps or a DAG template of a few calls."""
    number = draw(st.integers(1, 4))
    made = [draw(calls(f"c{index}", inner)) for index in range(number)]
    if draw(st.booleans()):
        cut = draw(st.integers(1, number))
        return steps(*[group for group in (made[:cut], made[cut:]) if group], name=name)
    for index, task in enumerate(made):
        before = draw(st.lists(st.sampled_from([f"c{each}" for each in range(index)]), unique=True)) if index else []
        if before:
            task["dependencies"] = before
    return dag(*made, name=name)


@st.composite
def workflows(draw: st.DrawFn) -> Object:
    """A Workflow of up to three levels, maybe with an exit handler."""
    low = draw(groups("low", ()))
    middle = draw(groups("middle", ("low",)))
    main = draw(groups("main", ("low", "middle")))
    spec = {"onExit": "sh"} if draw(st.booleans()) else {}
    return workflow(main, low, middle, shell(), TRIED, GATE, **spec)


def live(bench: Bench) -> list[str]:
    """Names of nodes whose pods have not ended."""
    key = "workflows.argoproj.io/node-name"
    pods = bench.pods.values()
    return sorted(
        pod["metadata"]["annotations"][key]
        for pod in pods
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    )


def live_out(bench: Bench, data: st.DataObject, *, crashes: bool) -> None:
    """Let pods end one after the other, in any way, until the Workflow has ended."""
    for _ in range(LIMIT_LOOKS):
        kept = bench.workflow
        bench.look(after_s=1)
        if crashes and data.draw(st.booleans(), label="crash before the status is kept"):
            bench.workflow = kept
            bench.look()
        if bench.status["phase"] in ENDED:
            return
        nodes = live(bench)
        if nodes:
            node = data.draw(st.sampled_from(nodes), label="ends")
            bench.end(node, data.draw(st.sampled_from([0, 0, 1]), label="code"))
        else:
            bench.workflow = operate.resume(bench.workflow, bench.now)
    raise AssertionError(f"still {bench.status['phase']}: {bench.phases}")


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(workflows(), st.data())
def test_workflow_ends_whatever_its_pods_do(document: Object, data: st.DataObject) -> None:
    """It ends; no pod is made twice, also after a crash; every node has ended with it; a look more changes nothing."""
    validate(document, lambda _namespace, _name: None)
    bench = Bench(document)
    live_out(bench, data, crashes=True)
    before = deepcopy(bench.workflow)

    again = bench.look(after_s=1)

    assert (again.workflow, again.create) == (before, ())
    assert all(node.get("phase") in (*ENDED, "Skipped", "Omitted") for node in bench.nodes.values())
    assert all("finishedAt" in node for node in bench.nodes.values())


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(workflows(), st.data())
def test_looking_twice_is_looking_once(document: Object, data: st.DataObject) -> None:
    """The next look at the same pods gives the very same document and makes nothing."""
    bench = Bench(document)
    for _ in range(5):
        bench.look(after_s=1)
        first = bench.workflow
        second = bench.look()
        assert second.workflow is first or bench.status["phase"] in ENDED
        assert second.create == ()
        if bench.status["phase"] in ENDED or not live(bench):
            return
        bench.end(data.draw(st.sampled_from(live(bench)), label="ends"), data.draw(st.sampled_from([0, 1])))


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(workflows(), st.data())
def test_stopped_workflow_starts_nothing_but_its_exit_handler(document: Object, data: st.DataObject) -> None:
    """After a stop at any point every pod is named to be ended, and only the exit handler's is made."""
    bench = Bench(document)
    for _ in range(data.draw(st.integers(1, 4), label="looks before the stop")):
        bench.look(after_s=1)
        if live(bench):
            bench.end(data.draw(st.sampled_from(live(bench)), label="ends"))
    if bench.status["phase"] in ENDED:
        return
    bench.workflow = operate.stop(bench.workflow)
    running, made = live(bench), set(bench.pods)
    for _ in range(5):
        bench.look(after_s=1)
        for node in live(bench):
            bench.end(node, 143)

    asked = {bench.pod(node)["metadata"]["name"] for node in running}
    exit_pods = {bench.pod("w.onExit")["metadata"]["name"]} if "w.onExit" in bench.nodes else set[str]()
    assert asked <= set(bench.ended)
    assert set(bench.pods) - made <= exit_pods
    assert bench.status["phase"] in ENDED
