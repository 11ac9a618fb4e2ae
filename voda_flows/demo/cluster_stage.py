"""The demo on a cluster where Voda is installed: its Workflows carry a label, by which they are taken away again."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from scheduler_core.errors import Conflict, NotFound
from voda_flows.control.cluster import cluster_of
from voda_flows.control.observe import other_gpus
from voda_flows.demo.script import ACTS
from voda_flows.objects import WORKFLOW_ENDED, WORKFLOW_LABEL, Object, phase_of
from voda_flows.operations import terminate
from voda_flows.workflows.parameters import JOB_TEMPLATE
from voda_flows.world import World

#: GPUs that the demo's jobs compete for: with more nobody would have to make room, with fewer some would never start.
GPUS: Final = 4
#: What marks a Workflow of a demo; the next demo may take it away.
LABEL: Final = "voda.dev/demo"
_GOING_S: Final = 120.0


class ClusterStage:
    """A cluster on which Voda is installed.

    Args:
        world: The cluster.
        namespace: Where jobs are to run.
        options: How ``voda`` is told of it.
    """

    workdir = None

    def __init__(self, world: World, namespace: str, options: str) -> None:
        self.world = world
        self.namespace = namespace
        self.options = options
        self._image = ""

    def start(self) -> None:
        """See that the demo can play here, and take away what an earlier one left.

        Raises:
            NotFound: Voda is not installed there.
            Conflict: Somebody else's jobs have the demo's names, or there are not so many GPUs free.
        """
        self._image = self._default_image()
        mine = self._mine()
        others = sorted(self._workflows().keys() - {body["metadata"]["name"] for body in mine})
        if others:
            name = others[0]
            raise Conflict(
                f"namespace {self.namespace!r}: expected no Workflow called {name!r}, there is one; delete it with "
                f"`voda delete {name} {self.options}`, or name another namespace with -n"
            )
        self._take_away(mine)
        free = self._free_gpus()
        if free != GPUS:
            raise Conflict(
                f"expected {GPUS} free GPUs for the demo's jobs to compete for, found {free}\n"
                "`make demo-cluster` in a checkout brings up a cluster that has them"
            )

    def placed(self, workflow: Object) -> Object:
        """See ``Stage.placed``: a user's own steps run in the image that the installation's jobs have."""
        metadata, spec = workflow["metadata"], dict(workflow["spec"])
        if "templates" in spec:
            spec["templates"] = [self._with_image(template) for template in spec["templates"]]
        labels = {**(metadata.get("labels") or {}), LABEL: "yes"}
        return {**workflow, "metadata": {**metadata, "labels": labels}, "spec": spec}

    def finish(self, *, keep: bool) -> None:
        """See ``Stage.finish``."""
        if not keep:
            self._take_away(self._mine())
            return
        for workflow in self._mine():
            if phase_of(workflow) not in WORKFLOW_ENDED:
                with suppress(Conflict, NotFound):
                    terminate(self.world.store, workflow)

    def _default_image(self) -> str:
        """The image of jobs that name none."""
        try:
            template = self.world.store.get("WorkflowTemplate", self.namespace, JOB_TEMPLATE)
        except NotFound as missing:
            raise NotFound(
                f"namespace {self.namespace!r}: expected Voda's WorkflowTemplate {JOB_TEMPLATE}, there is none\n"
                "install Voda with `voda install`, or name the namespace with jobs with -n"
            ) from missing
        given = {row["name"]: row.get("value") or "" for row in template["spec"]["arguments"]["parameters"]}
        return str(given.get("image", ""))

    def _with_image(self, template: Object) -> Object:
        """A template in the installation's image."""
        kind = next((kind for kind in ("script", "container") if kind in template), None)
        return template if kind is None else {**template, kind: {**template[kind], "image": self._image}}

    def _workflows(self) -> Mapping[str, Object]:
        """Workflows with the names of the demo's jobs."""
        names = {act.example for act in ACTS}
        found = {body["metadata"]["name"]: body for body in self.world.store.list("Workflow", self.namespace)}
        return {name: body for name, body in found.items() if name in names}

    def _mine(self) -> list[Object]:
        """Those of a demo."""
        return [found for found in self._workflows().values() if LABEL in (found["metadata"].get("labels") or {})]

    def _take_away(self, workflows: list[Object]) -> None:
        """Delete Workflows and wait until they and their pods are gone."""
        store, names = self.world.store, {body["metadata"]["name"] for body in workflows}
        for workflow in workflows:
            with suppress(NotFound, Conflict):
                metadata = workflow["metadata"]
                store.delete("Workflow", self.namespace, metadata["name"], uid=metadata["uid"])
        end_s = time.monotonic() + _GOING_S
        while time.monotonic() < end_s and (names & self._workflows().keys() or self._pods_of(names)):
            store.wait(store.revision(), 1.0)

    def _pods_of(self, names: set[str]) -> list[Object]:
        pods = self.world.store.list("Pod", self.namespace)
        return [pod for pod in pods if (pod["metadata"].get("labels") or {}).get(WORKFLOW_LABEL) in names]

    def _free_gpus(self) -> int:
        """GPUs that nobody holds, on nodes that take pods."""
        whole = self.world.whole
        cluster = cluster_of(whole.list("Node"), other_gpus(whole.list("Pod"), ()), ())
        return sum(node.gpus - node.foreign_gpus - node.leaving_gpus for node in cluster.nodes if node.schedulable)
