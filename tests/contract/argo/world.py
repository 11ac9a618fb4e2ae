"""What the contract tests ask of a world in which one Workflow runs, whichever it is."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from voda_flows.objects import Object

ENDED = ("Succeeded", "Failed", "Error")
NODE_NAME = "workflows.argoproj.io/node-name"
CAUGHT = re.compile(r"^SigCgt:\s*([0-9a-f]+)$", re.MULTILINE)


class World(Protocol):
    """One Workflow, submitted, and its pods."""

    @property
    def status(self) -> Object:
        """The Workflow's status as it is kept."""
        ...

    @property
    def pods(self) -> dict[str, Object]:
        """The Workflow's pods by name."""
        ...

    def until(self, holds: Callable[[], bool], limit_s: float = 30.0) -> None:
        """Go on until this holds.

        Raises:
            TimeoutError: It does not within the limit.
        """
        ...

    def operate(self, change: Callable[[Object], Object]) -> None:
        """Change the Workflow's document, guarded by its version."""
        ...

    def delete_pod(self, name: str, *, force: bool = False) -> None:
        """Delete a pod; by force its process and its object go at once."""
        ...

    def dismiss(self, name: str) -> None:
        """Ask a pod's process to end, as its program would be asked by a peer: the pod is not deleted."""
        ...

    def annotate(self, name: str, annotation: str, value: str) -> None:
        """Set an annotation of a pod."""
        ...

    def pid(self, name: str) -> int | None:
        """The pid of a pod's command, while it runs."""
        ...

    def close(self) -> None:
        """End what still runs."""
        ...


def finish(world: World) -> Object:
    """The status with which the Workflow ends."""
    world.until(lambda: world.status.get("phase") in ENDED)
    return world.status


def running(world: World, node: str) -> bool:
    """Whether the node of that name runs."""
    nodes = world.status.get("nodes", {}).values()
    return any(each["name"] == node and each["phase"] == "Running" for each in nodes)


def pod_of(world: World, node: str) -> str:
    """The name of a node's pod."""
    return next(name for name, pod in world.pods.items() if pod["metadata"]["annotations"][NODE_NAME] == node)


def is_up(pod: Object) -> bool:
    """Whether the pod runs."""
    return bool((pod.get("status") or {}).get("phase") == "Running")


def is_ready_to_end(world: World, name: str) -> bool:
    """Whether a pod's command has set up what it does when asked to end, where it means to be asked."""
    if "trap" not in str(world.pods[name]["spec"]):
        return True
    pid = world.pid(name)
    if pid is None:
        return False
    found = CAUGHT.search(Path(f"/proc/{pid}/status").read_text())
    return found is not None and bool(int(found.group(1), 16) >> (signal.SIGTERM - 1) & 1)
