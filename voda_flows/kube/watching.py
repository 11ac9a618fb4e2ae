"""Keeps the cache of a kind up to date: one list, then a watch, in a thread of its own, for as long as the store lives.

A watch ends for many reasons, most of them harmless: its time is over, the server restarts, a proxy cuts it, the
version it goes on from is forgotten (410: list anew), or it goes silent without a word. Watches are short, and each
ends with a bookmark (the newest version that it covers), so a silent one is noticed within ``WATCH_S`` and a few
seconds, and hardly any must list anew.
"""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from scheduler_core.errors import Unreachable, VodaError
from voda_flows.kube.api import Api, Gone, plain
from voda_flows.kube.cache import Cache
from voda_flows.kube.resources import Resource
from voda_flows.kube.transport import AnswerLost, NotSent, Stream
from voda_flows.objects import Object

log = logging.getLogger(__name__)

#: How long the server keeps a watch open, and how much longer we wait for it to end, seconds.
WATCH_S: Final = 30
_GRACE_S = 5.0
#: Without contact for so long, what we know is too old to decide on, seconds.
STALE_S: Final = 60.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 5.0
_CLOSE_S = 5.0
_GONE = 410


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a watcher watches.

    Attributes:
        resource: The kind.
        namespace: Where, empty for everywhere.
    """

    resource: Resource
    namespace: str = ""

    def __str__(self) -> str:
        """For the log."""
        return f"{self.resource.plural}/{self.namespace or '*'}"


class Watcher:
    """Follows the objects of one kind in one namespace or in all.

    Args:
        place: What to watch.
        api: The server.
        cache: Where it is kept.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, place: Place, api: Api, cache: Cache, clock: Callable[[], float] = time.monotonic) -> None:
        self.place = place
        self._api = api
        self._cache = cache
        self._version = ""
        self._pause_s = 0.0
        self._fault = ""
        self._clock = clock
        self._contact_s = clock()
        self._stop = threading.Event()
        self._stream: Stream | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch-{place}", daemon=True)

    def start(self) -> None:
        """List all, then go on in a thread.

        Raises:
            VodaError: The list is refused, or the server cannot be reached.
        """
        self._list()
        self._thread.start()

    def check(self) -> None:
        """Make sure that what is known is not too old.

        Raises:
            Unreachable: There was no contact for too long; says why.
        """
        silent_s = self._clock() - self._contact_s
        if silent_s > STALE_S:
            raise Unreachable(
                f"watch {self.place}: expected news within {STALE_S:g} s, there was no contact for {silent_s:.0f} s: "
                f"{self._fault or 'the server is silent'}; see whether the API server is up and reachable"
            )

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        stream = self._stream
        if stream is not None:
            stream.close()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if not self._version:
                    self._list()
                self._watch()
            except Gone:
                self._version = ""
            except (NotSent, AnswerLost, VodaError) as fault:
                self._rest(str(fault))
            except Exception:  # whatever it is, a watcher that ends without a word would leave all blind
                log.exception("watch=%s failed, listing anew", self.place)
                self._version = ""
                self._rest("a fault of ours")

    def _list(self) -> None:
        found = self._api.list(self.place.resource, self.place.namespace)
        self._cache.listed(found.items, found.version, self.place.namespace)
        self._version = found.version
        self._note_contact()

    def _watch(self) -> None:
        """One watch, until it ends."""
        query = {
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
        }
        began_s = self._clock()
        stream = self._api.watch(self.place.resource, self.place.namespace, query, WATCH_S + _GRACE_S)
        self._stream = stream
        try:
            if not self._stop.is_set():
                for line in stream.lines():
                    self._take(line)
        finally:
            self._stream = None
            stream.close()
        if self._clock() - began_s < 1.0:  # a server that ends watches at once is not to be asked in a loop
            self._rest("the watch ended at once")
        else:
            self._note_contact()

    def _take(self, line: bytes) -> None:
        """One line of a watch: an event, a bookmark, or why it ends."""
        if not line.strip():
            return
        try:
            event = json.loads(line)
            kind, body = str(event["type"]), event["object"]
        except (ValueError, KeyError, TypeError) as torn:
            raise AnswerLost(f"a line of the watch is no event: {line[:80]!r}") from torn
        if kind == "ERROR":
            self._end(body)
        if kind != "BOOKMARK":
            self._cache.heard(kind, plain(body, self.place.resource))
        self._version = str(body["metadata"]["resourceVersion"])
        self._note_contact()

    def _end(self, status: Object) -> None:
        """Raise what a watch's last word means."""
        if status.get("code") == _GONE:
            raise Gone(str(status.get("message")))
        raise AnswerLost(f"the server ended the watch: {status.get('code')} {status.get('message')}")

    def _note_contact(self) -> None:
        self._contact_s, self._pause_s = self._clock(), 0.0
        if self._fault:
            log.info("watch=%s goes on", self.place)
            self._fault = ""

    def _rest(self, fault: str) -> None:
        """Wait a while, longer each time in a row; an outage is logged once."""
        if not self._fault and not self._stop.is_set():
            log.warning("watch=%s broken=%r", self.place, fault)
        self._fault = fault
        self._pause_s = min(max(2 * self._pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
        self._stop.wait(self._pause_s * random.uniform(0.75, 1.25))
