"""What people do to Workflows: stop, terminate, suspend, resume, retry, resubmit, delete; and what is done to pods."""

from __future__ import annotations

from tests.contract.two_worlds.building import asks, call, case, dag, document, patient, says, shell, steps
from tests.contract.two_worlds.play import Case, Notes, Script
from tests.contract.two_worlds.story import life, story
from tests.contract.two_worlds.world import Flow
from voda_flows.objects import Object

GATE: Object = {
    "name": "gate",
    "suspend": {},
    "outputs": {"parameters": [{"name": "grant", "valueFrom": {"supplied": {}, "default": "none"}}]},
}
CONTINUES = {"continueOn": {"failed": True, "error": True}}
ONCE = "test -e /voda/{{workflow.uid}}/$0 || { mkdir -p /voda/{{workflow.uid}}; : > /voda/{{workflow.uid}}/$0; exit 1; }"
"""A program that fails the first time and succeeds from then on: on a volume, by the name that it is given."""


def verb_cases() -> list[Case]:
    """All of them."""
    return [*_ends(), *_gates(), *_retries(), *_others(), *_pods()]


def _fails_once(name: str) -> Object:
    """A template that fails at its first try in a Workflow."""
    made = shell(name)
    made["container"]["command"] = ["sh", "-c", ONCE, name]
    made["container"]["volumeMounts"] = [{"name": "voda", "mountPath": "/voda"}]
    # The volume is a folder of each node: the second try has to come to the same one.
    made["nodeSelector"] = {"kubernetes.io/hostname": "n1"}
    made["volumes"] = [{"name": "voda", "persistentVolumeClaim": {"claimName": "voda"}}]
    return made


def _does(verb: str, *working: str, waiting: str = "") -> Script:
    """Wait for pods at work or an open gate, do something to the Workflow, wait for its end."""

    def play(flow: Flow, _notes: Notes) -> None:
        flow.works(*working)
        if waiting:
            flow.comes_to({waiting: "Running"})
        flow.world.operate(verb, flow.name)
        flow.ends()

    return play


def _ends() -> list[Case]:
    around = [call("a", "patient"), call("g", "gate"), call("b", "patient")]
    both = steps([call("one", "ok")], around, [call("after", "ok")])
    names = ("[1].a", "[1].b")
    common = (patient(), GATE, shell("ok"), shell("bye"))
    deaf = patient("deaf", code=3)
    return [
        case(f"{verb}-beside-a-gate", both, *common, onExit="bye", script=_does(verb, *names, waiting="[1].g"))
        for verb in ("stop", "terminate")
    ] + [
        case(f"{verb}-what-ends-badly", steps([call("a", "deaf", **CONTINUES)], [call("after", "ok")]), deaf, shell("ok"),
             script=_does(verb, "[0].a"))
        for verb in ("stop", "terminate")
    ] + [
        case(f"{verb}-at-a-gate", steps([call("g", "gate")], [call("after", "ok")]), GATE, shell("ok"), shell("bye"),
             onExit="bye", script=_does(verb, waiting="[0].g"))
        for verb in ("stop", "terminate")
    ] + [
        case(f"{verb}-in-a-graph", dag(call("a", "patient"), call("b", "ok", dependencies=["a"]), call("c", "ok")), patient(),
             shell("ok"), script=_does(verb, ".a"))
        for verb in ("stop", "terminate")
    ] + [
        case("stop-a-retry", steps([call("a", "patient")]), patient(code=1, retryStrategy={"limit": 3}), script=_does("stop", "[0].a(0)")),
        case("stop-nested", steps([call("a", "inner")]), steps([call("b", "patient")], [call("c", "ok")], name="inner"), patient(),
             shell("ok"), script=_does("stop", "[0].a[0].b")),
        case("stop-then-terminate", steps([call("a", "patient")]), patient(), patient("bye"), onExit="bye", script=_stop_then_terminate),
    ]  # fmt: skip


def _stop_then_terminate(flow: Flow, _notes: Notes) -> None:
    flow.works("[0].a")
    flow.world.operate("stop", flow.name)
    flow.works(".onExit")
    flow.world.operate("terminate", flow.name)
    flow.ends()


def _gates() -> list[Case]:
    reads = steps([call("g", "gate")], [call("b", "says", arguments={"m": "{{steps.g.outputs.parameters.grant}}"})])
    two = steps([call("g", "gate"), call("h", "gate"), call("p", "patient")],
                [call("b", "says", arguments={"m": "{{steps.h.outputs.parameters.grant}}"})])  # fmt: skip

    def supplied(flow: Flow, _notes: Notes) -> None:
        flow.comes_to({"[0].g": "Running"})
        flow.supply("gate", grant="given")
        flow.ends()

    def resumed(flow: Flow, notes: Notes) -> None:
        flow.comes_to({"[0].g": "Running"})
        flow.world.operate("resume", flow.name)
        flow.ends()
        notes.refused("resumed after its end", lambda: flow.world.operate("resume", flow.name))

    def both(flow: Flow, notes: Notes) -> None:
        flow.works("[0].p")
        flow.comes_to({"[0].g": "Running", "[0].h": "Running"})
        flow.world.operate("suspend", flow.name)
        flow.world.operate("resume", flow.name)
        flow.comes_to({"[0].g": "Succeeded", "[0].h": "Succeeded"})
        notes.add("resumed", life(flow))
        flow.world.ask_to_end(flow.pod("[0].p"))
        flow.ends()

    def held(flow: Flow, notes: Notes) -> None:
        flow.works("[0].p")
        flow.world.operate("suspend", flow.name)
        flow.world.ask_to_end(flow.pod("[0].p"))
        flow.comes_to({"[0].p": "Succeeded"})
        notes.add("suspended", life(flow))
        flow.world.operate("resume", flow.name)
        flow.ends()

    return [
        case("gate-supplied", reads, GATE, says(), script=supplied),
        case("gate-resumed", reads, GATE, says(), script=resumed),
        case("gates-resumed-beside-a-pod", two, GATE, says(), patient(), script=both),
        case("suspended-with-a-pod", steps([call("p", "patient")], [call("b", "says", arguments={"m": "x"})]), patient(), says(), script=held),
        case("gate-without-an-output", steps([call("g", "bare")], [call("b", "says", arguments={"m": "x"})]),
             {"name": "bare", "suspend": {}}, says(), script=resumed),
    ]  # fmt: skip


def _again(*, times: int = 1) -> Script:
    def play(flow: Flow, notes: Notes) -> None:
        for number in range(times):
            flow.ends()
            notes.add(f"end {number}", story(flow))
            before = flow.status["startedAt"]
            flow.world.operate("retry", flow.name)
            flow.until(lambda before=before: flow.status["startedAt"] != before, "the retry")  # type: ignore[misc]  # bound
        flow.ends()

    return play


def _retries() -> list[Case]:
    once, other = _fails_once("once"), _fails_once("other")

    def stopped(flow: Flow, notes: Notes) -> None:
        flow.works("[1].a")
        flow.world.operate("stop", flow.name)
        flow.ends()
        notes.add("stopped", story(flow))
        flow.world.operate("retry", flow.name)
        flow.works("[1].a")
        flow.until(lambda: flow.status.get("phase") == "Running", "it to run again")
        notes.add("retried", life(flow))
        flow.world.ask_to_end(flow.pod("[1].a"))
        flow.ends()

    def refused(flow: Flow, notes: Notes) -> None:
        flow.ends()
        for verb in ("retry", "stop", "terminate", "suspend", "resume"):
            notes.refused(f"{verb} after its end", lambda verb=verb: flow.world.operate(verb, flow.name))  # type: ignore[misc]  # bound

    return [
        case("retry-steps", steps([call("a", "ok")], [call("b", "once"), call("c", "ok")], [call("d", "ok")]), shell("ok"), once,
             shell("bye"), onExit="bye", script=_again()),
        case("retry-a-graph", dag(call("a", "ok"), call("b", "once", dependencies=["a"]), call("c", "ok", dependencies=["b"]),
             call("d", "ok", dependencies=["a"])), shell("ok"), once, script=_again()),
        case("retry-nested", steps([call("a", "inner")], [call("z", "ok")]), steps([call("b", "ok")], [call("c", "once")], name="inner"),
             shell("ok"), once, script=_again()),
        case("retry-in-a-fan", steps([call("a", "inner", withItems=["once", "ok"], arguments={"t": "{{item}}"})], [call("z", "ok")]),
             steps([call("o", "once", when="{{inputs.parameters.t}} == once"), call("k", "ok")], name="inner", **asks("t")),
             shell("ok"), once, script=_again()),
        case("retry-the-only-pod", once, script=_again()),
        case("retry-twice", steps([call("a", "once")], [call("b", "other")]), once, other, script=_again(times=2)),
        case("retry-what-retries", steps([call("a", "tries")]),
             {**_fails_once("tries"), "retryStrategy": {"limit": 0}}, script=_again()),
        case("retry-what-was-gone-past", steps([call("a", "no", **CONTINUES)], [call("b", "once")]), shell("no", "exit 1"), once, script=_again()),
        case("retry-after-a-stop", steps([call("g", "gate-1s")], [call("a", "patient"), call("h", "gate")]),
             {"name": "gate-1s", "suspend": {"duration": "1s"}}, {**GATE, "suspend": {"duration": "60s"}}, patient(), script=stopped),
        case("verbs-after-a-success", shell("ok"), script=refused),
    ]  # fmt: skip


def _others() -> list[Case]:
    def deleted(flow: Flow, notes: Notes) -> None:
        flow.works("[0].a")
        kept = dict(flow.workflow)
        flow.world.operate("delete", flow.name)
        flow.until(flow.is_gone, "it to be gone")
        flow.until(lambda: not flow.pods, "its pods to be gone")
        notes.facts["deleted"] = str(sorted(kept["status"]["nodes"]))
        flow.world.submit(document(flow.name, shell("ok")))
        flow.until(lambda: flow.status.get("phase") == "Succeeded", "another one of that name")

    def resubmitted(flow: Flow, notes: Notes) -> None:
        flow.ends()
        again = Flow(flow.world, flow.world.operate("resubmit", flow.name))
        again.ends()
        fresh = story(again)
        notes.add("again", {place: value.replace(again.name, "AGAIN") for place, value in fresh.items()
                            if not place.startswith("pod ") and "." in place})  # fmt: skip
        flow.world.operate("delete", again.name)

    def resubmitted_running(flow: Flow, notes: Notes) -> None:
        flow.works("[0].a")
        again = Flow(flow.world, flow.world.operate("resubmit", flow.name))
        again.works("[0].a")
        notes.add("again", {place.replace(again.name, "AGAIN"): value.replace(again.name, "AGAIN") for place, value in life(again).items()})
        for each in (again, flow):
            each.world.ask_to_end(each.pod("[0].a"))
            each.ends()
        flow.world.operate("delete", again.name)

    return [
        case("deleted-while-running", steps([call("a", "patient")]), patient(), script=deleted),
        case("resubmitted-after-a-failure", steps([call("a", "says", arguments={"m": "x"})], [call("b", "no")]), says(), shell("no", "exit 1"),
             script=resubmitted, workflowMetadata={"labels": {"l": "1"}}),
        case("resubmitted-while-running", steps([call("a", "patient")]), patient(), script=resubmitted_running),
    ]  # fmt: skip


def _pods() -> list[Case]:
    def loses(node: str, *, force: bool) -> Script:
        def play(flow: Flow, _notes: Notes) -> None:
            flow.works(node)
            flow.world.delete_pod(flow.pod(node), force=force)
            flow.ends()

        return play

    def asked(flow: Flow, notes: Notes) -> None:
        flow.works("[0].p")
        flow.until(lambda: flow.nodes[f"{flow.name}[0].p"].get("progress") == "30/100", "its progress")
        notes.add("at work", life(flow))
        flow.world.ask_to_end(flow.pod("[0].p"))
        flow.ends()

    def too_soon(flow: Flow, notes: Notes) -> None:
        flow.until(lambda: flow.name + "[0].a" in flow.pods, "its pod")
        first = flow.pod("[0].a")
        flow.world.delete_pod(first, force=True)
        flow.until(lambda: _uid(flow, "[0].a") not in ("", first["metadata"]["uid"]), "another pod")
        flow.works("[0].a")
        notes.facts["name"] = str(flow.pod("[0].a")["metadata"]["name"] == first["metadata"]["name"])
        notes.add("at work", life(flow))
        flow.world.ask_to_end(flow.pod("[0].a"))
        flow.ends()

    reads = [call("b", "says", arguments={"m": "{{steps.a.status}}"})]
    goes_on = patient()
    slow = patient("slow")
    slow["container"]["command"][-1] = "echo 30/100 > $ARGO_PROGRESS_FILE; " + slow["container"]["command"][-1]
    return [
        case("pod-lost-by-force", steps([call("a", "patient", **CONTINUES)], reads), goes_on, says(), script=loses("[0].a", force=True)),
        case("pod-deleted-and-gone-on", steps([call("a", "patient", **CONTINUES)], reads), patient(code=2), says(),
             script=loses("[0].a", force=False)),
        case("pod-lost-and-retried", steps([call("a", "patient")], reads),
             {**shell("patient", "test {{retries}} -ge 1 || { echo ready; sleep 600; }"), "retryStrategy": {"limit": 2, "retryPolicy": "OnError"}},
             says(), script=loses("[0].a(0)", force=True)),
        case("pod-lost-and-not-retried", steps([call("a", "patient")], reads), patient(retryStrategy={"limit": 2, "retryPolicy": "OnFailure"}),
             says(), script=loses("[0].a(0)", force=True)),
        case("pod-deleted-too-soon", steps([call("a", "patient")], reads), patient(), says(), script=too_soon),
        case("progress-of-a-pod-at-work", steps([call("p", "slow"), call("q", "ok")], [call("b", "ok")]), slow, shell("ok"), script=asked),
    ]  # fmt: skip


def _uid(flow: Flow, node: str) -> str:
    pod = flow.pods.get(flow.name + node)
    return pod["metadata"]["uid"] if pod else ""
