"""``voda events`` and ``voda top``: what happened and why, and what is used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.unit.cli.test_verbs import running
from tests.unit.cli.world import World
from tests.unit.report.world import START_S, Building, resize
from voda_flows.local.usage import usage_by_pod
from voda_flows.report.times import text


def test_a_life_is_told_an_event_a_line(world: World) -> None:
    """When, what kind, what, what it cost, and why: the scheduler's word is beside what it did."""
    made = world.add(Building(name="digits").grant(1, ("w0", "n0"), ("w1", "n0")).publish("w0", "w1"))
    folder = world.home / "volumes" / "voda" / "default" / made["metadata"]["uid"] / "train" / "segment-0"
    folder.mkdir(parents=True)
    records = (resize("start", 0, 2, 6), resize("shrink", 2, 1, 30, still=0.12, lost=1))
    (folder / "resizes.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))

    lines = [line.split(maxsplit=3)[2:] for line in world.voda("events", "digits").out.splitlines()]

    assert [kind for kind, _ in lines] == ["submit", "queue", "grant", "start", "shrink"]
    assert lines[-1][1].startswith("shrinks in place 2 -> 1, stood still 0.12s, 1 step lost")


def test_events_as_json_have_time_kind_and_words(world: World) -> None:
    """A list of items; --since leaves out what was before."""
    world.add(Building(name="old").finish(5, "Failed"))

    items = world.json("events", "--since", text(START_S + 3))["items"]

    assert [(item["job"], item["kind"], item["at_s"], item["text"]) for item in items] == [
        ("old", "end", START_S + 5, "failed")
    ]


def test_following_events_ends_with_the_job(world: World) -> None:
    """-f prints each event once; with -o json a line of JSON each."""
    world.add(running())
    over = {"status": {"phase": "Succeeded", "finishedAt": text(START_S + 60)}}
    later = threading.Timer(0.3, lambda: world.store.merge_patch("Workflow", "default", "digits", over))
    later.start()
    said = world.voda("events", "digits", "-f", "-o", "json")
    later.join()

    kinds = [json.loads(line)["kind"] for line in said.out.splitlines()]

    assert (said.code, kinds) == (0, ["submit", "queue", "grant", "end"])


class Driver(BaseHTTPRequestHandler):
    """A driver that says how fast it is."""

    uid = ""

    def do_GET(self) -> None:
        """Its status."""
        self.send_response(200)
        self.end_headers()
        workers = {"w0": {"state": "running", "restarts": 2}, "w1": {"state": "draining", "restarts": 0}}
        said = {"driver_uid": self.uid, "samples_per_s": 1234.5, "state": "training", "workers": workers}
        self.wfile.write(json.dumps(said).encode())

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def reporting(world: World) -> Iterator[World]:
    """A job whose driver answers."""
    world.add(running())
    Driver.uid = world.store.get("Pod", "default", "digits-driver-0")["metadata"]["uid"]
    server = ThreadingHTTPServer(("127.77.7.7", 7071), Driver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    world.store.merge_patch("Pod", "default", "digits-driver-0", {"status": {"podIP": "127.77.7.7"}})
    yield world
    server.shutdown()
    thread.join()
    server.server_close()


def test_top_has_slots_memory_and_samples(reporting: World) -> None:
    """By node, job and pod; processes are found by the mark of their pod."""
    uid = reporting.store.get("Pod", "default", "digits-worker-0w0")["metadata"]["uid"]
    process = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, env={**os.environ, "VODA_POD": uid})  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    try:
        found = reporting.json("top", "--interval", "0.1s")
    finally:
        process.communicate(b"\n")

    (job,) = found["jobs"]
    assert [(node["name"], node["gpus"], node["slots"]) for node in found["nodes"]] == [("n0", 2, 2), ("n1", 0, 2)]
    assert (job["name"], job["phase"], job["gpus"], job["samples_per_s"], job["processes"]) == (
        "digits", "Running", 2, 1234.5, 1,
    )  # fmt: skip
    assert job["memory_bytes"] > 1_000_000
    assert job["cpu_percent"] >= 0
    assert {pod["name"]: (pod["node"], pod["processes"]) for pod in job["pods"]} == {
        "driver": ("", 0), "w0": ("n0", 1), "w1": ("n0", 0),
    }  # fmt: skip
    assert uid not in usage_by_pod()


def test_get_shows_each_worker_with_its_restarts(reporting: World) -> None:
    """State and restarts as the driver says, place as it was given."""
    rows = [line.split() for line in reporting.voda("get", "digits").out.splitlines()]

    assert [row[:5] for row in rows if row[:1] in (["WORKER"], ["w0"], ["w1"])] == [
        ["WORKER", "STATE", "NODE", "SLOTS", "RESTARTS"],
        ["w0", "running", "n0", "0", "2"],
        ["w1", "draining", "n0", "1", "0"],
    ]


def test_a_worker_that_is_given_back_before_it_trained_is_told(world: World) -> None:
    """A decision that shrinks a job while it warms up has no record of a driver: the scheduler's own tells it."""
    world.add(Building(name="digits").grant(1, ("w0", "n0"), ("w1", "n0")).leave(4, "w1"))
    row = {"time_s": START_S + 4, "decision": 2, "policy": "elastic_fifo", "gpus": {"digits/train": 1}, "fault": "",
           "actions": [{"job": "digits/train", "action": "Evict", "worker_id": "w1",
                        "reason": "given to text"}]}  # fmt: skip
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "voda-history", "namespace": "voda"}}
    world.store.create({**body, "data": {"rows": json.dumps([row])}})

    shown = world.voda("get", "digits").out

    assert "w1" in shown.partition("WHAT")[2]
    assert "given to text" in shown
