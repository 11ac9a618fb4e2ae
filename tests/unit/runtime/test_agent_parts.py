"""The agent's parts that need no other process: exits, environments, interfaces, warming up."""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path

import pytest

from voda_flows.runtime.agent_rank import RankOrder, RankProcess, start_rank
from voda_flows.runtime.agent_warm import prepare_threads
from voda_flows.runtime.environment import read_agent, read_driver
from voda_flows.runtime.errors import BadEnvironment
from voda_flows.runtime.interface import interface_of
from voda_flows.runtime.program import Program

AGENT = {
    "VODA_JOB": "uid/train", "VODA_SEGMENT": "2", "VODA_WORKER": "w0", "VODA_POD_IP": "127.1.0.5",
    "VODA_KEY_FILE": "/etc/voda-key/key", "VODA_CHECKPOINT_ROOT": "/voda/ns/uid/train",
}  # fmt: skip
DRIVER = {**AGENT, "VODA_POD_UID": "d1", "VODA_ALLOCATION_FILE": "/podinfo/allocation", "VODA_COMMAND": "python t.py"}


def test_an_agents_environment_is_read() -> None:
    """Names in ``VODA_WARM`` are separated by commas; what is optional has its default."""
    found = read_agent({**AGENT, "VODA_WARM": " numpy, ,a.b ", "VODA_AGENT_TIMEOUT": "2.5"})

    assert (found.warm, found.timeout_s, found.command) == (("numpy", "a.b"), 2.5, "")
    assert found.segment_folder == Path("/voda/ns/uid/train/segment-2")


def test_a_drivers_environment_is_read() -> None:
    """Empty text counts as not given, as a template's empty input would be."""
    found = read_driver({**DRIVER, "VODA_EPOCHS": "", "VODA_LAUNCHER": "", "VODA_RESTART_LIMIT": "0"})

    assert (found.epochs, found.launcher, found.restart_limit, found.progress_file) == (1, "horovod", 0, None)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"VODA_JOB": ""}, "VODA_JOB: expected text, got nothing"),
        ({"VODA_SEGMENT": "-1"}, "VODA_SEGMENT: expected a whole number, got '-1'"),
        ({"VODA_RESET_TIMEOUT": "0"}, "VODA_RESET_TIMEOUT: expected seconds above 0, got '0'"),
        ({"VODA_RESET_TIMEOUT": "soon"}, "VODA_RESET_TIMEOUT: expected seconds above 0, got 'soon'"),
    ],
)
def test_a_wrong_variable_is_named(change: dict[str, str], says: str) -> None:
    """The message says which variable, and what was expected."""
    with pytest.raises(BadEnvironment, match=says):
        read_driver({**DRIVER, **change})


def test_one_thread_per_rank_unless_the_pod_says_otherwise() -> None:
    """A setting of the pod is left alone."""
    assert [prepare_threads({}), prepare_threads({"OMP_NUM_THREADS": "8"})] == [{"OMP_NUM_THREADS": "1"}, {}]


def test_loopback_addresses_are_on_lo() -> None:
    """Linux answers all of 127.0.0.0/8 without having the addresses."""
    assert interface_of("127.1.0.5") == "lo"
    with pytest.raises(BadEnvironment, match=r"VODA_POD_IP: expected an address of this machine, got '192.0.2.1'"):
        interface_of("192.0.2.1")


@pytest.mark.parametrize(
    ("removed", "code", "meaning"),
    [(True, -6, 0), (True, 134, 0), (True, -9, -9), (True, 1, 1), (False, -6, -6), (False, 134, 134), (False, 0, 0)],
)
def test_an_abort_is_a_drain_only_when_the_driver_removed_the_host(removed: bool, code: int, meaning: int) -> None:
    """Horovod aborts ranks that were left out; any other abort is a crash."""
    mine, theirs = socket.socketpair()
    with mine, theirs:
        rank = RankProcess(RankOrder(host="w0", slot=0, command="", program=None, environment={}), 1, mine)
        rank.removed = removed

        assert rank.meaning(code) == meaning


def test_a_forked_rank_is_an_ordinary_process(tmp_path: Path) -> None:
    """It is ``__main__`` with its own arguments and socket, leads a session, and has no key and no agent's files."""
    script = tmp_path / "script.py"
    script.write_text(
        "import json, os, socket, sys, logging\n"
        "link = socket.socket(fileno=int(os.environ['VODA_RANK_FD']))\n"
        "told = {'type': 'told', 'main': __name__, 'argv': sys.argv[1:], 'path': sys.path[0],\n"
        "        'leader': os.getsid(0) == os.getpid(), 'key': os.environ.get('VODA_KEY_FILE'), 'x': os.environ['X'],\n"
        "        'kept': os.path.exists(f'/proc/self/fd/{sys.argv[2]}'), 'logs': logging.getLogger().handlers}\n"
        "link.sendall(json.dumps(told).encode() + b'\\n')\n"
        "sys.exit(7)\n"
    )
    held = os.open(script, os.O_RDONLY)
    program = Program(str(script), False, ("a", str(held)))
    order = RankOrder(host="w0", slot=0, command="", program=program, environment={"X": "1"})

    rank = start_rank(order, [held])
    _, status = os.waitpid(rank.pid, 0)
    told = rank.connection.recv(4096)
    rank.connection.close()
    os.close(held)

    assert os.waitstatus_to_exitcode(status) == 7
    wanted = (
        f'{{"type": "told", "main": "__main__", "argv": ["a", "{held}"], "path": "{tmp_path}", '
        '"leader": true, "key": null, "x": "1", "kept": false, "logs": []}'
    )
    assert told.decode().strip() == wanted
    assert logging.getLogger().handlers is not None
