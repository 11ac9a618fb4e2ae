"""Reading the logs of many pods at once, as they grow."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

from voda_flows.local.store import LocalStore
from voda_flows.objects import Object, seconds

#: Log files grow without a change of the store, so a follower looks this often.
_LOOK_S: Final = 0.2
_COLOURS: Final = ("cyan", "yellow", "green", "magenta", "blue", "bright_cyan", "bright_yellow", "bright_green")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which pods are meant.

    Attributes:
        roles: ``driver`` and worker ids; empty for all pods.
        segment: Number of the segment, None for all.
        job: Job name within the Workflow, empty for all.
    """

    roles: frozenset[str] = frozenset()
    segment: int | None = None
    job: str = ""

    def has(self, pod: Object) -> bool:
        """Whether a pod is meant."""
        labels = pod["metadata"].get("labels") or {}
        who = labels.get("voda.dev/worker") or labels.get("voda.dev/role", "")
        return (
            (not self.roles or who in self.roles)
            and (self.segment is None or labels.get("voda.dev/segment") == str(self.segment))
            and (not self.job or labels.get("voda.dev/job") == self.job)
        )


@dataclass(slots=True, kw_only=True)
class Tail:
    """One log file and how far it was read.

    Attributes:
        path: The file, which need not exist yet.
        mark: What stands before its lines.
        offset: Bytes read.
        skip: How many lines at the start are not shown.
        rest: The beginning of a line whose end was not written yet.
    """

    path: Path
    mark: str
    offset: int = 0
    skip: int = 0
    rest: bytes = b""

    def new_lines(self, *, last: bool) -> list[str]:
        """Lines written since; with ``last``, an unfinished one too."""
        try:
            with self.path.open("rb") as stream:
                stream.seek(self.offset)
                read = stream.read()
        except FileNotFoundError:
            return []
        self.offset += len(read)
        *whole, self.rest = (self.rest + read).split(b"\n")
        if last and self.rest:
            whole, self.rest = [*whole, self.rest], b""
        shown, self.skip = whole[self.skip :], max(0, self.skip - len(whole))
        return [line.decode(errors="replace").rstrip("\r") for line in shown]


@dataclass(slots=True, kw_only=True)
class Reader:
    """The logs of a Workflow's pods.

    Attributes:
        store: Where the pods are.
        home: Folder of the local state.
        workflow: The Workflow.
        chosen: Which pods are meant.
        tails: By pod uid, in order of their start; grows as pods come.
    """

    store: LocalStore
    home: Path
    workflow: Object
    chosen: Chosen
    tails: dict[str, Tail] = field(default_factory=dict)

    def look(self) -> None:
        """Take in pods that are new."""
        meta = self.workflow["metadata"]
        pods = self.store.list("Pod", meta["namespace"], {"workflows.argoproj.io/workflow": meta["name"]})
        for pod in sorted(pods, key=lambda body: seconds(body["metadata"].get("creationTimestamp")) or 0.0):
            uid = pod["metadata"]["uid"]
            if uid not in self.tails and self.chosen.has(pod):
                self.tails[uid] = Tail(path=self.home / "pods" / uid / "main.log", mark=_mark(pod))

    def skip_all_but(self, lines: int) -> None:
        """Show only the last lines of what is there already."""
        self.look()
        for tail in self.tails.values():
            if tail.path.exists():
                tail.skip = max(0, tail.path.read_bytes().count(b"\n") - lines)

    def show(self, *, last: bool) -> None:
        """Print what is new."""
        alone = len(self.tails) == 1
        for number, tail in enumerate(self.tails.values()):
            for line in tail.new_lines(last=last):
                click.echo(line if alone else f"{_coloured(tail.mark, number)} {line}")


def follow(reader: Reader, *, until: Callable[[], bool]) -> None:
    """Print what there is, and what comes until ``until`` says that there will be no more."""
    while True:
        ended, revision = until(), reader.store.revision()
        reader.look()
        reader.show(last=ended)
        if ended:
            return
        sys.stdout.flush()
        reader.store.wait(revision, _LOOK_S)


def _mark(pod: Object) -> str:
    """Who speaks: ``w0``, ``driver``, after the first segment ``1/w0``; for other steps the step's name."""
    meta = pod["metadata"]
    labels = meta.get("labels") or {}
    who = labels.get("voda.dev/worker") or labels.get("voda.dev/role")
    if who is None:
        step = (meta.get("annotations") or {}).get("workflows.argoproj.io/node-name", meta["name"])
        return f"[{step.rpartition('.')[2]}]"
    segment = labels.get("voda.dev/segment", "0")
    return f"[{who}]" if segment == "0" else f"[{segment}/{who}]"


def _coloured(mark: str, number: int) -> str:
    """A mark in the colour of its pod, on a terminal."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return mark
    return click.style(mark, fg=_COLOURS[number % len(_COLOURS)])
