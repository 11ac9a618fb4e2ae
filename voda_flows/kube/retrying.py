"""The one place where requests are repeated: how often, how soon, and for how long.

The first repetition comes soon, as most faults are over at once (a connection that the server had closed, a proxy's
hiccup); then the pauses double. A server that names a time (``Retry-After``) is obeyed. A call that gets no answer
ends, with all its tries and looks, nine seconds after it began: the scheduler renews its Lease of fifteen seconds
before an action where it is five seconds old (``control/held.py``), so a holder who gets no answer finds out before
anybody may take its place. An answer that has begun may take its time, as long as it goes on: lists are long.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus

from scheduler_core.errors import Unreachable
from voda_flows.kube.transport import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long requests are repeated.

    Attributes:
        limit_s: No repetition begins later than this after the first request, seconds.
        last_s: How much later the last of them is given up, answered or not, seconds.
        first_s: Pause before the first repetition, seconds.
        most_s: Longest pause of ours, seconds; the server may name a longer one.
        sleep: Waits so many seconds.
        clock: Seconds on a clock that never goes back.
    """

    limit_s: float = 6.0
    last_s: float = 3.0
    first_s: float = 0.05
    most_s: float = 1.0
    sleep: Callable[[float], object] = time.sleep
    clock: Callable[[], float] = time.monotonic


@dataclass(slots=True)
class Attempts:
    """The tries of one request, and of whatever belongs to it.

    Iterating gives the numbers of the tries, with the pauses between them. What failed is said with ``note`` before
    the next try.

    Raises:
        Unreachable: The time is over; says what was found last.
    """

    what: str
    patience: Patience
    server: str
    _fault: str = field(default="no answer", init=False)
    _asked_s: float = field(default=0.0, init=False)
    _end_s: float = field(default=0.0, init=False)
    _tries: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[int]:
        """The numbers of the tries, from 0."""
        patience, pause_s, number = self.patience, self.patience.first_s, 0
        self._end_s = self._end_s or patience.clock() + patience.limit_s
        while True:
            yield number
            wait_s = max(self._asked_s, pause_s * random.uniform(0.75, 1.25))
            if patience.clock() + wait_s > self._end_s:
                raise self._over()
            patience.sleep(wait_s)
            pause_s, number = min(2 * pause_s, patience.most_s), number + 1

    def left_s(self) -> float:
        """How long the answer to one more request may be waited for, seconds; counts as a try."""
        left_s = self._end_s + self.patience.last_s - self.patience.clock()
        if left_s <= 0:
            raise self._over()
        self._tries += 1
        return left_s

    def _over(self) -> Unreachable:
        limit_s = self.patience.limit_s + self.patience.last_s
        return Unreachable(
            f"{self.what}: expected an answer of {self.server} within {limit_s:g} s, got {self._fault}"
            f" ({self._tries} tries); see whether the API server is up and reachable, then repeat"
        )

    def note(self, fault: str, asked_s: float = 0.0) -> None:
        """What became of this try, and how long the server asks to wait, seconds."""
        self._fault, self._asked_s = fault, asked_s


def is_busy(answer: Answer) -> bool:
    """Whether the server did nothing with a request because it has too much to do."""
    return answer.status == HTTPStatus.TOO_MANY_REQUESTS


def is_faulty(answer: Answer) -> bool:
    """Whether something went wrong in the server: the request may have been carried out, or not."""
    return answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR


def retry_after_s(answer: Answer) -> float:
    """How long the server asks to wait, seconds; 0 where it does not say (dates, which it never writes, count so)."""
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0


def said(answer: Answer) -> str:
    """What an answer that is no success says, in short."""
    found = answer.document()
    message = found.get("message") if isinstance(found, dict) else None
    text = str(message or answer.body[:200].decode(errors="replace").strip() or "nothing")
    return f"{answer.status}: {text[:500]}"
