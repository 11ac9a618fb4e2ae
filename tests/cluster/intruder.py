"""What a pod tries that belongs to another job, or to none: run there as ``python -m tests.cluster.intruder PLAN``.

The plan is JSON: ``agent`` and ``rendezvous`` (addresses with ports), ``job``, ``segment``, ``driver_uid``, ``worker``
of the job that is attacked, ``own_job``, and the files ``own_key`` and ``key``. It prints JSON: what each attempt came
to, ``refused``, ``let in`` or a status.
"""

from __future__ import annotations

import json
import socket
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

from voda_flows.runtime.channel import AgentHandshake, DriverHandshake, Party, read_key
from voda_flows.runtime.errors import Refused

LIMIT_S = 30.0
Plan = dict[str, Any]


def attempt(plan: Plan, key: bytes, party: Party, *, is_old: bool = False) -> str:
    """Speak to the agent as a driver; ``is_old`` answers a hello of another conversation with the right key."""
    host, port = plan["agent"]
    with socket.create_connection((host, port), timeout=LIMIT_S) as connection, connection.makefile("rb") as lines:
        hello = lines.readline().rstrip()
        me = DriverHandshake(key, party, worker=plan["worker"])
        if is_old:
            stranger = AgentHandshake(key, job=party.job, segment=party.segment, worker=plan["worker"])
            hello = stranger.hello().rstrip()
        connection.sendall(me.answer(hello))
        try:
            channel = me.finish(lines.readline().rstrip())
        except (Refused, OSError):
            return "refused"
        connection.sendall(channel.seal({"type": "bye"}))
        return "let in"


def put(plan: Plan) -> str:
    """Write an address of one's own into the rendezvous."""
    host, port = plan["rendezvous"]
    request = urllib.request.Request(f"http://{host}:{port}/global/0", data=b"mine", method="PUT")
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            return str(answer.status)
    except urllib.error.HTTPError as refusal:
        return str(refusal.code)


def main() -> None:
    """All attempts."""
    plan: Plan = json.loads(sys.argv[1])
    own, key = read_key(Path(plan["own_key"])), read_key(Path(plan["key"]))
    theirs = Party(job=plan["job"], segment=plan["segment"], driver_uid=plan["driver_uid"])
    found = {
        "its own key, their job": attempt(plan, own, theirs),
        "its own key, its own job": attempt(plan, own, replace(theirs, job=plan["own_job"])),
        "their key, its own job": attempt(plan, key, replace(theirs, job=plan["own_job"])),
        "their key, another segment": attempt(plan, key, replace(theirs, segment=plan["segment"] + 1)),
        "their key, an old nonce": attempt(plan, key, theirs, is_old=True),
        "their driver once more": attempt(plan, key, theirs),
        "a PUT to their rendezvous": put(plan),
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
