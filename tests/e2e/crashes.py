"""Ranks that lose one of them in the middle of a collective, in the order of events that is hardest on Gloo.

Of three ranks one is stopped (SIGSTOP) and one killed. Where the third then fails on the dead one's connection, the
stopped one goes on, and its data arrives for a collective that is no more. Both that live leave their world.

Or the stopped one had not yet asked for that data when it hears of the end: it then comes for what is asked for next.
In one more try the ranks that live are at something else, and Horovod has ended by itself when they come to sum again.

Run as ``python -m tests.e2e.crashes TRIES``: a line of JSON on stdout, ``{"forced": in how many tries it came to that
order, "late": in how many a rank had not left within half of Gloo's limit of 30 s, "died": in how many one ended that
nobody had killed}``.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import traceback
from dataclasses import dataclass
from typing import Any

from voda_flows.runtime.session_world import HorovodWorld, WorldBroken

SIZE = 3
#: By turns: many segments of a ring, so that a crash meets some of them under way; few, so that it meets a beginning.
NUM_ELEMENTS = (1_000_000, 20_000)
START_LIMIT_S = 60.0
FAIL_LIMIT_S = 0.3  # a rank that has not failed by then waits for the stopped one: not the order that is wanted
LEAVE_LIMIT_S = 15.0  # half of Gloo's own limit
SETTLE_S = 0.1
REST_S = 1.0  # Horovod asks who is ready every millisecond: it ends long before


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a rank is told.

    Attributes:
        rank: Which it is.
        port: The rendezvous's.
        said: Descriptor to speak to.
        gate: Descriptor to wait at.
        num_elements: Of what is summed.
        at_rest: Whether it waits at the gate after the first sum, instead of after the failure.
    """

    rank: int
    port: int
    said: int
    gate: int
    num_elements: int
    at_rest: bool


class Ranks:
    """Three ranks that sum until one of them is gone; what they say is ``<rank> <word>``, a line each."""

    def __init__(self, port: int, num_elements: int, *, at_rest: bool = False) -> None:
        self._said, said = os.pipe()
        self._rest = b""
        self._all_ended = False
        gates = [os.pipe() for _ in range(SIZE)]
        self._gates = [gate[1] for gate in gates]
        self.pids = [
            _fork(Part(rank=rank, port=port, said=said, gate=gate, num_elements=num_elements, at_rest=at_rest))
            for rank, (gate, _) in enumerate(gates)
        ]
        os.close(said)
        for gate, _ in gates:
            os.close(gate)

    def hear(self, limit_s: float) -> tuple[int, str] | None:
        """The next word of any rank, None when none comes in time, or none is left to speak."""
        while b"\n" not in self._rest:
            if not select.select([self._said], [], [], limit_s)[0]:
                return None
            piece = os.read(self._said, 4096)
            if not piece:
                self._all_ended = True
                return None
            self._rest += piece
        line, self._rest = self._rest.split(b"\n", 1)
        rank, word = line.decode().split()
        return int(rank), word

    def signal(self, rank: int, number: int) -> None:
        """Send a rank a signal."""
        os.kill(self.pids[rank], number)

    def open_gates(self) -> None:
        """Have those that failed leave their world, and those that rest go on."""
        for gate in self._gates:
            os.write(gate, b".")

    def died(self, killed: int) -> bool:
        """Whether a rank has ended that nobody killed, by a signal or with an error."""
        mode = os.WEXITED | os.WNOWAIT | (0 if self._all_ended else os.WNOHANG)
        ends = [os.waitid(os.P_PID, pid, mode) for rank, pid in enumerate(self.pids) if rank != killed]
        return any(end is not None and end.si_status != 0 for end in ends)

    def end(self) -> None:
        """End all and close what was opened."""
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)  # one that has ended stays until it is waited for
            os.waitpid(pid, 0)
        for descriptor in [self._said, *self._gates]:
            os.close(descriptor)


def _fork(part: Part) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _train(part)
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    return pid


def _train(part: Part) -> None:
    import torch

    rank, said, gate = part.rank, part.said, part.gate
    os.environ.update(
        HOROVOD_RANK=str(rank), HOROVOD_SIZE=str(SIZE), HOROVOD_LOCAL_RANK=str(rank), HOROVOD_LOCAL_SIZE=str(SIZE),
        HOROVOD_CROSS_RANK="0", HOROVOD_CROSS_SIZE="1", HOROVOD_HOSTNAME="localhost",
        HOROVOD_CONTROLLER="gloo", HOROVOD_CPU_OPERATIONS="gloo", HOROVOD_GLOO_IFACE="lo",
        HOROVOD_GLOO_RENDEZVOUS_ADDR="127.0.0.1", HOROVOD_GLOO_RENDEZVOUS_PORT=str(part.port),
    )  # fmt: skip
    torch.set_num_threads(1)
    world = HorovodWorld()
    world.join()
    tensor = torch.ones(part.num_elements)
    try:
        world.add_up(tensor, "gradient")
        os.write(said, b"%d trains\n" % rank)
        if part.at_rest:
            os.read(gate, 1)
        while True:
            world.add_up(tensor, "gradient")
    except WorldBroken:
        os.write(said, b"%d failed\n" % rank)
        if not part.at_rest:
            os.read(gate, 1)
        world.leave()
        os.write(said, b"%d left\n" % rank)


@dataclass(frozen=True, slots=True)
class Try:
    """One crash.

    Attributes:
        forced: Whether it came to the order that is wanted.
        late: Whether one of the two that live had not left in time.
        died: Whether one of the two ended by itself.
    """

    forced: bool
    late: bool
    died: bool


def _one_try(dice: random.Random, port: int, num_elements: int) -> Try:
    killed, stopped, third = dice.sample(range(SIZE), SIZE)
    ranks = Ranks(port, num_elements)
    try:
        for _ in range(SIZE):
            assert ranks.hear(START_LIMIT_S) is not None, "a rank did not start"
        select.select([], [], [], dice.random() * SETTLE_S)
        ranks.signal(stopped, signal.SIGSTOP)
        select.select([], [], [], SETTLE_S)
        ranks.signal(killed, signal.SIGKILL)
        forced = ranks.hear(FAIL_LIMIT_S) == (third, "failed")
        ranks.signal(stopped, signal.SIGCONT)
        select.select([], [], [], SETTLE_S)
        ranks.open_gates()
        return _ended(ranks, killed, forced=forced)
    finally:
        ranks.end()


def _one_at_rest(port: int) -> Try:
    ranks = Ranks(port, min(NUM_ELEMENTS), at_rest=True)
    try:
        for _ in range(SIZE):
            assert ranks.hear(START_LIMIT_S) is not None, "a rank did not start"
        ranks.signal(0, signal.SIGKILL)
        select.select([], [], [], REST_S)
        ranks.open_gates()
        return _ended(ranks, 0, forced=False)
    finally:
        ranks.end()


def _ended(ranks: Ranks, killed: int, *, forced: bool) -> Try:
    have_left = _all_left(ranks)
    died = ranks.died(killed)
    return Try(forced=forced, late=not have_left and not died, died=died)


def _all_left(ranks: Ranks) -> bool:
    left = 0
    while left < SIZE - 1:
        heard = ranks.hear(LEAVE_LIMIT_S)
        if heard is None:
            return False
        left += heard[1] == "left"
    return True


def _serve() -> tuple[Any, int]:
    from horovod.runner.common.util.hosts import HostInfo, get_host_assignments
    from horovod.runner.http.http_server import RendezvousServer

    server = RendezvousServer()
    port = server.start()
    server.init(get_host_assignments([HostInfo("localhost", SIZE)], SIZE))
    return server, port


def main() -> None:
    """Try as often as asked."""
    import horovod.torch  # noqa: F401 - the ranks are forks of this process, so that they start fast

    dice = random.Random(4)
    server, port = _serve()
    tries = [_one_at_rest(port)]
    server.stop()
    for number in range(int(sys.argv[1])):
        server, port = _serve()
        tries.append(_one_try(dice, port, NUM_ELEMENTS[number % len(NUM_ELEMENTS)]))
        server.stop()
    counted = {what: sum(getattr(one, what) for one in tries) for what in ("forced", "late", "died")}
    sys.stdout.write(json.dumps(counted) + "\n")


if __name__ == "__main__":
    main()
