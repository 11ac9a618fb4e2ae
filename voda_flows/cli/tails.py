"""Reading the logs of many pods at once, as they grow, each line with who speaks before it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import click

from voda_flows.cli import following
from voda_flows.cli.columns import has_colours
from voda_flows.objects import POD_ENDED, WORKFLOW_ENDED, WORKFLOW_LABEL, Object, owner_uids, phase_of, seconds
from voda_flows.report.lives import lives
from voda_flows.world import Line, Logs, PodLog, World

#: Log files grow without a change of the store, so a follower looks this often.
_LOOK_S: Final = 0.2
_COLOURS: Final = ("cyan", "yellow", "green", "magenta", "blue", "bright_cyan", "bright_yellow", "bright_green")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Whose logs are meant.

    Attributes:
        workflow: The Workflow.
        job: Job name within it, empty for all that it runs.
    """

    workflow: Object
    job: str = ""

    def owns(self, pod: Object) -> bool:
        """Whether a pod is of this Workflow (not of an earlier one of its name) and job."""
        meta, own = pod["metadata"], self.workflow["metadata"]
        labels, owners = meta.get("labels") or {}, owner_uids(pod)
        return (
            (meta["namespace"], labels.get(WORKFLOW_LABEL)) == (own["namespace"], own["name"])
            and (not owners or own["uid"] in owners)
            and (not self.job or labels.get("voda.dev/job") == self.job)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which pods and lines are meant.

    Attributes:
        roles: ``driver`` and worker ids; empty for all pods.
        segment: Number of the segment, None for all.
        tail: The last lines of each pod, None for all.
        since_s: Not what is known to be older, seconds since the epoch; None for everything.
    """

    roles: frozenset[str] = frozenset()
    segment: int | None = None
    tail: int | None = None
    since_s: float | None = None

    def has(self, pod: Object) -> bool:
        """Whether a pod is meant."""
        labels = pod["metadata"].get("labels") or {}
        who = labels.get("voda.dev/worker") or labels.get("voda.dev/role", "")
        is_of_segment = self.segment is None or labels.get("voda.dev/segment") == str(self.segment)
        return (not self.roles or who in self.roles) and is_of_segment


@dataclass(slots=True, kw_only=True)
class Tail:
    """A pod's log.

    Attributes:
        mark: Who speaks.
        log: Its log.
        heard: Whether a follower was told of its pod: before, that the store does not show it says nothing.
        ended: Whether the pod writes no more.
    """

    mark: str
    log: PodLog
    heard: bool = False
    ended: bool = False


class Reader:
    """The logs of the pods of Workflows.

    Args:
        world: Where they are.
        sources: Whose logs are meant.
        chosen: Which pods and lines.
        marked: Whether lines say who speaks; None for when there are several.
        follows: Whether logs are read as they grow.

    Attributes:
        tails: By pod uid, in order of their start; grows as pods come.
    """

    def __init__(
        self, world: World, sources: Iterable[Source], chosen: Chosen = Chosen(), *,
        marked: bool | None = None, follows: bool = False,
    ) -> None:  # fmt: skip
        self.store = world.store
        self.tails: dict[str, Tail] = {}
        self._logs: Logs = world.logs()
        self._sources = tuple(sources)
        self._chosen = chosen
        self._marked = marked
        self._follows = follows

    def look(self, *, now: bool = False) -> None:
        """Take in pods that are new, and note which have ended.

        Args:
            now: Whether the store is asked in any case; else a follower goes by what it was told.
        """
        is_asked = now or not self._follows
        there = self._pods() if is_asked else [*self.store.snapshot("Pod").values()]
        for source in self._sources:
            aside = self._logs.gone(source.workflow, there)
            self._take_in(source, [pod for pod in (*there, *aside) if source.owns(pod) and self._chosen.has(pod)])
        phases = {pod["metadata"]["uid"]: phase_of(pod) for pod in there}
        for uid, tail in self.tails.items():
            tail.heard = tail.heard or (uid in phases and not is_asked)
            tail.ended = phases[uid] in POD_ENDED if uid in phases else is_asked or tail.heard

    def show(self, *, last: bool) -> None:
        """Print what is new, in order of time as far as it is known."""
        marked = len(self.tails) > 1 if self._marked is None else self._marked
        found: list[tuple[float, int, Line, Tail]] = []
        for number, tail in enumerate(self.tails.values()):
            new = tail.log.read(last=last or tail.ended)
            found += [(line.from_s, number, line, tail) for line in new if self._is_wanted(line)]
        for _, number, line, tail in sorted(found, key=lambda entry: entry[:2]):
            click.echo(f"{_coloured(tail.mark, number)} {line.text}" if marked else line.text)

    def is_over(self) -> bool:
        """Whether nothing more is to come: the jobs have ended and their pods too, or nothing runs pods."""
        if not all(self._has_ended(source) for source in self._sources):
            return False
        self.look(now=True)  # that a Workflow has ended may be known before its last pod is heard of
        return all(tail.ended for tail in self.tails.values()) or self._logs.is_over()

    def close(self) -> None:
        """Nothing more is wanted."""
        self._logs.close()

    def _pods(self) -> list[Object]:
        """The pods of the Workflows, as they are now."""
        places = [source.workflow["metadata"] for source in self._sources]
        return [
            pod
            for place in places
            for pod in self.store.list("Pod", place["namespace"], {WORKFLOW_LABEL: place["name"]})
        ]

    def _take_in(self, source: Source, pods: Iterable[Object]) -> None:
        """Open the logs of pods that were not seen before."""
        name = f"{source.workflow['metadata']['name']}/" if len(self._sources) > 1 else ""
        for pod in sorted(pods, key=_born_s):
            uid = pod["metadata"]["uid"]
            if uid not in self.tails:
                log = self._logs.open(source.workflow, pod, tail=self._chosen.tail, follow=self._follows)
                self.tails[uid] = Tail(mark=f"{name}{_who(pod)} |", log=log)

    def _is_wanted(self, line: Line) -> bool:
        """Whether a line is not known to be too old."""
        return self._chosen.since_s is None or line.until_s >= self._chosen.since_s

    def _has_ended(self, source: Source) -> bool:
        """Whether a Workflow, or the job in it that is meant, has ended."""
        if not source.job or following.has_ended(self.store, source.workflow):
            return following.has_ended(self.store, source.workflow)
        meta = source.workflow["metadata"]
        jobs = lives(self.store.get("Workflow", meta["namespace"], meta["name"]), ())
        return any(life.name == source.job and life.phase in WORKFLOW_ENDED for life in jobs)


def follow(reader: Reader) -> None:
    """Print what there is, and what comes until there will be no more."""
    try:
        _follow(reader)
    finally:
        reader.close()


def _follow(reader: Reader) -> None:
    revision = -1
    while True:
        now = reader.store.revision()
        if now != revision:
            reader.look()
        revision = now
        # Asked before the logs are read: what was written before the end is printed.
        over = reader.is_over()
        reader.show(last=over)
        if over:
            return
        sys.stdout.flush()
        reader.store.wait(revision, _LOOK_S)


def _born_s(pod: Object) -> float:
    """When a pod was made."""
    return seconds(pod["metadata"].get("creationTimestamp")) or 0.0


def _who(pod: Object) -> str:
    """Who speaks: ``w0``, ``driver``, after the first segment ``1/w0``; for other steps the step's name."""
    meta = pod["metadata"]
    labels = meta.get("labels") or {}
    who = labels.get("voda.dev/worker") or labels.get("voda.dev/role")
    if who is None:
        step = (meta.get("annotations") or {}).get("workflows.argoproj.io/node-name", meta["name"])
        return str(step.rpartition(".")[2])
    segment = labels.get("voda.dev/segment", "0")
    return str(who) if segment == "0" else f"{segment}/{who}"


def _coloured(mark: str, number: int) -> str:
    """A mark in the colour of its pod, on a terminal."""
    return click.style(mark, fg=_COLOURS[number % len(_COLOURS)]) if has_colours() else mark
