"""The command line on a real engine: from `voda up` to `voda down`, with plain steps that need no launcher."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from voda_flows.cli import down, up

HELLO = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: hello}
spec:
  entrypoint: main
  templates:
  - name: main
    steps:
    - - {name: first, template: say, arguments: {parameters: [{name: word, value: one}]}}
    - - {name: second, template: say, arguments: {parameters: [{name: word, value: two}]}}
  - name: say
    inputs: {parameters: [{name: word}]}
    container: {image: none, command: [sh, -c, "echo {{inputs.parameters.word}} from $PWD"]}
---
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: endless}
spec:
  entrypoint: main
  templates:
  - {name: main, container: {image: none, command: [sh, -c, "echo started; sleep 600"]}}
"""


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """A place to type in: a folder, and a home of local mode."""

    folder: Path
    home: Path

    def voda(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        return subprocess.run(
            [sys.executable, "-c", "from voda_flows.cli import main; main()", *arguments],
            cwd=self.folder,
            env={**os.environ, "VODA_HOME": str(self.home)},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A world that is up, and down again afterwards."""
    made = Terminal(folder=tmp_path, home=tmp_path / "home")
    up = made.voda("up", "--nodes", "1x1")
    assert up.returncode == 0, up.stderr
    yield made
    made.voda("down", "--drain", "0", "--purge")


def test_from_submission_to_deletion(terminal: Terminal) -> None:
    """Submit, follow the output, see the end, stop what does not end by itself, delete everything."""
    (terminal.folder / "job.yaml").write_text(HELLO, encoding="utf-8")
    submitted = terminal.voda("submit", "job.yaml")
    assert (submitted.returncode, submitted.stdout) == (0, "hello submitted\nendless submitted\n")

    assert terminal.voda("wait", "hello").returncode == 0
    folder = terminal.folder
    assert terminal.voda("logs", "hello").stdout == f"first | one from {folder}\nsecond | two from {folder}\n"

    assert terminal.voda("wait", "endless", "--timeout", "0.1s").returncode == 5
    assert terminal.voda("stop", "endless", "--wait").returncode == 0
    listed = json.loads(terminal.voda("list", "-o", "json").stdout)["items"]
    assert {body["metadata"]["name"]: body["status"]["phase"] for body in listed} == {
        "hello": "Succeeded",
        "endless": "Failed",
    }

    assert terminal.voda("delete", "--all", "--yes").stdout == "hello deleted\nendless deleted\n"
    assert terminal.voda("list", "-o", "name").stdout == ""


def test_a_failure_is_told_by_the_exit_code(terminal: Terminal) -> None:
    """`submit --log` prints what the pods print and ends with 1 when the Workflow failed."""
    text = HELLO.partition("---")[0].replace("echo {{", "echo no; exit 3; echo {{")
    (terminal.folder / "job.yaml").write_text(text, encoding="utf-8")

    said = terminal.voda("submit", "job.yaml", "--log")

    assert (said.returncode, said.stdout) == (1, "hello submitted\nno\n")
    assert said.stderr.startswith("hello Failed")


def test_up_and_down_can_be_repeated(terminal: Terminal) -> None:
    """What is up stays up; other nodes are a conflict; after `down --purge` there is nothing."""
    assert terminal.voda("up").stderr == "was up already\n"
    assert terminal.voda("up", "--nodes", "3x1").returncode == 4
    assert terminal.voda("up", "--set", "decide_intervall_s=3").returncode == 2
    assert terminal.voda("down", "--drain", "0", "--purge").returncode == 0
    assert terminal.voda("list").returncode == 3


def test_the_examples_of_up_and_down_run(tmp_path: Path) -> None:
    """As the help shows them, one after the other: what is up already stays, what is down is no fault."""
    here = Terminal(folder=tmp_path, home=tmp_path / "home")
    (tmp_path / "nodes.yaml").write_text("- {name: n0, gpus: 2}\n- {name: n1, gpus: 2}\n", encoding="utf-8")
    try:
        for example in (*up.command.examples, *down.command.examples):
            ended = here.voda(*example.split()[1:])
            assert ended.returncode == 0, (example, ended.stderr)
    finally:
        here.voda("down", "--drain", "0", "--purge")
