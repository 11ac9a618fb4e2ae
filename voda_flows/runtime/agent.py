"""The worker's agent: ``python -m voda_flows.runtime.agent``, the process of a worker pod.

It warms up, and only then listens on ``VODA_POD_IP:7070``: a pod whose port answers can join a running job at once.
It takes orders from the one driver of its job and segment, starts ranks, passes messages between them and the driver,
and tells their ends. It leaves with 0 when the driver says goodbye, and with 1 when the driver is gone.

One thread, one loop: the process must be able to fork at any time.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, Callable

from voda_flows.runtime.agent_peer import Peer
from voda_flows.runtime.agent_rank import RankOrder, RankProcess, start_rank
from voda_flows.runtime.agent_warm import Warmth, prepare_threads, warm
from voda_flows.runtime.agent_watch import Watch
from voda_flows.runtime.channel import read_key
from voda_flows.runtime.environment import AGENT_PORT, AgentEnvironment, read_agent
from voda_flows.runtime.errors import BadMessage, Refused, RuntimeFault
from voda_flows.runtime.lines import Message, decode, encode
from voda_flows.runtime.log import open_log

if TYPE_CHECKING:
    from voda_flows.runtime.channel import Party

LOG = open_log("agent")
MAX_STRANGERS = 8  # connections that have not yet proved anything
PROOF_LIMIT_S = 5.0
TICK_S = 0.5  # how often time limits are looked at
_BACKLOG = 16


class Agent:
    """The agent's state: its strangers, its driver, its ranks.

    Invariant: at most one driver; every rank was ordered by it and is dead when it has gone.
    """

    def __init__(self, environment: AgentEnvironment, key: bytes, warmth: Warmth) -> None:
        self._environment, self._key, self._warmth = environment, key, warmth
        self._watch = Watch()
        self._strangers: list[Peer] = []
        self._driver: Peer | None = None
        self._past_drivers: set[str] = set()
        self._alone_since_s: float | None = None  # set once a driver was there and has gone
        self._ranks: dict[tuple[str, int], RankProcess] = {}
        self._terminated: list[bool] = []  # SIGTERMs; looked at in the loop, where no message is half sent
        self._draining = False
        self._exit: int | None = None
        self._orders: dict[str, Callable[[Message], None]] = {
            "run": self._run, "tell": self._tell, "removed": self._removed,
            "kill": self._kill, "ping": self._ping, "bye": self._bye,
        }  # fmt: skip

    def serve(self, listener: socket.socket) -> int:
        """Live until there is no more to do; the exit code."""
        wake, woken = socket.socketpair()
        for end in (wake, woken):
            end.setblocking(False)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(signal.SIGTERM, lambda _number, _frame: self._terminated.append(True))
        self._watch.begin(listener, lambda: self._accept(listener))
        self._watch.begin(wake, lambda: self._woken(wake))
        self._own = (listener.fileno(), wake.fileno(), woken.fileno(), self._watch.fileno())
        while self._exit is None:
            self._watch.turn(TICK_S)
            self._keep_limits()
        self._end_ranks()
        return self._exit

    # connections

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, (address, _port) = listener.accept()
        except OSError:
            return  # it left before it was let in
        peer = Peer(connection, address, time.monotonic())
        if len(self._strangers) >= MAX_STRANGERS:
            self._dismiss(self._strangers[0], "too many connections that prove nothing")
        self._strangers.append(peer)
        self._watch.begin(connection, lambda: self._hear(peer))
        try:
            peer.greet(self._environment, self._key)
        except OSError:
            self._dismiss(peer, "it left at once")

    def _hear(self, peer: Peer) -> None:
        try:
            lines = peer.receive(time.monotonic())
            if lines is None:
                self._dismiss(peer, "")
                return
            for line in lines:
                self._take(peer, line)
        except (RuntimeFault, OSError) as fault:  # OSError: it left while it was answered
            self._dismiss(peer, str(fault))

    def _take(self, peer: Peer, line: bytes) -> None:
        if peer.party is None:
            party, answer = peer.prove(line)
            self._let_in(peer, party, answer)
        elif peer is self._driver:
            self._obey(peer.open(line))

    def _obey(self, message: Message) -> None:
        order = self._orders.get(message["type"])
        if order is None:
            LOG.warning("unknown order type=%s", message["type"])
            return
        try:
            order(message)
        except (KeyError, TypeError, ValueError) as fault:
            raise BadMessage(f"order {message['type']!r} lacks what it needs: {fault!r}") from fault

    def _let_in(self, peer: Peer, party: Party, answer: bytes) -> None:
        """Make a proven peer the driver, unless it is late or comes twice."""
        uid = party.driver_uid
        if uid in self._past_drivers:
            raise Refused(f"driver {uid!r} has been followed by another")
        if self._driver is not None and self._driver.party == party:
            raise Refused(f"driver {uid!r} is connected already")
        if self._driver is not None:
            self._past_drivers.add(self._driver.party.driver_uid if self._driver.party else "")
            self._dismiss(self._driver, f"followed by driver {uid!r}")
        self._strangers.remove(peer)
        self._driver, self._alone_since_s = peer, None
        peer.connection.sendall(answer)
        LOG.info("driver uid=%s address=%s", uid, peer.address)
        if self._draining:
            peer.send({"type": "leaving"})

    def _dismiss(self, peer: Peer, reason: str) -> None:
        if reason:
            LOG.warning("refused address=%s reason=%s", peer.address, reason)
        self._watch.end(peer.connection)
        peer.close()
        if peer in self._strangers:
            self._strangers.remove(peer)
        if peer is self._driver:
            LOG.info("driver gone, its ranks are ended ranks=%d", len(self._ranks))
            self._driver, self._alone_since_s = None, time.monotonic()
            self._end_ranks()

    # orders of the driver

    def _run(self, message: Message) -> None:
        order = RankOrder(
            host=str(message["host"]),
            slot=int(message["slot"]),
            command=str(message["command"]),
            program=self._warmth.program if message["command"] == self._environment.command else None,
            environment={str(name): str(value) for name, value in dict(message["environment"]).items()},
        )
        rank = start_rank(order, self._descriptors())
        self._ranks[order.host, order.slot] = rank
        self._watch.begin(rank.connection, lambda: self._pass_on(rank))
        LOG.info("rank host=%s slot=%d pid=%d warm=%s", order.host, order.slot, rank.pid, order.program is not None)

    def _tell(self, message: Message) -> None:
        rank = self._ranks.get((message["host"], message["slot"]))
        if rank is not None:
            try:
                rank.connection.sendall(encode(message["message"]))
            except OSError:
                LOG.warning("rank does not listen host=%s slot=%d", rank.host, rank.slot)

    def _removed(self, message: Message) -> None:
        for rank in self._ranks_of(message):
            rank.removed = True

    def _kill(self, message: Message) -> None:
        for rank in self._ranks_of(message):
            rank.kill()

    def _ping(self, _message: Message) -> None:
        if self._driver is not None:
            self._driver.send({"type": "pong"})

    def _bye(self, _message: Message) -> None:
        LOG.info("goodbye of the driver")
        self._exit = 0

    def _ranks_of(self, message: Message) -> list[RankProcess]:
        return [rank for rank in self._ranks.values() if rank.host == message["host"]]

    # ranks

    def _descriptors(self) -> list[int]:
        """What a fork must not keep open: a rank that held a connection would hide the agent's end from its peer."""
        peers = [*self._strangers, *([self._driver] if self._driver else [])]
        return [
            *self._own,
            *(peer.connection.fileno() for peer in peers),
            *(rank.connection.fileno() for rank in self._ranks.values() if rank.connection.fileno() >= 0),
        ]

    def _pass_on(self, rank: RankProcess) -> None:
        """Forward what a rank says; at the end of its socket stop listening (its exit follows)."""
        try:
            received = rank.connection.recv(65_536)
        except OSError:
            received = b""
        if not received:
            self._watch.end(rank.connection)
            rank.connection.close()
            return
        try:
            for line in rank.lines.feed(received):
                self._report({"type": "from", "host": rank.host, "slot": rank.slot, "message": decode(line)})
        except BadMessage as fault:
            LOG.warning("rank speaks nonsense, ended host=%s slot=%d fault=%s", rank.host, rank.slot, fault)
            rank.kill()

    def _report(self, message: Message) -> None:
        if self._driver is not None:
            self._driver.send(message)

    def _reap(self) -> None:
        for key, rank in list(self._ranks.items()):
            code = rank.reap()
            if code is None:
                continue
            while rank.connection.fileno() >= 0:
                self._pass_on(rank)
            del self._ranks[key]
            LOG.info("rank ended host=%s slot=%d code=%d removed=%s", rank.host, rank.slot, code, rank.removed)
            self._report({"type": "exited", "host": rank.host, "slot": rank.slot, "code": rank.meaning(code)})

    def _end_ranks(self) -> None:
        for rank in self._ranks.values():
            rank.kill()
        for rank in self._ranks.values():
            os.waitpid(rank.pid, 0)
            self._watch.end(rank.connection)
            rank.connection.close()
        self._ranks.clear()

    # time and signals

    def _woken(self, wake: socket.socket) -> None:
        wake.recv(4096)
        self._reap()
        if self._terminated and not self._draining:
            self._drain()

    def _drain(self) -> None:
        """SIGTERM: the pod is to go. The driver takes the worker out of the world first, where there is one."""
        self._draining = True
        if self._driver is None:
            self._exit = 0
        else:
            self._driver.send({"type": "leaving"})

    def _keep_limits(self) -> None:
        now_s = time.monotonic()
        for peer in [peer for peer in self._strangers if now_s - peer.heard_s > PROOF_LIMIT_S]:
            self._dismiss(peer, f"no proof within {PROOF_LIMIT_S:g} s")
        limit_s = self._environment.timeout_s
        if self._driver is not None and now_s - self._driver.heard_s > limit_s:
            self._dismiss(self._driver, f"silent for {limit_s:g} s")
        if self._exit is None and self._driver is None:
            self._exit = self._leave_alone(now_s)

    def _leave_alone(self, now_s: float) -> int | None:
        """The exit code of an agent without a driver when it is time to leave."""
        if (self._environment.segment_folder / "end.json").exists():
            LOG.info("the segment has ended")
            return 0
        if self._alone_since_s is not None and now_s - self._alone_since_s > self._environment.timeout_s:
            LOG.error("no driver for %g s", self._environment.timeout_s)
            return 1
        return None


def listen(address: str, port: int) -> socket.socket:
    """The socket on which drivers are awaited."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(_BACKLOG)
    return listener


def _leave_when_not_wanted(environment: AgentEnvironment) -> None:
    """Imports take seconds, and nobody needs them when the segment ends meanwhile: leave then, and on SIGTERM too.

    By a timer, not a thread: a process with threads cannot fork warm ranks.
    """

    def look(_number: int, _frame: object) -> None:
        if (environment.segment_folder / "end.json").exists():
            os._exit(0)

    signal.signal(signal.SIGTERM, lambda _number, _frame: os._exit(0))
    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)


def main() -> int:
    """Warm up, listen, serve; the exit code."""
    os.environ.update(prepare_threads(os.environ))
    try:
        environment = read_agent(os.environ)
        key = read_key(environment.key_file)
    except RuntimeFault as fault:
        LOG.error("cannot start: %s", fault)  # noqa: TRY400 - the message says it all
        return 1
    _leave_when_not_wanted(environment)
    warmth = warm(environment, LOG)
    signal.setitimer(signal.ITIMER_REAL, 0)
    LOG.info("warm seconds=%.2f cold_because=%s", warmth.took_s, warmth.why_cold or "-")
    return Agent(environment, key, warmth).serve(listen(environment.pod_ip, AGENT_PORT))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # taking down what was imported would hold the GPU for up to seconds more
