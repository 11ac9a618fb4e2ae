"""Submitting: what is created, what is refused, and with which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.world import World

JOB = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  name: mine
spec:
  workflowTemplateRef:
    name: voda-elastic-job
  arguments:
    parameters:
      - name: command
        value: python train.py
"""


def write(folder: Path, text: str, name: str = "job.yaml") -> str:
    """A file with a document."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_job_is_created_with_its_working_folder(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stdout names what was submitted; the folder one is in is noted, so that `python train.py` finds its file."""
    monkeypatch.chdir(tmp_path)

    said = world.voda("submit", write(tmp_path, JOB))

    assert (said.code, said.out, said.err) == (0, "mine submitted\n", "")
    meta = world.store.get("Workflow", "default", "mine")["metadata"]
    assert meta["annotations"]["voda.dev/workdir"] == str(tmp_path)


def test_a_job_that_nothing_will_run_is_submitted_with_a_warning(world: World, tmp_path: Path) -> None:
    """After `voda down` it waits for the next `voda up`: said on stderr, as the result is the same."""
    world.stop()

    said = world.voda("submit", write(tmp_path, JOB))

    assert (said.code, said.out) == (0, "mine submitted\n")
    assert said.err == "warning: nothing runs jobs here now; `voda up` starts it again\n"


def test_options_set_arguments_name_and_namespace(world: World, tmp_path: Path) -> None:
    """-p sets or adds an argument, --name and -n say what the document leaves open; -o name prints the name alone."""
    file = write(tmp_path, JOB)
    template = world.store.get("WorkflowTemplate", "default", "voda-elastic-job")
    world.store.create({**template, "metadata": {"name": "voda-elastic-job", "namespace": "team"}})

    said = world.voda(
        "submit", file, "-p", "max-gpus=2", "-p", "command=a=b", "--name", "x", "-n", "team", "-o", "name"
    )

    assert (said.code, said.out) == (0, "x\n")
    assert world.store.get("Workflow", "team", "x")["spec"]["arguments"]["parameters"] == [
        {"name": "command", "value": "a=b"},
        {"name": "max-gpus", "value": "2"},
    ]


def test_one_file_may_bring_template_and_workflow(world: World, tmp_path: Path) -> None:
    """Templates are applied before the Workflows that call them, in whatever order they stand; twice is once."""
    template = (
        "apiVersion: argoproj.io/v1alpha1\nkind: WorkflowTemplate\nmetadata: {name: greet}\nspec:\n"
        "  entrypoint: main\n  templates: [{name: main, container: {image: x, command: [echo, hello]}}]\n"
    )
    call = (
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: call-}\n"
        "spec: {workflowTemplateRef: {name: greet}}\n"
    )
    file = write(tmp_path, f"{call}---\n{template}")

    first, second = world.voda("submit", file), world.voda("submit", file)

    assert first.code == second.code == 0, first.err
    assert first.out.splitlines()[0] == "greet created"
    assert second.out.splitlines()[0] == "greet unchanged"
    assert first.out.splitlines()[1].startswith("call-")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind: Workflow\n", "kind: Workflw\n", "found 'Workflw' at $.kind; did you mean 'Workflow'?"),
        ("argoproj.io/v1alpha1", "argoproj.io/v1", "expected 'argoproj.io/v1alpha1', found 'argoproj.io/v1' at $.apiV"),
        ("  name: mine\n", "  nam: mine\n", "expected `name` or `generateName` at $.metadata"),
        ("name: command", "name: comand", "did you mean 'command'?"),
        ("python train.py", "''", "expected command to be given"),
        ("name: voda-elastic-job", "name: voda-elastic-jb", '"voda-elastic-jb" not found'),
        ("spec:\n", "spec:\n  entrypont: job\n", "entrypont"),
        ("python train.py", "x\n      - name: priority\n        value: hgh", "did you mean 'high'?"),
        (
            "value: python train.py\n",
            "value: a\n      - name: command\n        value: b\n",
            "spec.arguments.parameters[1].name 'command' is not unique",
        ),
        ("name: mine", "name: true", "Workflow True: metadata.name: Invalid value"),
        ("name: mine", "name: mine\n  labels: {a: true}", "metadata.labels.a in body must be of type string"),
        ("value: python train.py", "value: null", "spec.arguments.command.value or spec.arguments.command.valueFrom"),
    ],
)
def test_a_wrong_document_is_refused_whole(world: World, tmp_path: Path, old: str, new: str, said: str) -> None:
    """Exit 2, one line that begins with `error:`, no traceback, and nothing was created."""
    answer = world.voda("submit", write(tmp_path, JOB.replace(old, new)))

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ")
    assert said in answer.err
    assert world.store.list("Workflow") == []


CRON = """\
apiVersion: argoproj.io/v1alpha1
kind: CronWorkflow
metadata:
  name: nightly
spec:
  schedules: ["0 3 * * *"]
  workflowSpec:
    workflowTemplateRef:
      name: voda-elastic-job
    arguments:
      parameters:
        - name: command
          value: python train.py
"""
LIBRARY = """\
apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata:
  name: library
spec:
  templates:
    - name: hello
      container: {image: busybox, command: [echo, hello]}
"""


@pytest.mark.parametrize(
    ("document", "change", "said"),
    [
        (CRON, ("0 3 * * *", "0 3 * *"), "expected a schedule of five fields"),
        (CRON, ("schedules", "schedule"), "CronWorkflow nightly: expected fields out of"),
        (CRON, ("name: command", "name: comand"), "did you mean 'command'?"),
        (
            CRON,
            ("workflowSpec:\n", "workflowSpec:\n    parallelism: 2\n"),
            "nightly, in the Workflow that it makes: spec.workflowSpec.parallelism: not supported in local mode",
        ),
        (LIBRARY, ("image: busybox", "image: busybox, tty: true"), "spec.templates[0].container.tty: not supported"),
        (
            LIBRARY,
            ("echo, hello", "echo, '{{nope}}'"),
            "spec.templates[0].container.command[1]: templates.hello: failed to resolve",
        ),
    ],
)
def test_a_wrong_template_is_refused_before_anybody_uses_it(
    world: World, tmp_path: Path, document: str, change: tuple[str, str], said: str
) -> None:
    """WorkflowTemplates and CronWorkflows are held against the same rules as the Workflows that come of them."""
    before = world.store.list("WorkflowTemplate")

    answer = world.voda("submit", write(tmp_path, document.replace(*change)))

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ")
    assert said in answer.err
    assert (world.store.list("WorkflowTemplate"), world.store.list("CronWorkflow", "default")) == (before, [])


def test_right_templates_are_applied(world: World, tmp_path: Path) -> None:
    """A CronWorkflow may call a template that stands behind it in the same file."""
    nightly = CRON.replace("voda-elastic-job", "library").replace("          value", "          value: x #")
    library = LIBRARY.replace("spec:\n", "spec:\n  entrypoint: hello\n")

    answer = world.voda("submit", write(tmp_path, f"{nightly}---\n{library}"))

    assert (answer.code, answer.out) == (0, "library created\nnightly created\n"), answer.err


def test_nothing_is_half_submitted(world: World, tmp_path: Path) -> None:
    """When the second document is wrong, the first is not created either."""
    answer = world.voda("submit", write(tmp_path, f"{JOB}---\n{JOB.replace('name: command', 'name: cmd')}"))

    assert answer.code == 2
    assert world.store.list("Workflow") == []


def test_a_name_that_is_taken_is_a_conflict(world: World, tmp_path: Path) -> None:
    """Exit 4, and what to do."""
    file = write(tmp_path, JOB)
    world.voda("submit", file)

    answer = world.voda("submit", file)

    assert answer.code == 4
    assert "exists already" in answer.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("missing.yaml",), "missing.yaml: expected a file to read, found: No such file or directory"),
        (
            ("jab.yaml",),
            "jab.yaml: expected a file to read, found: No such file or directory; did you mean 'job.yaml'?",
        ),
        (("no/job.yaml",), "no/job.yaml: expected a file to read, found: No such file or directory"),
        (("job.yaml", "-p", "epochs"), "-p: expected `name=value`, found `epochs`"),
        (("job.yaml", "job.yaml", "--name", "x"), "--name: expected one Workflow to name, found 2"),
    ],
)
def test_wrong_usage_says_what_was_expected(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    """Files that are not there and options that do not fit: exit 2 and one line."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, JOB)

    answer = world.voda("submit", *arguments)

    assert (answer.code, answer.err.splitlines()[0]) == (2, f"error: {said}")


def test_a_namespace_that_contradicts_the_document_is_refused(world: World, tmp_path: Path) -> None:
    """-n does not move a document that says where it belongs."""
    file = write(tmp_path, JOB.replace("name: mine", "name: mine\n  namespace: theirs"))

    answer = world.voda("submit", file, "-n", "ours")

    assert answer.code == 2
    assert "-n says 'ours', the document 'theirs'" in answer.err
