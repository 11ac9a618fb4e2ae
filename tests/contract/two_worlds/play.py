"""Plays cases in a world: many at once, since most of the time of each is waiting for pods.

In: cases, each a document with what is done to it; out: a story for each. Both worlds are played side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from scheduler_core.errors import Conflict, InvalidValue, NotFound
from tests.cluster.cluster import Cluster
from tests.contract.two_worlds.cluster_world import cluster_world
from tests.contract.two_worlds.local_world import local_world
from tests.contract.two_worlds.story import Story, differences, refusal, story
from tests.contract.two_worlds.world import Flow, World
from voda_flows.objects import Object

#: On two cores more pods at once only make each of them slower.
AT_ONCE = 8


class Notes:
    """What a case writes down while it goes on, beside how its Workflow ends."""

    def __init__(self) -> None:
        self.facts: Story = {}

    def add(self, when: str, facts: Mapping[str, str]) -> None:
        """Write facts down under a moment's name."""
        self.facts |= {f"{when}: {place}": value for place, value in facts.items()}

    def refused(self, when: str, act: Callable[[], object]) -> None:
        """Do something, and write down whether it was refused; its words are each world's own."""
        try:
            act()
        except Conflict:
            self.facts[when] = "refused"
        else:
            self.facts[when] = "done"


Script = Callable[[Flow, Notes], None]


def to_its_end(flow: Flow, _notes: Notes) -> None:
    """What is done to most documents: nothing."""
    flow.ends()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One document and what is done to it.

    Attributes:
        name: What it is about; also the Workflow's name.
        document: The Workflow.
        script: What is done, until the story can be told.
        templates: WorkflowTemplates that it refers to, whose names are its own.
        is_timed: Whether it ends by the clock: it is begun with first.
        tell: Plays it in a world, where that is done in another way than by its script.
    """

    name: str
    document: Object
    script: Script = to_its_end
    templates: tuple[Object, ...] = field(default=())
    is_timed: bool = False
    tell: Callable[[World, Case], Story] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What became of a case in each of the worlds."""

    local: Future[Story]
    cluster: Future[Story]

    def differences(self) -> list[str]:
        """Where the worlds differ, one line for each fact."""
        return differences(self.local.result(), self.cluster.result())


class Stage:
    """Both worlds, and the players of each."""

    def __init__(self, local: World, cluster: World) -> None:
        self.worlds = (local, cluster)
        self._volume = Lock()
        self._has_volume = False
        self._pools = [ThreadPoolExecutor(max_workers=AT_ONCE) for _ in self.worlds]

    def play(self, cases: Sequence[Case]) -> dict[str, Pair]:
        """Begin with all cases, timed ones first; what becomes of each is to be waited for."""
        found = {}
        for case in sorted(cases, key=lambda case: not (case.is_timed or case.tell)):
            local, cluster = (pool.submit(case.tell or tell, world, case)
                              for pool, world in zip(self._pools, self.worlds, strict=True))  # fmt: skip
            found[case.name] = Pair(local=local, cluster=cluster)
        return found

    def close(self) -> None:
        """Begin with nothing new, and wait for what is being played."""
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)


def tell(world: World, case: Case) -> Story:
    """Play a case in a world; its story."""
    for template in case.templates:
        with suppress(Conflict):  # another case has brought it
            world.submit(template)
    try:
        made = world.submit(case.document)
    except InvalidValue as fault:
        return refusal(str(fault))
    flow, notes = Flow(world, made["metadata"]["name"]), Notes()
    try:
        case.script(flow, notes)
        found = story(flow)
        words = found.get("workflow.refused")
        return refusal(words) if words else {**found, **notes.facts}
    finally:
        with suppress(NotFound):
            world.store.delete("Workflow", world.namespace, flow.name)


@contextmanager
def stage(cluster: Cluster, home: Path) -> Iterator[Stage]:
    """Both worlds, ready.

    Args:
        cluster: One that is up.
        home: A folder for the local engine.
    """
    with cluster_world(cluster) as there, local_world(home, there.namespace) as local:
        there.prepare_volume("voda")
        made = Stage(local, there)
        try:
            yield made
        finally:
            made.close()
