"""The command line in one of two worlds: the same words, on local mode or on a cluster with Argo's own controller.

In: documents of pods that run a shell's commands. Out: what ``voda`` said. Where a world is, and which image has a
shell there, is all that differs.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.images import HOST_IMAGE, host_mount, host_volume
from tests.unit.cli.world import Said
from voda_flows.cli import run
from voda_flows.cli.following import changes
from voda_flows.kube.cluster import Cluster
from voda_flows.objects import Object
from voda_flows.world import World
from voda_flows.worlds import open_world
from voda_flows.yaml_text import dump_yaml

LIMIT_S = 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """``voda`` in a world.

    Attributes:
        options: What names the world, on every line.
        namespace: Where the documents go.
        folder: Where documents are written.
        container: What every container has besides its command.
        spec: What every Workflow has besides its templates.
    """

    options: tuple[str, ...]
    namespace: str
    folder: Path
    container: Object = field(default_factory=dict)
    spec: Object = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Whether it is local mode."""
        return "--home" in self.options

    def voda(self, *arguments: str) -> Said:
        """Run a command line in this world's namespace."""
        words = [*arguments, *self.options]
        if not {"-A", "nodes"} & set(arguments):
            words += ["-n", self.namespace]
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run(words)
        return Said(code=code, out=out.getvalue(), err=err.getvalue())

    def json(self, *arguments: str) -> Any:
        """A command line's result as JSON."""
        said = self.voda(*arguments, "-o", "json")
        assert said.code == 0, said.err
        return json.loads(said.out)

    def pod(self, name: str, command: str, **more: Any) -> Object:
        """A template of one pod."""
        container = {"image": "any", "command": ["sh", "-c", command], **self.container}
        return {"name": name, "container": container, **more}

    def write(self, name: str, *templates: Object, **spec: Any) -> str:
        """Write a Workflow's document; its first template is where it begins. The file's path."""
        document = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"name": name},
            "spec": {"entrypoint": templates[0]["name"], "templates": list(templates), **self.spec, **spec},
        }
        return self.write_document(document)

    def write_document(self, document: Object) -> str:
        """Write any document; the file's path."""
        path = self.folder / f"{document['metadata']['name']}.yaml"
        path.write_text(dump_yaml([document]), encoding="utf-8")
        return str(path)

    def submit(self, name: str, *templates: Object, **spec: Any) -> str:
        """Submit such a Workflow; its name."""
        said = self.voda("submit", self.write(name, *templates, **spec), "-o", "name")
        assert (said.code, said.out) == (0, f"{name}\n"), said.err
        return name

    def wait(self, name: str) -> str:
        """Wait until it has ended; its phase."""
        said = self.voda("wait", name, "--timeout", f"{LIMIT_S:.0f}s")
        assert said.code in (0, 1), said.err
        return str(self.json("get", name)["status"]["phase"])

    def until(self, name: str, holds: Callable[[Object], bool]) -> None:
        """Follow a Workflow until something is so of it.

        Raises:
            TimeoutError: It never was.
        """
        end_s, world = time.monotonic() + LIMIT_S, self._world()
        try:
            for _ in changes(world.store):
                body = world.store.get("Workflow", self.namespace, name)
                if body.get("status") and holds(body):
                    return
                if time.monotonic() > end_s:
                    raise TimeoutError(f"{name}: expected another state within {LIMIT_S:.0f} s, found {body['status']}")
        finally:
            world.close()

    def _world(self) -> World:
        place = Path(self.options[1])
        if self.is_local:
            return open_world(place, None)
        if "--argo-server" in self.options:
            return open_world(place, None, self.namespace, argo_server=self.options[1])
        return open_world(place, Cluster(kubeconfig=str(place)), self.namespace)


def local(home: Path, folder: Path) -> CommandLine:
    """Local mode's."""
    return CommandLine(options=("--home", str(home)), namespace="default", folder=folder)


def on_cluster(kubeconfig: Path, namespace: str, folder: Path) -> CommandLine:
    """A cluster's."""
    return CommandLine(
        options=("--kubeconfig", str(kubeconfig)),
        namespace=namespace,
        folder=folder,
        container={"image": HOST_IMAGE, "imagePullPolicy": "Never", "volumeMounts": [host_mount()]},
        spec={"volumes": [host_volume()]},
    )
