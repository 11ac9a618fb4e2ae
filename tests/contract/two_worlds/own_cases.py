"""Documents of our own: what the golden ones leave out of templates, fan-outs, conditions, retries, outputs, ends."""

from __future__ import annotations

from tests.contract.two_worlds.building import asks, call, case, dag, document, says, script, shell, steps, template
from tests.contract.two_worlds.play import Case

CONTINUES = {"continueOn": {"failed": True, "error": True}}


def own_cases() -> list[Case]:
    """All of them."""
    return [*_fans(), *_conditions(), *_retries(), *_references(), *_exits(), *_outputs(), *_graphs(), *_pods(),
            *_variables()]  # fmt: skip


def _fans() -> list[Case]:
    rows = '[{"id":"w0","n":1,"deep":{"a":[1,2]}},{"id":"w 1","n":2.5,"deep":null},{"id":"","n":true}]'
    seen = says(command="printf '%s' '{{inputs.parameters.m}}' > /tmp/o")
    return [
        case("fan-param-of-a-step",
             steps([call("lists", "lists")],
                   [call("each", "says", withParam="{{steps.lists.outputs.parameters.o}}",
                         arguments={"m": "{{item.id}}-{{item.n}}"})],
                   [call("all", "says", arguments={"m": "{{steps.each.outputs.parameters.o}}"})]),
             says("lists", "m", command=f"echo '{rows}' > /tmp/o") | asks(m="x"), seen),
        case("fan-items-of-all-kinds",
             steps([call("each", "says", withItems=[1, -2.5, "text", True, "a b/c", "", {"b": 1, "a": "x"}, [1, "z"]],
                         arguments={"m": "{{item}}"})]), seen),
        case("fan-within-a-fan",
             steps([call("outer", "inner", withItems=["a", "b"], arguments={"of": "{{item}}"})]),
             steps([call("each", "says", withItems=[1, 2], arguments={"m": "{{inputs.parameters.of}}{{item}}"})],
                   name="inner", **asks("of")), seen),
        case("fan-in-a-graph-over-nothing",
             dag(call("none", "says", withParam="[]", arguments={"m": "{{item}}"}),
                 call("after", "says", dependencies=["none"], arguments={"m": "x"})), seen),
        case("fan-with-a-condition-of-its-items",
             steps([call("each", "says", withItems=[1, 2, 3], when="{{item}} != 2", arguments={"m": "{{item}}"})],
                   [call("all", "says", arguments={"m": "{{steps.each.outputs.parameters.o}}"})]), seen),
        case("fan-under-parallelism",
             steps([call("each", "says", withItems=[1, 2, 3, 4], arguments={"m": "{{item}}"})], parallelism=2), seen),
        case("fan-of-failures-in-a-graph",
             dag(call("each", "code", withItems=[0, 3, 1], arguments={"c": "{{item}}"}),
                 call("any", "says", depends="each.AnySucceeded", arguments={"m": "any"}),
                 call("all", "says", depends="each.AllFailed", arguments={"m": "all"})),
             shell("code", "exit {{inputs.parameters.c}}", **asks("c")), seen),
    ]  # fmt: skip


def _conditions() -> list[Case]:
    conditions = ["{{inputs.parameters.yes}} == yes", "'{{inputs.parameters.empty}}' == ''", "{{inputs.parameters.n}} > 3",
                  "{{inputs.parameters.n}} >= 10 && {{inputs.parameters.yes}} != no", "( false || true ) && !false",
                  "'{{inputs.parameters.words}}' == 'two words'", "{{inputs.parameters.n}} == 10.0", "true", "false",
                  "1 + 2 == 3", "'b' > 'a'", "{{inputs.parameters.words}} == 'x'",
                  "{{=inputs.parameters.n == '10'}}", "{{inputs.parameters.yes}} =~ 'y.*'",
                  "{{inputs.parameters.yes}} in ('yes', 'no')"]  # fmt: skip
    calls = [[call(f"c{number}", "ok", when=condition, **CONTINUES)] for number, condition in enumerate(conditions)]
    inputs = asks(yes="yes", empty="", n="10", words="two words")
    each = [case(f"when-{number}", steps(group, **inputs), shell("ok")) for number, group in enumerate(calls)]
    return [
        *each,
        case("when-skips-what-is-read-later",
             steps([call("skipped", "says", when="false", arguments={"m": "x"})],
                   [call("after", "says", when="'{{steps.skipped.status}}' == 'Skipped'",
                         arguments={"m": "{{steps.skipped.status}}"})]), says()),
        case("when-in-a-graph",
             dag(call("no", "says", when="1 == 2", arguments={"m": "x"}),
                 call("skipped", "says", depends="no.Skipped", arguments={"m": "y"}),
                 call("ran", "says", depends="no.Succeeded", arguments={"m": "z"}),
                 call("last", "says", depends="skipped && (ran.Omitted || ran)", arguments={"m": "l"})), says()),
    ]  # fmt: skip


def _retries() -> list[Case]:
    verdict = {"limit": "3", "retryPolicy": "Always", "expression": "lastRetry.exitCode != '1'"}
    by_try = "set -- {}; shift {{{{retries}}}}; exit $1"
    codes = {"retry-until-the-verdict": "3 2 1 0", "retry-at-once-the-verdict": "1 0", "retry-to-success": "4 0",
             "retry-to-the-limit": "2 2 2 2 2"}  # fmt: skip
    found = [case(name, steps([call("a", "tries")]), shell("tries", by_try.format(each), retryStrategy=verdict))
             for name, each in codes.items()]  # fmt: skip
    expressions = {
        "number": "asInt(lastRetry.exitCode) > 1", "status": "lastRetry.status == 'Error'",
        "message": "lastRetry.message == 'x'", "both": "lastRetry.exitCode == '3' && asInt(retries) < 1",
        "duration": "asInt(lastRetry.duration) < 1000",
    }  # fmt: skip
    found += [case(f"retry-by-{name}", shell("tries", by_try.format("3 2 0"), retryStrategy={"limit": 2, "expression": each}))
              for name, each in expressions.items()]  # fmt: skip
    return [
        *found,
        case("retry-on-failure-is-the-default", shell("tries", "exit 1", retryStrategy={"limit": 1})),
        case("retry-without-a-limit", shell("tries", by_try.format("1 1 1 0"), retryStrategy={})),
        case("retry-with-backoff",
             shell("tries", "exit 1", retryStrategy={"limit": 2, "backoff": {"duration": "1", "factor": 2}})),
        case("retry-until-too-late",
             shell("tries", "exit 1",
                   retryStrategy={"limit": 9, "backoff": {"duration": "20m", "maxDuration": "10m"}})),
        case("retry-says-what-was-before",
             steps([call("a", "tries")], [call("b", "says", arguments={"m": "{{steps.a.outputs.parameters.o}}"})]),
             says("tries", "m", command="printf '%s' '{{retries}} {{lastRetry.exitCode}} {{lastRetry.status}}' > /tmp/o; "
                  "test {{retries}} -ge 1") | asks(m="x") | {"retryStrategy": {"limit": 2}}, says()),
        case("retry-around-steps",
             steps([call("a", "inner", **CONTINUES)], [call("b", "says", arguments={"m": "{{steps.a.status}}"})]),
             steps([call("x", "code")], name="inner", retryStrategy={"limit": 1}), shell("code", "exit 5"), says()),
        case("retry-in-a-fan",
             steps([call("a", "tries", withItems=["0", "1"], arguments={"m": "{{item}}"}, **CONTINUES)],
                   [call("b", "says", arguments={"m": "{{steps.a.outputs.parameters.o}}"})]),
             says("tries", command="printf '%s' '{{inputs.parameters.m}}-{{retries}}' > /tmp/o; "
                  "test {{inputs.parameters.m}} = 0 || test {{retries}} -ge 1") | {"retryStrategy": {"limit": 2}}, says()),
    ]  # fmt: skip


def _references() -> list[Case]:
    shared = template(
        "shared",
        steps([call("inner", "leaf", arguments={"m": "{{inputs.parameters.m}}"})], name="outer", **asks("m"),
              outputs={"parameters": [{"name": "o", "valueFrom": {"parameter": "{{steps.inner.outputs.parameters.o}}"}}]}),
        says("leaf"),
    )  # fmt: skip
    outer, leaf = {"name": "shared", "template": "outer"}, {"name": "shared", "template": "leaf"}
    whole = template(
        "whole",
        steps([call("a", "leaf", arguments={"m": "{{workflow.parameters.one}} {{workflow.parameters.two}}"})]),
        says("leaf"), shell("bye", "exit 0"), onExit="bye", activeDeadlineSeconds=600, podMetadata={"labels": {"of": "all"}},
        workflowMetadata={"labels": {"made-by": "template"}, "annotations": {"note": "kept"}},
        arguments={"parameters": [{"name": "one", "value": "1"}, {"name": "two", "value": "2"}]},
    )  # fmt: skip
    in_steps = document(
        "refers-in-steps",
        steps([_refers("a", outer, m="x")], [_refers("b", leaf, m="{{steps.a.outputs.parameters.o}}!")]),
    )
    in_graph = document(
        "refers-in-a-graph",
        dag(_refers("a", outer, m="x"), _refers("b", leaf, m="{{tasks.a.outputs.parameters.o}}!") | {"depends": "a"},
            _refers("c", leaf, m="{{item}}") | {"depends": "a", "withItems": [1, 2]}),
    )  # fmt: skip
    overridden = document(
        "refers-as-a-whole",
        workflowTemplateRef={"name": "whole"},
        arguments={"parameters": [{"name": "two", "value": "zwei"}]},
    )
    absent = document("refers-to-nothing", steps([_refers("a", {"name": "nobody", "template": "x"}, m="x")]))
    no_template = document("refers-to-no-template", steps([_refers("a", {"name": "shared-2", "template": "x"}, m="x")]))
    second = {**shared, "metadata": {"name": "shared-2"}}
    third = {**shared, "metadata": {"name": "shared-3"}}
    in_graph["spec"]["templates"][0] = _renamed(in_graph["spec"]["templates"][0], "shared-3")
    return [
        Case(name="refers-in-steps", document=in_steps, templates=(shared,)),
        Case(name="refers-in-a-graph", document=in_graph, templates=(third,)),
        Case(name="refers-as-a-whole", document=overridden, templates=(whole,)),
        Case(name="refers-to-nothing", document=absent),
        Case(name="refers-to-no-template", document=no_template, templates=(second,)),
    ]


def _refers(name: str, reference: dict[str, str], **arguments: str) -> dict[str, object]:
    made = call(name, arguments=arguments, templateRef=reference)
    return {key: value for key, value in made.items() if key != "template"}


def _renamed(graph: dict[str, dict[str, list[dict[str, object]]]], name: str) -> dict[str, object]:
    tasks = [{**task, "templateRef": {**task["templateRef"], "name": name}} for task in graph["dag"]["tasks"]]  # type: ignore[dict-item]  # a mapping
    return {**graph, "dag": {"tasks": tasks}}


def _exits() -> list[Case]:
    handler = steps([call("why", "says", arguments={"m": "{{workflow.status}}"})],
                    [call("bad", "says", when="{{workflow.status}} != Succeeded", arguments={"m": "sorry"}),
                     call("good", "says", when="{{workflow.status}} == Succeeded", arguments={"m": "fine"})], name="bye")  # fmt: skip
    names = {0: "oks", 1: "ones", 2: "twos", 126: "not-run", 127: "not-found", 137: "killed", 143: "ended", 255: "last"}
    codes = steps(*([call(f"{name}-{code}", "code", arguments={"c": str(code)}, **CONTINUES)] for code, name in names.items()),
                  [call("seen", "says", arguments={"m": "{{steps.twos-2.exitCode}} {{steps.twos-2.status}}"})])  # fmt: skip
    signals = steps([call(f"by-{number}", "signal", arguments={"s": number}, **CONTINUES) for number in ("9", "15", "11")])
    return [
        case("exit-handler-of-steps", steps([call("a", "says", arguments={"m": "x"})]), says(), handler, onExit="bye"),
        case("exit-handler-after-a-failure", steps([call("a", "no")]), shell("no", "exit 3"), says(), handler, onExit="bye"),
        case("exit-hook-with-arguments", shell("no", "exit 3"), says(),
             hooks={"exit": {"template": "says", "arguments": {"parameters": [{"name": "m", "value": "{{workflow.status}}"}]}}}),
        case("exit-codes", codes, shell("code", "exit {{inputs.parameters.c}}", **asks("c")), says()),
        case("exit-by-signals", signals, shell("signal", "kill -{{inputs.parameters.s}} $$$$", **asks("s"))),
        case("exit-with-a-message", shell("no", "echo 'first line'; echo 'why it failed' >&2; exit 1")),
        case("exit-of-a-nested-step", steps([call("a", "middle")], name="main"), steps([call("b", "inner")], name="middle"),
             dag(call("c", "no"), name="inner"), shell("no", "exit 7")),
        case("exit-of-one-of-two", steps([call("a", "no"), call("b", "ok")], [call("c", "ok")]), shell("no", "exit 1"),
             shell("ok", "sleep 2")),
    ]  # fmt: skip


def _outputs() -> list[Case]:
    taken = {"parameter": "{{steps.a.outputs.parameters.o}}"}
    later = steps([call("a", "says", when="{{inputs.parameters.go}} == yes", arguments={"m": "x"})], name="inner",
                  outputs={"parameters": [{"name": "o", "valueFrom": {**taken, "default": "instead"}}]}, **asks("go"))  # fmt: skip
    return [
        case("output-defaults",
             steps([call("there", "says", arguments={"m": "x"}), call("not-there", "silent"), call("empty", "empty"),
                    call("failing", "failing", **CONTINUES)],
                   [call("all", "says", arguments={"m": "{{steps.there.outputs.parameters.o}} {{steps.not-there.outputs.parameters.o}} "
                                                   "{{steps.empty.outputs.parameters.o}}."})]),
             says(default="d"), says("silent", "m", command="true", default="d") | asks(m=""),
             says("empty", "m", command=": > /tmp/o", default="d") | asks(m=""),
             says("failing", "m", command="printf late > /tmp/o; exit 4", default="d") | asks(m="")),
        case("output-of-a-group-that-skipped",
             steps([call("no", "inner", arguments={"go": "no"}), call("yes", "inner", arguments={"go": "yes"})],
                   [call("b", "says", arguments={"m": "{{steps.no.outputs.parameters.o}} {{steps.yes.outputs.parameters.o}}"})]),
             later, says()),
        case("output-with-lines",
             steps([call("a", "lines"), call("r", "result")],
                   [call("b", "says", arguments={"m": "[{{steps.a.outputs.parameters.o}}] [{{steps.r.outputs.result}}]"})]),
             says("lines", "m", command="printf '1\\n2\\n\\n' > /tmp/o") | asks(m=""),
             script("result", "printf ' a\\n b \\n\\n'; echo not this >&2"), says()),
        case("output-of-json",
             steps([call("a", "says", arguments={"m": '{"a": [1, {"b": "x<y&z"}]}'})],
                   [call("b", "says", arguments={"m": "{{steps.a.outputs.parameters.o}}"}),
                    call("c", "says", arguments={"m": "{{=len(steps.a.outputs.parameters.o)}}"})]), says()),
        case("output-of-a-folder", says("a", "m", command="mkdir /tmp/o", default="d") | asks(m="")),
        case("output-of-everything",
             steps([call("a", "says", arguments={"m": "x"}), call("b", "says", arguments={"m": "y"})],
                   outputs={"parameters": [{"name": "both", "valueFrom": {"parameter":
                            "{{steps.a.outputs.parameters.o}}{{steps.b.outputs.parameters.o}}"}}]}), says()),
    ]  # fmt: skip


def _graphs() -> list[Case]:
    no, ok = shell("no", "exit 1"), shell("ok")
    return [
        case("graph-that-may-fail",
             dag(call("a", "no", continueOn={"failed": True}), call("b", "ok", dependencies=["a"])), no, ok),
        case("graph-of-ends",
             dag(call("a", "no"), call("b", "ok"), call("failed", "ok", depends="a.Failed && b.Succeeded"),
                 call("never", "ok", depends="a.Succeeded"), call("after-never", "ok", depends="never"),
                 call("not", "ok", depends="!a.Succeeded"), call("last", "ok", depends="failed || never.Omitted")), no, ok),
        case("graph-fails-fast",
             dag(call("a", "no"), call("slow", "slow"), call("b", "ok", dependencies=["slow"])), no, ok, shell("slow", "sleep 3")),
        case("graph-in-steps",
             steps([call("g", "graph", arguments={"m": "1"})], [call("b", "says", arguments={"m": "{{steps.g.outputs.parameters.o}}"})]),
             dag(call("x", "says", arguments={"m": "{{inputs.parameters.m}}x"}),
                 call("y", "says", depends="x", arguments={"m": "{{tasks.x.outputs.parameters.o}}y"}), name="graph", **asks("m"),
                 outputs={"parameters": [{"name": "o", "valueFrom": {"parameter": "{{tasks.y.outputs.parameters.o}}"}}]}), says()),
        case("graph-with-a-gate", dag(call("g", "gate"), call("b", "ok", dependencies=["g"])),
             {"name": "gate", "suspend": {"duration": "1s"}}, ok),
        case("graph-under-parallelism",
             dag(*(call(f"t{number}", "ok") for number in range(4)), parallelism=1), ok),
    ]  # fmt: skip


def _pods() -> list[Case]:
    patch = ('{"nodeSelector":{"kubernetes.io/hostname":"{{inputs.parameters.node}}"},"terminationGracePeriodSeconds":5,'
             '"containers":[{"name":"main","env":[{"name":"WHO","value":"{{inputs.parameters.node}}"}],'
             '"resources":{"limits":{"nvidia.com/gpu":"{{inputs.parameters.gpus}}"}}}]}')  # fmt: skip
    where = says("where", "node", "gpus", command="printf %s $WHO > /tmp/o") | {"podSpecPatch": patch}
    labelled = {"metadata": {"labels": {"of-template": "{{inputs.parameters.m}}", "both": "template"},
                             "annotations": {"note": "x y"}}}  # fmt: skip
    return [
        case("pod-patched-by-inputs",
             steps([call("w", "where", withItems=[{"node": "n0", "gpus": "1"}, {"node": "n2", "gpus": "2"}],
                         arguments={"node": "{{item.node}}", "gpus": "{{item.gpus}}"})],
                   [call("b", "says", arguments={"m": "{{steps.w.outputs.parameters.o}}"})]), where, says()),
        case("pod-patch-that-is-none",
             steps([call("w", "where", arguments={"node": 'n"0', "gpus": "1"}, **CONTINUES)], [call("b", "ok")]), where, shell("ok")),
        case("pod-with-labels", steps([call("a", "says", arguments={"m": "one"})]), says() | labelled,
             podMetadata={"labels": {"of-all": "yes", "both": "all"}}),
        case("pod-with-settings",
             steps([call("a", "settings")], [call("b", "says", arguments={"m": "{{steps.a.outputs.parameters.o}}"})]),
             _settings(), says()),
        case("pod-with-a-script-that-fails", script("s", "set -e\necho one\nfalse\necho two")),
        case("pod-progress",
             steps([call("a", "p")], [call("b", "says", arguments={"m": "x"})]),
             shell("p", "echo 7/20 > $ARGO_PROGRESS_FILE; sleep 4; exit 1"), says()),
        case("display-names",
             steps([call("a", "shown", withItems=["x", "y"], arguments={"m": "{{item}}"})], annotations={"workflows.argoproj.io/display-name": "whole"}),
             says("shown") | {"annotations": {"workflows.argoproj.io/display-name": "worker-{{inputs.parameters.m}}"}}),
    ]  # fmt: skip


def _settings() -> dict[str, object]:
    made = says("settings", "m", command="printf '%s %s %s' \"$A\" \"$(cat /scratch/x/f 2>/dev/null)\" \"$(pwd)\" > /tmp/o") | asks(m="")
    made["container"] = {**made["container"], "workingDir": "/scratch", "env": [{"name": "A", "value": "a b"}],
                         "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}  # fmt: skip
    made["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    return made


def _variables() -> list[Case]:
    names = ("workflow.name", "workflow.parameters.p", "workflow.labels.l", "node.name", "pod.name", "workflow.parameters",
             "inputs.parameters")  # fmt: skip
    text = " | ".join("{{" + name + "}}" for name in names)
    called = [call("b", "says", arguments={"m": "{{steps.a.id}} {{steps.a.status}} {{steps.a.exitCode}}"})]
    sums = ["1 + 2 * 3", "7 / 2", "7 % 3", "2 ** 3", "asInt('4') - 1", "'a' + 'b'", "1 < 2 ? 'yes' : 'no'", "true && !false",
            "'x' == 'x'", "asFloat('2.5') * 2", "string(5) + 'x'", "len('four')", "int(7.9)", "1.0 + 1", "10 / 5"]  # fmt: skip
    return [
        case("variables",
             steps([call("a", "tells", arguments={"x": "1"})], called),
             says("tells", "x", command=f"printf '%s' '{text}' > /tmp/o"), says(),
             arguments={"parameters": [{"name": "p", "value": "v"}]}, workflowMetadata={"labels": {"l": "lab"}}),
        case("variables-of-sums",
             steps([call(f"s{number}", "says", arguments={"m": "{{=" + each + "}}"}) for number, each in enumerate(sums)]), says()),
        case("variables-of-numbers",
             steps([call("a", "says", arguments={"m": "x"})]), says(),
             arguments={"parameters": [{"name": "i", "value": 5}, {"name": "f", "value": 1.50}, {"name": "t", "value": True}]}),
        case("variables-of-the-enum", steps([call("a", "picks", arguments={"m": "c"})]),
             says("picks") | {"inputs": {"parameters": [{"name": "m", "enum": ["a", "b"]}]}}),
    ]  # fmt: skip
