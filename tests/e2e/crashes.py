"""Ranks that lose one of them in the middle of a collective, in the order of events that is hardest on Gloo.

Of three ranks one is stopped (SIGSTOP) and one killed. Where the third then fails on the dead one's connection, the
stopped one goes on, and its data arrives for a collective that is no more. Both that live leave their world.

Run as ``python -m tests.e2e.crashes TRIES``: a line of JSON on stdout, ``{"forced": in how many tries it came to that
order, "late": in how many a rank had not left within half of Gloo's limit of 30 s}``.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
from collections.abc import Callable
from typing import Any

from voda_flows.runtime.session_world import HorovodWorld, WorldBroken

SIZE = 3
NUM_ELEMENTS = 1_000_000  # many segments of a ring, so that a crash meets some of them under way
START_LIMIT_S = 60.0
FAIL_LIMIT_S = 0.3  # a rank that has not failed by then waits for the stopped one: not the order that is wanted
LEAVE_LIMIT_S = 15.0  # half of Gloo's own limit
SETTLE_S = 0.1


class Ranks:
    """Three ranks that sum until one of them is gone; what they say is ``<rank> <word>``, a line each."""

    def __init__(self, port: int) -> None:
        self._said, said = os.pipe()
        self._rest = b""
        gates = [os.pipe() for _ in range(SIZE)]
        self._gates = [gate[1] for gate in gates]
        self.pids = [_fork(_train, rank, port, said, gates[rank][0]) for rank in range(SIZE)]
        os.close(said)
        for gate, _ in gates:
            os.close(gate)

    def hear(self, limit_s: float) -> tuple[int, str] | None:
        """The next word of any rank, None when none comes in time."""
        while b"\n" not in self._rest:
            if not select.select([self._said], [], [], limit_s)[0]:
                return None
            piece = os.read(self._said, 4096)
            if not piece:
                return None
            self._rest += piece
        line, self._rest = self._rest.split(b"\n", 1)
        rank, word = line.decode().split()
        return int(rank), word

    def signal(self, rank: int, number: int) -> None:
        """Send a rank a signal."""
        os.kill(self.pids[rank], number)

    def open_gates(self) -> None:
        """Have those that failed leave their world."""
        for gate in self._gates:
            os.write(gate, b".")

    def end(self) -> None:
        """End all and close what was opened."""
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)  # one that has ended stays until it is waited for
            os.waitpid(pid, 0)
        for descriptor in [self._said, *self._gates]:
            os.close(descriptor)


def _fork(rank: Callable[[int, int, int, int], None], *with_: int) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            rank(*with_)
        finally:
            os._exit(0)
    return pid


def _train(rank: int, port: int, said: int, gate: int) -> None:
    import torch

    os.environ.update(
        HOROVOD_RANK=str(rank), HOROVOD_SIZE=str(SIZE), HOROVOD_LOCAL_RANK=str(rank), HOROVOD_LOCAL_SIZE=str(SIZE),
        HOROVOD_CROSS_RANK="0", HOROVOD_CROSS_SIZE="1", HOROVOD_HOSTNAME="localhost",
        HOROVOD_CONTROLLER="gloo", HOROVOD_CPU_OPERATIONS="gloo", HOROVOD_GLOO_IFACE="lo",
        HOROVOD_GLOO_RENDEZVOUS_ADDR="127.0.0.1", HOROVOD_GLOO_RENDEZVOUS_PORT=str(port),
    )  # fmt: skip
    torch.set_num_threads(1)
    world = HorovodWorld()
    world.join()
    tensor = torch.ones(NUM_ELEMENTS)
    try:
        world.add_up(tensor, "gradient")
        os.write(said, b"%d trains\n" % rank)
        while True:
            world.add_up(tensor, "gradient")
    except WorldBroken:
        os.write(said, b"%d failed\n" % rank)
        os.read(gate, 1)
        world.leave()
        os.write(said, b"%d left\n" % rank)


def _one_try(dice: random.Random, port: int) -> tuple[bool, bool]:
    """One crash: whether it came to the order that is wanted, and whether both that live left in time."""
    killed, stopped, third = dice.sample(range(SIZE), SIZE)
    ranks = Ranks(port)
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
        return forced, _all_left(ranks)
    finally:
        ranks.end()


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
    forced = late = 0
    for _ in range(int(sys.argv[1])):
        server, port = _serve()
        in_order, in_time = _one_try(dice, port)
        server.stop()
        forced += in_order
        late += not in_time
    sys.stdout.write(json.dumps({"forced": forced, "late": late}) + "\n")


if __name__ == "__main__":
    main()
