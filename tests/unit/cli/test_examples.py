"""The examples that end each subcommand's help are run, in a world that was prepared for them."""

from __future__ import annotations

import importlib
import io
import shlex
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from scheduler_core.errors import Conflict, NotFound
from tests.unit.cli.test_submit import CRON, JOB
from tests.unit.cli.world import World
from tests.unit.report.world import Building
from voda_flows.cli.verbs import VERBS, Verb, VerbGroup
from voda_flows.objects import POD_ENDED, WORKFLOW_ENDED, Key, Object

ROOT = Path(__file__).resolve().parents[3]
#: They start processes, or need a cluster: run by tests/e2e/test_command_line.py, tests/e2e/test_demo.py and
#: tests/contract/test_install.py, only read here.
STARTING = ("up", "down", "demo", "install", "uninstall")
#: It ends with Ctrl-C: run by test_terminal.py.
ENDLESS = ("voda watch",)
#: Options that name a cluster; tests/cluster/test_command_line.py runs every subcommand on one.
ELSEWHERE = ("--context", "--kubeconfig", "--argo-server")
#: Words of a command line that stays until jobs have ended.
STAYING = {"wait", "watch", "--wait", "--watch", "-f"}


def examples() -> list[str]:
    """All examples, in the order of the help."""
    commands = [importlib.import_module(f"voda_flows.cli.{verb}").command for verb in VERBS]
    return [example for command in commands for example in command.examples]


def command_lines(example: str) -> Iterator[list[str]]:
    """What stands behind ``voda`` in each part of an example; a shell's patterns are filled in."""
    words = shlex.split(example, comments=True)
    parts: list[list[str]] = [[]]
    for word in words:
        if word in ("|", "&&", ">"):
            parts.append([])
        else:
            parts[-1].append(word)
    for part in parts:
        if part[:1] == ["voda"]:
            yield [
                found for word in part[1:] for found in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
            ]


class StandIn:
    """What an engine does to jobs that are to end, or to go, without one."""

    def __init__(self, world: World, words: list[str]) -> None:
        self._store = world.store
        self._ends = bool(STAYING & set(words))
        self._told_only = words[0] in ("stop", "terminate")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_why: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            revision = self._store.revision()
            for body in self._store.list("Workflow"):
                try:
                    self._treat(body)
                except (Conflict, NotFound):  # it changed meanwhile: the next round sees it
                    continue
            self._store.wait(revision, 0.05)

    def _treat(self, body: Object) -> None:
        """Take away what is to go; end what is to end."""
        meta, phase = body["metadata"], (body.get("status") or {}).get("phase")
        if "deletionTimestamp" in meta:
            self._store.remove(Key("Workflow", meta["namespace"], meta["name"]), uid=meta["uid"])
        elif self._ends and phase not in WORKFLOW_ENDED and (not self._told_only or body["spec"].get("shutdown")):
            for pod in self._store.list("Pod", meta["namespace"], {"workflows.argoproj.io/workflow": meta["name"]}):
                if pod["status"]["phase"] not in POD_ENDED:
                    ended = {"status": {"phase": "Succeeded"}}
                    self._store.merge_patch("Pod", meta["namespace"], pod["metadata"]["name"], ended)
            over = {"status": {"phase": "Succeeded", "finishedAt": "2027-01-15T09:00:00Z"}}
            self._store.merge_patch("Workflow", meta["namespace"], meta["name"], over)


def job(name: str, submitted: float, **labels: str) -> Building:
    """A job with a segment that ended and one that trains."""
    made = Building(name=name, submitted=submitted).grant(submitted + 1, ("w0", "n0"), ("w1", "n0"))
    made.publish("w0", "w1").stop(submitted + 9, "resize", "w0", "w1")
    return made.grant(submitted + 20, ("w0", "n1"), ("w1", "n1")).publish("w0", "w1").progress(250, 1000)


@pytest.fixture
def prepared(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """What the examples name: jobs that train, wait and have ended, cron workflows, and files."""
    labels = {"digits": {"team": "vision", "voda.dev/category": "digits"}, "rigid": {"team": "vision"}}
    old = Building(name="old", submitted=2).grant(3, ("w0", "n0")).publish("w0").finish(5, "Failed")
    for made in (job("digits", 0), job("text", 1), old, Building(name="rigid", submitted=3), job("pipeline", 4)):
        world.add(made)
    for name, found in labels.items():
        world.store.merge_patch("Workflow", "default", name, {"metadata": {"labels": found}})
    for pod in world.store.list("Pod", "default"):
        world.log(pod["metadata"]["name"], "epoch 0\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "templates").symlink_to(ROOT / "templates")
    (tmp_path / "jobs").mkdir()
    for file in ("job.yaml", "jobs/one.yaml"):
        (tmp_path / file).write_text(JOB, encoding="utf-8")
    (tmp_path / "cron.yaml").write_text(CRON, encoding="utf-8")
    assert world.voda("submit", "cron.yaml").code == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(JOB.encode())))
    return world


def fail_all(world: World) -> None:
    """All jobs have failed: what a retry is for."""
    for body in world.store.list("Workflow", "default"):
        name, nodes = body["metadata"]["name"], body["status"]["nodes"]
        failed = {node: {"phase": "Failed"} for node, value in nodes.items() if value["phase"] == "Running"}
        world.end_pods(name, "Failed")
        world.store.merge_patch("Workflow", "default", name, {"status": {"phase": "Failed", "nodes": failed}})


def clear(world: World) -> None:
    """Nothing was submitted yet."""
    for body in world.store.list("Workflow", "default"):
        meta = body["metadata"]
        world.store.remove(Key("Workflow", "default", meta["name"]), uid=meta["uid"])


def is_read(line: str) -> bool:
    """Whether an example is read only."""
    return line.split()[1] in STARTING or any(option in line.split() for option in ELSEWHERE)


@pytest.mark.parametrize("example", [line for line in examples() if not is_read(line) and line not in ENDLESS])
def test_an_example_runs(prepared: World, example: str) -> None:
    """Each part of it ends with 0, and says no error."""
    if " retry " in example:
        fail_all(prepared)
    if " submit " in example:
        clear(prepared)
    for words in command_lines(example):
        with StandIn(prepared, words):
            said = prepared.voda(*words)

        assert (said.code, "error:" in said.err) == (0, False), said


@pytest.mark.parametrize("example", [line for line in examples() if is_read(line)])
def test_an_example_of_what_starts_processes_is_read(example: str) -> None:
    """Its options are there and take these values."""
    for verb, *words in command_lines(example):
        command: click.Command = importlib.import_module(f"voda_flows.cli.{verb}").command
        assert command.make_context(verb, words).params


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_ends_in_its_examples(world: World, verb: str) -> None:
    """--help says what it does and has at least one command line to copy, exactly as it is run here."""
    command = importlib.import_module(f"voda_flows.cli.{verb}").command
    assert isinstance(command, (Verb, VerbGroup))

    said = world.voda(verb, "--help")

    assert (said.code, said.err) == (0, "")
    assert command.examples
    assert said.out.endswith("Examples:\n" + "".join(f"  {example}\n" for example in command.examples))
