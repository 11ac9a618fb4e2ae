"""A store whose network loses, repeats nothing and lies: whatever is done is done once, and what is shown comes right.

The server is real; what stands between is a transport that fails in the ways that networks, proxies and restarting
servers do, before a request arrives, after it was carried out, and in the middle of a watch.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from scheduler_core.errors import Conflict
from tests.contract.bodies import secret, workflow
from tests.contract.conftest import Bench, cluster
from voda_flows.kube.api import Api
from voda_flows.kube.connection import HttpTransport
from voda_flows.kube.retrying import Patience
from voda_flows.kube.store import KubeStore, Scope
from voda_flows.kube.transport import Answer, AnswerLost, NotSent, Request, Stream
from voda_flows.objects import Object

pytestmark = pytest.mark.cluster

SOON_S = 60.0
WRITERS, WRITES = 4, 15
CONFLICT = b'{"kind":"Status","reason":"Conflict","message":"the object has been modified","code":409}'


@dataclass(frozen=True, slots=True, kw_only=True)
class CutStream:
    """A watch that is cut off after some lines."""

    stream: Stream
    lines_left: int

    @property
    def answer(self) -> Answer:
        """See ``Stream.answer``."""
        return self.stream.answer

    def lines(self) -> Iterator[bytes]:
        """See ``Stream.lines``."""
        for number, line in enumerate(self.stream.lines()):
            if number >= self.lines_left:
                raise AnswerLost("cut off")
            yield line

    def close(self) -> None:
        """See ``Stream.close``."""
        self.stream.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileTransport:
    """A transport that fails about one request in three, and cuts every watch off."""

    inner: HttpTransport
    rng: random.Random

    @property
    def server(self) -> str:
        """See ``Transport.server``."""
        return self.inner.server

    def send(self, request: Request) -> Answer:
        """See ``Transport.send``."""
        fate = self.rng.randrange(20)
        if fate == 0:
            raise NotSent("refused")
        if fate == 1:
            raise AnswerLost("reset before it arrived")
        if fate == 2:
            return Answer(status=429, headers={"retry-after": "0"})
        if fate == 3:
            return Answer(status=503)
        if fate == 4 and request.method in ("PATCH", "PUT", "POST"):
            return Answer(status=409, body=CONFLICT)
        answer = self.inner.send(request)
        if fate == 5:
            raise AnswerLost("reset after it was done")
        if fate == 6:
            return Answer(status=504)
        return answer

    def stream(self, request: Request, silence_s: float) -> Stream:
        """See ``Transport.stream``."""
        if self.rng.randrange(4) == 0:
            raise NotSent("refused")
        return CutStream(stream=self.inner.stream(request, silence_s), lines_left=self.rng.randrange(6))

    def close(self) -> None:
        """See ``Transport.close``."""
        self.inner.close()


def hostile_store(bench: Bench, seed: int) -> KubeStore:
    """A store over such a network, which is patient enough to be answered in the end."""
    transport = HostileTransport(inner=cluster(), rng=random.Random(seed))
    scope = Scope(namespaces=(bench.one, bench.two), watched=("Secret", "Workflow"))
    return KubeStore(Api(transport, Patience(limit_s=120.0, first_s=0.001, most_s=0.01)), scope)


@pytest.fixture(params=["cluster"])
def bench(bench: Bench) -> Bench:
    """The cluster only: local mode has no network."""
    return bench


@dataclass(slots=True)
class Turns:
    """Threads that take turns at one object by guarded patches, and what went wrong.

    Attributes:
        namespace: Where the object is.
        taken: How many turns there were.
        faults: What must not be.
        inside: Who believes to have the turn.
    """

    namespace: str
    taken: int = 0
    faults: list[str] = field(default_factory=list)
    inside: set[str] = field(default_factory=set)

    def play(self, store: KubeStore, me: str) -> None:
        """Take so many turns."""
        for _ in range(WRITES):
            self._take(store, me)
            self.inside.add(me)
            self.taken += 1
            if self.inside != {me}:
                self.faults.append(f"{me} has the turn, and so has one of {sorted(self.inside)}")
            self.inside.discard(me)
            self._give(store, me)

    def _take(self, store: KubeStore, me: str) -> None:
        while True:
            revision, seen = store.revision(), store.get("Secret", self.namespace, "turn")
            holder = seen["metadata"]["annotations"]["holder"]
            if holder == me:
                self.faults.append(f"{me} was told that it has not the turn, and it has")
                return
            if not holder and self._wrote(store, seen, me):
                return
            store.wait(revision, 1.0)

    def _give(self, store: KubeStore, me: str) -> None:
        while (seen := store.get("Secret", self.namespace, "turn"))["metadata"]["annotations"]["holder"] == me:
            self._wrote(store, seen, "")

    def _wrote(self, store: KubeStore, seen: Object, holder: str) -> bool:
        change, version = {"metadata": {"annotations": {"holder": holder}}}, seen["metadata"]["resourceVersion"]
        try:
            store.merge_patch("Secret", self.namespace, "turn", change, resource_version=version)
        except Conflict:
            return False
        return True


def test_guarded_writes_exclude_each_other(bench: Bench) -> None:
    """Whoever is told that it wrote did so, alone; whoever is told that it did not, did not."""
    bench.store.create(secret("turn", bench.one, annotations={"holder": ""}))
    stores = [hostile_store(bench, seed) for seed in range(WRITERS)]
    turns = Turns(bench.one)
    threads = [
        threading.Thread(target=turns.play, args=(store, f"writer-{number}")) for number, store in enumerate(stores)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.close()

    assert turns.faults == []
    assert turns.taken == WRITERS * WRITES


def test_generated_objects_are_made_once(bench: Bench) -> None:
    """As many as were asked for, though answers were lost after they were made."""
    store, made = hostile_store(bench, 7), set[str]()
    while len(made) < 40:
        try:
            made.add(store.create(workflow(bench.one, generateName="job-"))["metadata"]["name"])
        except Conflict:  # said by the network, before anything was done
            continue
    store.close()

    assert {body["metadata"]["name"] for body in bench.store.list("Workflow", bench.one)} == made


def test_what_is_shown_comes_right(bench: Bench) -> None:
    """Whatever happens to watches, the snapshot is what there is, once the world rests."""
    store = hostile_store(bench, 11)
    for number in range(50):
        name = f"s{number % 10}"
        store.snapshot("Secret")
        if number % 20 < 10:
            bench.store.create(secret(name, bench.one, annotations={"n": str(number)}))
        elif number % 3:
            bench.store.delete("Secret", bench.one, name)
        else:
            bench.store.merge_patch("Secret", bench.one, name, {"metadata": {"annotations": {"n": str(number)}}})
            bench.store.delete("Secret", bench.one, name)
    end_s = time.monotonic() + SOON_S
    while list(store.snapshot("Secret").values()) != bench.store.list("Secret", bench.one):
        if time.monotonic() > end_s:
            pytest.fail(f"expected the snapshot to come right within {SOON_S:g} s")
        store.wait(store.revision(), 0.5)
    store.close()
