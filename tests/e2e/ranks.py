"""Ranks as plain processes: what an agent and a driver do for a session, reduced to the socket and a fixed world.

`start` runs a script in `size` processes, joined by real Horovod (Gloo) where there are several, and talks with each
over its socket as docs/contracts.md, section 12 says.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from horovod.runner.common.util.hosts import HostInfo, get_host_assignments
from horovod.runner.gloo_run import create_run_env_vars, create_slot_env_vars
from horovod.runner.http.http_server import RendezvousServer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

REPOSITORY = Path(__file__).parents[2]
END_S = 60.0

Message = dict[str, Any]


@dataclass
class Rank:
    """One process and what it said."""

    process: subprocess.Popen[str]
    connection: socket.socket
    messages: list[Message] = field(default_factory=list)
    listener: threading.Thread | None = None

    def tell(self, kind: str, **fields: object) -> None:
        """Send it a message, as its agent would."""
        self.connection.sendall((json.dumps({"type": kind, **fields}) + "\n").encode())

    def said(self, kind: str) -> list[Message]:
        """Its messages of one type, in order."""
        return [message for message in self.messages if message["type"] == kind]


def run(
    command: Sequence[str],
    size: int,
    environment: Mapping[str, str],
    on_message: Callable[[Rank, Message], None] = lambda _rank, _message: None,
) -> list[Rank]:
    """Run `python *command` as a world of `size` ranks until all have ended.

    Args:
        command: arguments of the interpreter.
        size: ranks.
        environment: variables on top of this process's own.
        on_message: called for each message, in the order of each rank, to answer it.

    Returns:
        The ranks, their output in `process.stdout` read already.
    """
    server = RendezvousServer()
    port = server.start()
    plan = get_host_assignments([HostInfo("w0", size)], size)
    server.init(plan)
    try:
        worlds = [
            {**create_run_env_vars("127.0.0.1", ["lo"], port), **create_slot_env_vars(slot), "VODA_WORLD": "horovod"}
            for slot in plan
        ]
        ranks = [_start(command, {**environment, **world}, on_message) for world in worlds]
        for rank in ranks:
            rank.process.wait(END_S)
            assert rank.listener is not None
            rank.listener.join(END_S)
            rank.connection.close()
        return ranks
    finally:
        server.stop()


def _start(
    command: Sequence[str], environment: Mapping[str, object], on_message: Callable[[Rank, Message], None]
) -> Rank:
    here, there = socket.socketpair()
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    variables = {**os.environ, **threads, **environment, "VODA_RANK_FD": there.fileno(), "PYTHONPATH": REPOSITORY}
    process = subprocess.Popen(
        [sys.executable, *command],
        env={name: str(value) for name, value in variables.items()},
        pass_fds=[there.fileno()],
        cwd=REPOSITORY,
        text=True,
    )
    there.close()
    rank = Rank(process, here)
    rank.listener = threading.Thread(target=_listen, args=(rank, on_message), daemon=True)
    rank.listener.start()
    return rank


def _listen(rank: Rank, on_message: Callable[[Rank, Message], None]) -> None:
    with rank.connection.makefile("r", encoding="utf-8") as lines:
        for line in lines:
            message = json.loads(line)
            rank.messages.append(message)
            if message["type"] == "ready":
                rank.tell("join")
            on_message(rank, message)
