"""A home with a real engine, and words to speak about what happens in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.errors import NotFound
from voda_flows.local.nodes import nodes_of_shape
from voda_flows.local.store import LocalStore
from voda_flows.local.up import down, start_engine
from voda_flows.objects import Object

LIMIT_S = 30.0


class World:
    """A home and what is asked of it most."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.store = LocalStore(home)

    def begin(self, shape: str = "2x2") -> World:
        """Make the nodes and start the engine."""
        for node in nodes_of_shape(shape):
            self.store.create(node)
        start_engine(self.home)
        return self

    def pod(self, name: str, *command: str, gpus: int = 0, **more: Any) -> Object:
        """Create a pod that runs a command; ``container``, ``spec``, labels and annotations add to it."""
        container = {"name": "main", "command": list(command), **more.get("container", {})}
        if gpus:
            container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
        metadata = {"name": name, "annotations": more.get("annotations", {}), "labels": more.get("labels", {})}
        spec = {"containers": [container], **more.get("spec", {})}
        return self.store.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def workflow(self, name: str, *templates: Object, entrypoint: str = "main") -> Object:
        """Create a Workflow of these templates."""
        spec = {"entrypoint": entrypoint, "templates": list(templates)}
        body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name}, "spec": spec}
        return self.store.create(body)

    def until(self, kind: str, name: str, holds: Callable[[Object], Any]) -> Object:
        """The object, as soon as this holds of it; looked at anew with every change of the store."""
        found: list[Object] = []

        def look() -> bool:
            found[:] = [self.store.get(kind, "default", name)]
            return bool(holds(found[0]))

        assert self.happens(look), f"{kind} {name} is still {found[0].get('status')}"
        return found[0]

    def happens(self, holds: Callable[[], Any]) -> bool:
        """Whether this comes true in time; looked at anew with every change of the store."""
        revision, rounds = -1, 0
        while not holds():
            seen = self.store.wait(revision, LIMIT_S)
            if seen == revision or (rounds := rounds + 1) > 10_000:
                return False
            revision = seen
        return True

    def phase(self, kind: str, name: str, *phases: str) -> Object:
        """The object, once it is in one of these phases."""
        return self.until(kind, name, lambda body: (body.get("status") or {}).get("phase") in phases)

    def gone(self, kind: str, name: str) -> bool:
        """Whether the object goes."""

        def absent() -> bool:
            try:
                self.store.get(kind, "default", name)
            except NotFound:
                return True
            return False

        return self.happens(absent)

    def folder(self, pod: Object) -> Path:
        """The folder of a pod."""
        return self.home / "pods" / str(pod["metadata"]["uid"])

    def log(self, pod: Object) -> str:
        """What a pod printed."""
        return (self.folder(pod) / "main.log").read_text()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A home with an engine that the tests of a module share: names of objects must differ."""
    home = tmp_path_factory.mktemp("home")
    yield World(home).begin()
    down(home, drain_s=0.2)


@pytest.fixture
def own_world(tmp_path: Path) -> Iterator[World]:
    """A home for one test, without an engine at first."""
    yield World(tmp_path)
    down(tmp_path, drain_s=0.2)
