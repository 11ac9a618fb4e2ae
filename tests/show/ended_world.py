"""A home in which a thousand training jobs have ended, made from one that the real engine and scheduler took through.

The one job's Workflow and pods are what the engine and the control loop make of them while a test plays the pods' part;
the others are copies under names and uids of their own, written into the state file in one go.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from pathlib import Path

from tests.unit.control.world import World
from voda_flows.local.store import LocalStore
from voda_flows.objects import Object

NAME = "template-job"


def one_ended(home: Path) -> tuple[Object, list[Object]]:
    """The Workflow and pods of a job that trained on two GPUs and has ended."""
    world = World(home)
    world.submit(NAME, min_gpus="2", max_gpus="2")
    world.cycle()
    world.run_pods()
    world.cycle()
    world.acknowledge()
    world.cycle()
    world.end_pod("driver")
    for worker in ("w0", "w1"):
        world.end_pod("worker", worker)
    world.cycle()
    world.run_pods()
    world.end_pod("checkpoint", state="done")
    world.cycle()
    workflow = world.store.get("Workflow", "default", NAME)
    assert workflow["status"]["phase"] == "Succeeded", workflow["status"]
    pods = [_bound(pod) for pod in world.store.list("Pod")]
    world.store.close()
    return workflow, pods


def ended_jobs(home: Path, count: int, scratch: Path) -> LocalStore:
    """A home with so many ended jobs.

    Args:
        home: Its folder.
        count: How many.
        scratch: Folder for the world in which the one job lives.

    Returns:
        Its store.
    """
    workflow, pods = one_ended(scratch)
    store = LocalStore(home)
    with sqlite3.connect(home / "state.db", isolation_level=None) as connection:
        connection.execute("BEGIN IMMEDIATE")
        (revision,) = connection.execute("SELECT revision FROM counter").fetchone()
        for number in range(count):
            for body in _copies(workflow, pods, f"job-{number:04d}"):
                revision += 1
                _insert(connection, body, revision)
        connection.execute("UPDATE counter SET revision = ?", (revision,))
        connection.execute("COMMIT")
    connection.close()
    return store


def _bound(pod: Object) -> Object:
    """The pod with the node that it was on, where the scheduler has not named one."""
    return {**pod, "spec": {"nodeName": "n0", **pod["spec"]}}


def _copies(workflow: Object, pods: list[Object], name: str) -> list[Object]:
    """The job under another name, with uids of its own."""
    text = json.dumps([workflow, *pods]).replace(NAME, name)
    for body in (workflow, *pods):
        text = text.replace(body["metadata"]["uid"], str(uuid.uuid4()))
    return list(json.loads(text))


def _insert(connection: sqlite3.Connection, body: Object, revision: int) -> None:
    metadata = body["metadata"]
    metadata["resourceVersion"] = str(revision)
    key = (body["kind"], metadata["namespace"], metadata["name"], metadata["uid"])
    connection.execute("INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?)", (*key, revision, json.dumps(body)))
    for owner in metadata.get("ownerReferences") or ():
        connection.execute("INSERT OR IGNORE INTO owners VALUES (?, ?)", (owner["uid"], metadata["uid"]))
