"""What people do to Workflows: stop, terminate, suspend, resume, retry, resubmit, delete; and what is done to pods.

Pods that are to be asked to end write ``ready`` once they have set up what they do then. ``once`` and ``other`` in the
documents fail at their first try in a Workflow, and are well from then on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

from tests.contract.two_worlds.documents import case
from tests.contract.two_worlds.play import Case, Notes, Script
from tests.contract.two_worlds.story import life, story
from tests.contract.two_worlds.world import Flow
from voda_flows.objects import WORKFLOW_ENDED, Object, seconds

#: A pod that is missed sooner after its node's beginning is made anew; Argo takes it for one that it has not seen yet.
_NEW_S = 12.0


def verb_cases() -> list[Case]:
    """All of them, by subject."""
    return [case(name, script) for name, script in SCRIPTS.items()]


def _does(verb: str, *working: str, running: Mapping[str, str] | None = None) -> Script:
    """Wait for pods at work and for nodes in their phases, do something to the Workflow, wait for its end."""

    def play(flow: Flow, _notes: Notes) -> None:
        flow.works(*working)
        flow.comes_to(running or {})
        flow.world.operate(verb, flow.name)
        flow.ends()

    return play


def _stop_then_terminate(flow: Flow, _notes: Notes) -> None:
    flow.works("[0].a")
    flow.world.operate("stop", flow.name)
    flow.works(".onExit")
    flow.world.operate("terminate", flow.name)
    flow.ends()


def _supplied(flow: Flow, _notes: Notes) -> None:
    flow.comes_to({"[0].g": "Running"})
    flow.supply("gate", grant="given")
    flow.ends()


def _resumed_beside_a_pod(flow: Flow, notes: Notes) -> None:
    flow.works("[0].p")
    flow.comes_to({"[0].g": "Running", "[0].h": "Running"})
    flow.world.operate("suspend", flow.name)
    flow.world.operate("resume", flow.name)
    flow.comes_to({"[0].g": "Succeeded", "[0].h": "Succeeded"})
    notes.add("resumed", life(flow))
    flow.world.ask_to_end(flow.pod("[0].p"))
    flow.ends()


def _suspended(flow: Flow, notes: Notes) -> None:
    flow.works("[0].p")
    flow.world.operate("suspend", flow.name)
    flow.world.ask_to_end(flow.pod("[0].p"))
    flow.comes_to({"[0].p": "Succeeded"})
    notes.add("suspended", life(flow))
    flow.world.operate("resume", flow.name)
    flow.ends()


def _retry(flow: Flow) -> None:
    """Retry it, and see that it has begun anew."""
    before = flow.status["startedAt"]
    flow.world.operate("retry", flow.name)
    flow.until(lambda: flow.status["startedAt"] != before, "the retry")


def _again(flow: Flow, notes: Notes, *, times: int = 1) -> None:
    for number in range(times):
        flow.ends()
        notes.add(f"end {number}", story(flow))
        _retry(flow)
    flow.ends()


def _retried_after_a_stop(flow: Flow, notes: Notes) -> None:
    flow.works("[1].a")
    flow.world.operate("stop", flow.name)
    flow.ends()
    notes.add("stopped", story(flow))
    _retry(flow)
    flow.works("[1].a")
    notes.add("retried", life(flow))
    flow.world.ask_to_end(flow.pod("[1].a"))
    flow.ends()


def _refused(flow: Flow, notes: Notes) -> None:
    flow.ends()
    for verb in ("retry", "stop", "terminate", "suspend"):
        notes.refused(f"{verb} after its end", partial(flow.world.operate, verb, flow.name))


def _deleted(flow: Flow, _notes: Notes) -> None:
    """It goes with its pods, and its name is free."""
    flow.works("[0].a")
    document = {key: value for key, value in flow.workflow.items() if key in ("apiVersion", "kind", "spec")}
    flow.world.operate("delete", flow.name)
    flow.until(flow.is_gone, "it to be gone")
    flow.until(lambda: not flow.pods, "its pods to be gone")
    flow.world.submit({**document, "metadata": {"name": flow.name}})
    flow.works("[0].a")
    flow.world.ask_to_end(flow.pod("[0].a"))
    flow.ends()


def _resubmitted(flow: Flow, notes: Notes) -> None:
    flow.ends()
    again = Flow(flow.world, flow.world.operate("resubmit", flow.name))
    again.ends()
    _note_again(again, notes, story)


def _resubmitted_while_running(flow: Flow, notes: Notes) -> None:
    flow.works("[0].a")
    again = Flow(flow.world, flow.world.operate("resubmit", flow.name))
    again.works("[0].a")
    for each in (flow, again):
        each.world.ask_to_end(each.pod("[0].a"))
        each.ends()
    _note_again(again, notes, life)


def _note_again(again: Flow, notes: Notes, tell: Callable[[Flow], Mapping[str, str]]) -> None:
    """Write down what became of the new Workflow, but for what follows from its name, which is chance."""
    told = {place: value.replace(again.name, "AGAIN") for place, value in tell(again).items()
            if not place.startswith("pod ")}  # fmt: skip
    notes.add("again", told)
    again.world.operate("delete", again.name)


def _lost(node: str) -> Script:
    """A pod at work is deleted by force, as often as Argo makes it anew.

    It does where it hears of the loss before the last word of the pod's executor: to Argo the node then is an error
    and is not fulfilled, so that its pod is made once more, under the same name. Which comes first is chance.
    """

    def play(flow: Flow, _notes: Notes) -> None:
        while flow.status.get("phase") not in WORKFLOW_ENDED:
            flow.works(node)
            pod = flow.pod(node)
            flow.until(lambda: _age_s(flow, node) > _NEW_S, "its node to be no new one")
            flow.world.delete_pod(pod, force=True)
            flow.until(lambda pod=pod: _uid(flow, node) != pod["metadata"]["uid"], "the pod to be gone")  # type: ignore[misc]  # bound
            flow.touch()
            flow.until(lambda: flow.status.get("phase") in WORKFLOW_ENDED or flow.is_at_work(flow.name + node),
                       "its end, or its pod at work again")  # fmt: skip
        flow.ends()

    return play


def _deleted_too_soon(flow: Flow, notes: Notes) -> None:
    flow.until(lambda: bool(_uid(flow, "[0].a")), "its pod")
    first = flow.pod("[0].a")
    flow.world.delete_pod(first, force=True)
    flow.until(lambda: _uid(flow, "[0].a") not in ("", first["metadata"]["uid"]), "another pod")
    flow.works("[0].a")
    notes.facts["has the same name"] = str(flow.pod("[0].a")["metadata"]["name"] == first["metadata"]["name"])
    notes.add("at work", life(flow))
    flow.world.ask_to_end(flow.pod("[0].a"))
    flow.ends()


def _age_s(flow: Flow, node: str) -> float:
    """Seconds since a node began."""
    return time.time() - (seconds(flow.nodes[flow.name + node]["startedAt"]) or 0.0)


def _uid(flow: Flow, node: str) -> str:
    pod: Object = flow.pods.get(flow.name + node) or {"metadata": {"uid": ""}}
    return str(pod["metadata"]["uid"])


def _progress(flow: Flow, notes: Notes) -> None:
    flow.works("[0].p")
    flow.comes_to({"[0].q": "Succeeded"})
    flow.until(lambda: flow.nodes[f"{flow.name}[0].p"].get("progress") == "30/100", "its progress")
    notes.add("at work", life(flow))
    flow.world.ask_to_end(flow.pod("[0].p"))
    flow.ends()


BESIDE = {"[1].g": "Running"}
SCRIPTS: Mapping[str, Script] = {
    **{f"{verb}-beside-a-gate": _does(verb, "[1].a", "[1].b", running=BESIDE) for verb in ("stop", "terminate")},
    **{f"{verb}-what-ends-badly": _does(verb, "[0].a") for verb in ("stop", "terminate")},
    **{f"{verb}-at-a-gate": _does(verb, running={"[0].g": "Running"}) for verb in ("stop", "terminate")},
    **{f"{verb}-in-a-graph": _does(verb, ".a", running={".c": "Succeeded"}) for verb in ("stop", "terminate")},
    "stop-a-retry": _does("stop", "[0].a(0)"),
    "stop-nested": _does("stop", "[0].a[0].b"),
    "stop-then-terminate": _stop_then_terminate,
    "gate-supplied": _supplied,
    "gate-resumed": _does("resume", running={"[0].g": "Running"}),
    "gate-without-an-output": _does("resume", running={"[0].g": "Running"}),
    "gates-resumed-beside-a-pod": _resumed_beside_a_pod,
    "suspended-with-a-pod": _suspended,
    "retried-steps": _again,
    "retry-a-graph": _again,
    "retry-nested": _again,
    "retry-below-a-fan": _again,
    "retry-the-only-pod": _again,
    "retry-twice": partial(_again, times=2),
    "retry-what-retries": _again,
    "retry-what-was-gone-past": _again,
    "retry-after-a-stop": _retried_after_a_stop,
    "verbs-after-a-success": _refused,
    "deleted-while-running": _deleted,
    "resubmitted-after-a-failure": _resubmitted,
    "resubmitted-while-running": _resubmitted_while_running,
    "pod-lost-by-force": _lost("[0].a"),
    "pod-lost-and-retried": _lost("[0].a(0)"),
    "pod-lost-and-not-retried": _lost("[0].a(0)"),
    "pod-deleted-too-soon": _deleted_too_soon,
    "progress-of-a-pod-at-work": _progress,
}
"""What is done to which document."""
