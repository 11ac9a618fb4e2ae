"""Running the project's own commands from a figure: make targets and pytest nodes, with their output kept short."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.show.record import ROOT
from tests.show.registry import Row

SUMMARY = re.compile(r"(\d+) (passed|failed|error|errors|skipped)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A command that has ended: exit code, output of both streams, seconds."""

    code: int
    output: str
    seconds: float


def run(command: Sequence[str], *, folder: Path = ROOT, environment: Mapping[str, str] | None = None) -> Finished:
    """Run a command to its end; on failure the end of its output goes to stderr, for whoever wants to know why.

    Args:
        command: Program and arguments.
        folder: Where it starts.
        environment: Variables to add to ours.
    """
    # Make would otherwise share its job server and its variables with the make we start.
    inherited = {
        name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "QUICK", "AREA"}
    }
    start_s = time.monotonic()
    ended = subprocess.run(
        command,
        cwd=folder,
        env=inherited | dict(environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ended.returncode:
        sys.stderr.write(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout[-4000:]}\n")
    return Finished(code=ended.returncode, output=ended.stdout, seconds=time.monotonic() - start_s)


def run_tests(name: str, nodes: Sequence[str], *, examples: int | None = None) -> Row:
    """A row that holds when pytest passes the nodes, at least one, none skipped.

    Args:
        name: The law they state.
        nodes: Paths or ``path::test`` ids.
        examples: Cases Hypothesis tries for each test; None for the number of everyday runs.
    """
    environment = {} if examples is None else {"VODA_TEST_EXAMPLES": str(examples)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout", "1200", *nodes]
    ended = run(command, environment=environment)
    counts = {word: int(number) for number, word in SUMMARY.findall(ended.output)}
    suffix = "" if examples is None else f", {examples} cases each"
    value = ", ".join(f"{number} {word}" for word, number in counts.items()) or f"exit {ended.code}"
    holds = ended.code == 0 and counts.get("passed", 0) > 0 and counts.get("skipped", 0) == 0
    return Row(figure=name, value=value + suffix, must_be="all pass", holds=holds)
