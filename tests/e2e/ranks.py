"""Ranks as plain processes: what an agent and a driver do for a session, reduced to the socket and a fixed world.

`run` trains with a workload in `size` processes, joined by real Horovod (Gloo), and talks with each over its socket
as docs/contracts.md, section 12 says. The processes are forks of one that has imported everything, as an agent's are.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import runpy
import socket
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from horovod.runner.common.util.hosts import HostInfo, get_host_assignments
from horovod.runner.gloo_run import create_run_env_vars, create_slot_env_vars
from horovod.runner.http.http_server import RendezvousServer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

END_S = 60.0
WARM = ["torch", "torch._dynamo", "horovod.torch", "sklearn.datasets", "voda_flows.runtime.session"]

Message = dict[str, Any]
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(WARM)


@dataclass
class Rank:
    """One process and what it said."""

    process: BaseProcess
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
    """Run a module as a world of `size` ranks until all have ended.

    Args:
        command: the module, and its arguments.
        size: ranks.
        environment: variables on top of this process's own.
        on_message: called for each message, in the order of each rank, to answer it.

    Returns:
        The ended ranks.
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
            rank.process.join(END_S)
            assert rank.listener is not None
            rank.listener.join(END_S)
            rank.connection.close()
        return ranks
    finally:
        server.stop()


def _start(
    command: Sequence[str], environment: Mapping[str, object], on_message: Callable[[Rank, Message], None]
) -> Rank:
    here, there = _context.Pipe()
    texts = {name: str(value) for name, value in environment.items()}
    process = _context.Process(target=_be_rank, args=(list(command), texts, there), daemon=True)
    process.start()
    there.close()
    rank = Rank(process, socket.socket(fileno=os.dup(here.fileno())))
    here.close()
    rank.listener = threading.Thread(target=_listen, args=(rank, on_message), daemon=True)
    rank.listener.start()
    return rank


def _be_rank(command: list[str], environment: dict[str, str], connection: Connection) -> None:
    import torch

    torch.set_num_threads(1)  # sums are the same bits only when they are cut the same way
    random.seed(int(environment["VODA_SEGMENT"]))  # a fork seeds it by chance; each segment finds it another way
    os.environ.update(environment, VODA_RANK_FD=str(os.dup(connection.fileno())))
    connection.close()
    sys.argv = command
    runpy.run_module(command[0], run_name="__main__", alter_sys=True)


def _listen(rank: Rank, on_message: Callable[[Rank, Message], None]) -> None:
    with rank.connection.makefile("r", encoding="utf-8") as lines:
        for line in lines:
            message = json.loads(line)
            rank.messages.append(message)
            if message["type"] == "ready":
                rank.tell("join")
            on_message(rank, message)
