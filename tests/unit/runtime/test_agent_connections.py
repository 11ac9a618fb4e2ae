"""What the agent does with its connections when several things happen at once."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from voda_flows.runtime.agent import Agent
from voda_flows.runtime.agent_warm import Warmth
from voda_flows.runtime.agent_watch import Watch
from voda_flows.runtime.channel import SEALED_LINE_BYTES, DriverHandshake, Party
from voda_flows.runtime.environment import AgentEnvironment, read_agent
from voda_flows.runtime.lines import LineBuffer

KEY = b"k" * 32


@pytest.fixture
def environment(tmp_path: Path) -> AgentEnvironment:
    """An agent's environment."""
    return read_agent({
        "VODA_JOB": "uid/train", "VODA_SEGMENT": "2", "VODA_WORKER": "w0", "VODA_POD_IP": "127.0.0.1",
        "VODA_KEY_FILE": "/etc/voda-key/key", "VODA_CHECKPOINT_ROOT": str(tmp_path),
    })  # fmt: skip


@pytest.mark.parametrize("is_reused", [False, True])
def test_a_connection_that_was_closed_a_moment_ago_is_not_acted_on(is_reused: bool) -> None:
    """A rank's end is seen by its exit and by its socket, both at once: the first one closes what the second is about.

    Nor is a new connection that got the closed one's descriptor taken for it.
    """
    watch, acts = Watch(), list[str]()
    pairs = {name: socket.socketpair() for name in ("first", "second")}
    later: list[tuple[socket.socket, socket.socket]] = []

    def act(name: str) -> None:
        acts.append(name)
        mine, _ = pairs["second" if name == "first" else "first"]
        watch.end(mine)
        mine.close()
        if is_reused:
            later.append(socket.socketpair())
            watch.begin(later[-1][0], lambda: acts.append("later"))

    for name, (mine, theirs) in pairs.items():
        watch.begin(mine, lambda name=name: act(name))  # type: ignore[misc]
        theirs.sendall(b"x")
    watch.turn(0.0)

    assert len(acts) == 1
    assert acts[0] in pairs


def test_a_driver_that_leaves_while_it_is_answered_leaves_the_agent_as_it_was(
    environment: AgentEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end is no end of the agent: the next driver is let in."""
    agent = Agent(environment, KEY, Warmth(program=None, took_s=0.0, why_cold="a test"))
    assert _meet(agent, environment, "d1", monkeypatch, leaves=True) == b""

    assert _meet(agent, environment, "d2", monkeypatch, leaves=False).startswith(b'{"type":"proved"')


def _meet(
    agent: Agent, environment: AgentEnvironment, uid: str, monkeypatch: pytest.MonkeyPatch, *, leaves: bool
) -> bytes:
    """What a driver gets for its proof; one that leaves has gone before it is answered."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as driver:
        driver.connect(listener.getsockname())
        agent._accept(listener)
        lines = LineBuffer(SEALED_LINE_BYTES)
        (hello,) = lines.feed(driver.recv(4096))
        party = Party(job=environment.job, segment=environment.segment, driver_uid=uid)
        driver.sendall(DriverHandshake(KEY, party, worker=environment.worker).answer(hello))
        (peer,) = agent._strangers
        if leaves:
            monkeypatch.setattr(peer, "connection", _Gone(peer.connection))
        agent._hear(peer)
        return b"" if leaves else driver.recv(4096)


class _Gone:
    """A connection whose other end goes before the answer comes."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.recv, self.close, self.fileno = connection.recv, connection.close, connection.fileno

    def sendall(self, _data: bytes) -> None:
        """Too late."""
        raise BrokenPipeError
