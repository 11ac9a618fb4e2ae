"""Files that people might submit and that must be refused: one clear fault each, at its place, and nothing kept.

A table: the unit test runs it in one process, ``make show AREA=local`` through the real command line.
"""

from __future__ import annotations

from dataclasses import dataclass

HEAD = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata:\n  name: mine\n"
JOB = f"{HEAD}spec:\n  workflowTemplateRef:\n    name: voda-elastic-job\n  arguments:\n    parameters:\n"
COMMAND = "      - {name: command, value: python train.py}\n"
GOOD = f"{JOB}{COMMAND}"
OWN = f"{HEAD}spec:\n  entrypoint: main\n  templates:\n"
HELLO = "    - name: hello\n      container: {image: busybox, command: [echo, hello]}\n"
CRON = (
    "apiVersion: argoproj.io/v1alpha1\nkind: CronWorkflow\nmetadata: {name: nightly}\n"
    "spec:\n  schedules: ['0 3 * * *']\n  workflowSpec:\n"
    "    workflowTemplateRef: {name: voda-elastic-job}\n    arguments:\n      parameters:\n"
    "        - {name: command, value: x}\n"
)


@dataclass(frozen=True, kw_only=True)
class Bad:
    """One file.

    Attributes:
        name: What is wrong with it.
        text: Its content.
        at: Line and column of the fault, as ``3:9``; empty where the file as a whole is wrong.
        path: Path of the fault in its document, empty where there is none.
        said: A part of the message.
        code: The exit code.
    """

    name: str
    text: str | bytes
    said: str
    at: str = ""
    path: str = ""
    code: int = 2


def given(name: str, value: str) -> str:
    """A job with one more parameter, in line 11."""
    return f'{GOOD}      - {{name: {name}, value: "{value}"}}\n'


def steps(*lines: str) -> str:
    """A Workflow whose template main, from line 7 on, has these lines, and that has a template hello before it."""
    return OWN + HELLO + "    - name: main\n" + "".join(f"      {line}\n" for line in lines)


PARAMETER = "spec.arguments.parameters[1]"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)

OF_A_JOB = (
    Bad(name="missing command", text=f"{JOB}      []\n", at="8:3", path="spec.arguments", said="expected command"),
    Bad(name="empty command", text=GOOD.replace("python train.py", "' '"), at="10:25",
        path="spec.arguments.parameters[0].value", said="expected command to be given, got none"),
    Bad(name="min > max", text=f"{given('min-gpus', '3')}      - {{name: max-gpus, value: '2'}}\n", at="11:26",
        path=f"{PARAMETER}.value", said="job mine/train: expected min-gpus <= max-gpus, got 3 and 2"),
    Bad(name="gpus-per-worker does not divide",
        text=f"{given('gpus-per-worker', '2')}      - {{name: max-gpus, value: '3'}}\n", at="8:3",
        path="spec.arguments", said="expected min-gpus in multiples of gpus-per-worker 2, got 1"),
    Bad(name="unknown input", text=given("min-gpu", "1"), at="11:10", path=f"{PARAMETER}.name",
        said="got 'min-gpu'; did you mean 'min-gpus'?"),
    Bad(name="unknown GPU type", text=given("gpu-type", "h900"), at="11:26", path=f"{PARAMETER}.value",
        said="expected a gpu-type of this cluster, got 'h900'"),
    Bad(name="negative epochs", text=given("epochs", "-1"), at="11:24", path=f"{PARAMETER}.value",
        said="expected epochs to be a whole number >= 1, got '-1'"),
    Bad(name="epochs that are no whole number", text=given("epochs", "1.5"), at="11:24", path=f"{PARAMETER}.value",
        said="expected epochs to be a whole number >= 1, got '1.5'"),
    Bad(name="priority that is none", text=given("priority", "hihg"), at="11:26", path=f"{PARAMETER}.value",
        said="got 'hihg'; did you mean 'high'?"),
    Bad(name="queue that does not exist", text=given("queue", "defualt"), at="11:23", path=f"{PARAMETER}.value",
        said="got 'defualt'; did you mean 'default'?"),
    Bad(name="volume that is a path upwards", text=given("volume", "../../etc"), at="11:24",
        path=f"{PARAMETER}.value", said="expected volume to be a claim's name"),
    Bad(name="volume that is an absolute path", text=given("volume", "/etc"), at="11:24", path=f"{PARAMETER}.value",
        said="expected volume to be a claim's name"),
    Bad(name="job-name that leaves its folder", text=given("job-name", "../other"), at="11:26",
        path=f"{PARAMETER}.value", said="expected job-name of at most 63 lower-case letters"),
    Bad(name="workdir that leaves the volume", text=given("workdir", "/voda/../../etc"), at="11:25",
        path=f"{PARAMETER}.value", said="expected workdir to be a path without '..'"),
    Bad(name="parallelism too small for the workers", at="6:3",
        text=given("max-gpus", "4").replace("spec:\n", "spec:\n  parallelism: 3\n"), path="spec.parallelism",
        said="expected the Workflow's parallelism to be at least 5"),
    Bad(name="parameter given twice", text=given("command", "b"), at="11:10", path=f"{PARAMETER}.name",
        said="'command' is not unique"),
    Bad(name="unknown job template", text=GOOD.replace("voda-elastic-job", "voda-elastik-job"), at="7:5",
        path="spec.workflowTemplateRef.name", said="did you mean 'voda-elastic-job'?"),
    Bad(name="job in a cron workflow", text=f"{CRON}        - {{name: epochs, value: '0'}}\n", at="11:26",
        path="spec.workflowSpec.arguments.parameters[1].value", said="expected epochs to be a whole number >= 1"),
)  # fmt: skip

OF_A_WORKFLOW = (
    Bad(name="unknown template", text=steps("steps: [[{name: a, template: helo}]]"), at="11:16",
        path="spec.templates[1].steps[0][0]", said="template name 'helo' undefined; did you mean 'hello'?"),
    Bad(name="unsupported field", text=steps("container: {image: a, command: [b]}", "daemon: true"), at="12:7",
        path="spec.templates[1].daemon", said="not supported in local mode"),
    Bad(name="typo in a field", text=steps("container: {image: a, command: [b]}", "retrystrategy: {}"), at="12:7",
        path="spec.templates[1].retrystrategy", said="did you mean retryStrategy?"),
    Bad(name="variable that comes to nothing", text=steps(
        "steps: [[{name: a, template: hello, when: '{{steps.b.status}} == x'}]]"), at="11:43",
        path="spec.templates[1].steps[0][0].when", said="failed to resolve {{steps.b.status}}"),
    Bad(name="name with a variable in it", text=GOOD.replace("name: mine", "name: 'run-{{workflow.uid}}'"), at="4:3",
        path="metadata.name", said="Invalid value: 'run-{{workflow.uid}}': expected lower-case letters"),
    Bad(name="step named twice", text=steps("steps: [[{name: a, template: hello}, {name: a, template: hello}]]"),
        at="11:45", path="spec.templates[1].steps[0][1].name", said="'a' is not unique"),
    Bad(name="template named twice", text=OWN + HELLO + HELLO, at="10:7", path="spec.templates[1].name",
        said="'hello' is not unique"),
    Bad(name="cycle in a dag", text=steps("dag:", "  tasks:", "    - {name: a, template: hello, dependencies: [b]}",
        "    - {name: b, template: hello, dependencies: [a]}"), at="13:13", path="spec.templates[1].dag.tasks[0]",
        said="graph with cycle: a -> b -> a"),
    Bad(name="recursion without when", text=steps("steps:", "  - - {name: a, template: hello}",
        "  - - {name: again, template: main}"), at="13:13", path="spec.templates[1].steps[1][0]",
        said="expected a `when` somewhere in main -> main, found none"),
    Bad(name="command missing in a container", text=steps("container: {image: a}"), at="11:7",
        path="spec.templates[1].container", said="expected a command"),
    Bad(name="expression that does not parse", text=steps("container: {image: a, command: ['{{=1 +}}']}"), at="11:39",
        path="spec.templates[1].container.command[0]", said="Unexpected end of expression"),
    Bad(name="claim outside of the volumes", text=steps("container: {image: a, command: [b]}",
        "volumes: [{name: v, persistentVolumeClaim: {claimName: ../../x}}]"), at="12:51",
        path="spec.templates[1].volumes[0].persistentVolumeClaim.claimName", said="expected a claim's name"),
    Bad(name="mount that leaves its volume", text=steps("container:", "  image: a", "  command: [b]", "  volumeMounts: "
        "[{name: v, mountPath: /v, subPath: ../../x}]"), at="14:49",
        path="spec.templates[1].container.volumeMounts[0].subPath", said="expected a relative path without '..'"),
    Bad(name="output outside of the pod's folder", text=steps("container: {image: a, command: [b]}",
        "outputs: {parameters: [{name: o, valueFrom: {path: /tmp/../../x}}]}"), at="12:52",
        path="spec.templates[1].outputs.parameters[0].valueFrom.path", said="expected a path without '..'"),
    Bad(name="no entrypoint", text=steps("container: {image: a, command: [b]}").replace("  entrypoint: main\n", ""),
        at="5:1", path="spec", said="spec.entrypoint is required"),
    Bad(name="schedule that is none", text=CRON.replace("0 3 * * *", "0 3 * *"), at="5:3", path="spec.schedules",
        said="0 3 * *"),
)  # fmt: skip

OF_ITS_NAMES = (
    Bad(name="name with capitals", text=GOOD.replace("name: mine", "name: My_Job"), at="4:3", path="metadata.name",
        said="did you mean 'my-job'?"),
    Bad(name="name too long", text=GOOD.replace("name: mine", f"name: {'a' * 64}"), at="4:3", path="metadata.name",
        said="expected at most 63 characters, not 64"),
    Bad(name="generateName too long", text=GOOD.replace("name: mine", f"generateName: {'a' * 60}-"), at="4:3",
        path="metadata.generateName", said="expected at most 58 characters (5 more are added), not 61"),
    Bad(name="label that is not valid", text=GOOD.replace("name: mine", "name: mine\n  labels: {team: a b}"), at="5:12",
        path="metadata.labels.team", said="Invalid value: 'a b': expected at most 63 letters"),
    Bad(name="label's key that is not valid", text=GOOD.replace("name: mine", "name: mine\n  labels: {a b: c}"),
        at="5:12", path="metadata.labels.a b", said="Invalid value: 'a b': expected a key"),
    Bad(name="no name at all", text=GOOD.replace("  name: mine", "  labels: {}"), at="3:1", path="metadata",
        said="expected `name` or `generateName`"),
    Bad(name="name that is a number", text=GOOD.replace("name: mine", "name: 7"), at="4:3", path="metadata.name",
        said="must be of type string: \"integer\"; put it in quotes"),
    Bad(name="name given twice in a file", text=f"{GOOD}---\n{GOOD}", at="15:3", path="metadata.name",
        said="expected one document of that name, found two"),
)  # fmt: skip

OF_THE_TEXT = (
    Bad(name="unquoted no as a name", text=GOOD.replace("name: mine", "name: no"), at="4:9", path="metadata.name",
        said="the bare word `no`, which kubectl and argo read as false"),
    Bad(name="unquoted on as a value", text=GOOD.replace("python train.py", "on"), at="10:32",
        path="spec.arguments.parameters[0].value", said="the bare word `on`, which kubectl and argo read as true"),
    Bad(name="unquoted y as a key", text=GOOD.replace("  name: mine", "  name: mine\n  labels: {y: a}"), at="5:12",
        path="metadata.labels", said="the bare word `y`"),
    Bad(name="key given twice", text=GOOD.replace("  name: mine\n", "  name: mine\n  name: yours\n"), at="5:3",
        path="metadata", said="found `name` again (first in line 4)"),
    Bad(name="more than 1 MB", text=f"{GOOD}# {'x' * 1024 * 1024}\n", said="expected at most 1000000 bytes"),
    Bad(name="YAML bomb", text=BOMB, at="1:1", said="with aliases expanded, found more"),
    Bad(name="alias in its own anchor", text="a: &x [*x]\n", at="1:1", said="with aliases expanded, found more"),
    Bad(name="nested a hundred thousand deep", text="a: " + "[" * 100_000, at="1:1003", said="levels of nesting"),
    Bad(name="non-UTF-8", text=GOOD.replace("train", "träin").encode("latin-1"), at="10:41", said="the byte 0xe4"),
    Bad(name="UTF-16", text=GOOD.encode("utf-16"), at="1:1", said="found UTF-16"),
    Bad(name="NUL byte", text=GOOD.replace("mine", "mi\0ne"), at="4:11", said="found the character U+0000"),
    Bad(name="tab as indentation", text=GOOD.replace("  name: mine", "\tname: mine"), at="4:1", said="found a tab"),
    Bad(name="empty file", text="", at="1:1", said="expected at least one document, found an empty file"),
    Bad(name="only comments", text="# nothing\n---\n# here\n", at="1:1", said="found only comments"),
    Bad(name="third document broken", text=f"{GOOD}---\n{GOOD.replace('mine', 'two')}---\na: [1\n", at="24:1",
        said="expected YAML: did not find expected ',' or ']'"),
    Bad(name="third document refused",
        text=f"{GOOD}---\n{GOOD.replace('mine', 'two')}---\n{GOOD.replace('mine', 'three').replace('spec:', 'spce:')}",
        at="23:1", path="spec", said="expected fields at $.spec"),
    Bad(name="unknown kind", text=GOOD.replace("kind: Workflow", "kind: Workflw"), at="2:1", path="kind",
        said="did you mean 'Workflow'?"),
    Bad(name="unknown apiVersion", text=GOOD.replace("io/v1alpha1", "io/v1"), at="1:1", path="apiVersion",
        said="expected 'argoproj.io/v1alpha1', found 'argoproj.io/v1'"),
    Bad(name="a list, no document", text="- a\n- b\n", at="1:1", said="expected a document with fields, found a list"),
    Bad(name="a tag that runs code", text="a: !!python/object/apply:os.system [id]\n", at="1:4", path="a",
        said="expected a value of JSON, found the tag !!python/object/apply:os.system"),
    Bad(name="number that is not finite", text=GOOD.replace("python train.py", ".inf"), at="10:32",
        said="expected a finite number"),
)  # fmt: skip

BAD_INPUTS = (*OF_A_JOB, *OF_A_WORKFLOW, *OF_ITS_NAMES, *OF_THE_TEXT)


def missing(bad: Bad, file: str, code: int, said: str) -> str:
    """What of an answer is not as the table says; empty where all is.

    Args:
        bad: The row.
        file: The file's name, as it was given.
        code: The exit code.
        said: What stood on stderr.
    """
    first = said.split("\n", 1)[0]
    begin = f"error: {file}:{bad.at}: " if bad.at else f"error: {file}: "
    if code != bad.code:
        return f"exit code {code}, not {bad.code}: {first}"
    if f"\n{said}".count("\nerror: ") != 1 or "Traceback" in said:
        return f"not one fault: {said}"
    if not first.startswith(begin):
        return f"not at {begin!r}: {first}"
    return "" if bad.said in first and bad.path in first else f"not {bad.path!r} and {bad.said!r}: {first}"
