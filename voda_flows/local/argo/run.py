"""One reconcile in the making: what every part of it reads and writes.

In: a Workflow's document, its pods, the moment; it gathers the nodes' new state, the pods to make and to end, and
when to look again. ``reconcile.py`` makes one of these for each ``advance`` and takes the result out of it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from voda_flows.local.argo.nodes import NewNode, NodeTree
from voda_flows.local.argo.substitute import substitute
from voda_flows.local.argo.templates import Templates
from voda_flows.objects import Object

DISPLAY_NAME = "workflows.argoproj.io/display-name"
MAX_DEPTH = 100  # nested templates; Argo's own limit

GROUP_KINDS = ("steps", "dag")
POD_KINDS = ("container", "script")
KINDS = (*GROUP_KINDS, *POD_KINDS, "suspend")


class ExecutionError(Exception):
    """A template could not be started; its node says so, and the group around it ends with an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Who calls a template: a step, task or hook (``target``), from which scope, inside which node."""

    target: Mapping[str, Any]
    scope: str
    boundary_id: str = ""
    on_exit: bool = False
    flag: Mapping[str, bool] | None = None
    depth: int = 0
    parent: Object | None = None  # the template whose step or task this is

    def fields(self) -> dict[str, Any]:
        """The fields by which a node says what it runs."""
        found: dict[str, Any] = {"templateScope": self.scope}
        for name, key in (("templateRef", "templateRef"), ("template", "templateName")):
            if self.target.get(name):
                found[key] = self.target[name]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A template being run as a node: the template, its call, and the variables it may use."""

    name: str
    template: Object
    scope: str
    call: Call
    inputs: tuple[Object, ...]
    variables: ChainMap[str, Any]

    def child(self, step: Mapping[str, Any], boundary_id: str) -> Call:
        """The call of a step or task of this template."""
        return Call(
            target=step,
            scope=self.scope,
            boundary_id=boundary_id,
            on_exit=self.call.on_exit,
            depth=self.call.depth + 1,
            parent=self.template,
        )

    def new_node(self, node_type: str, phase: str) -> NewNode:
        """A node that runs this template."""
        fields = self.call.fields()
        if self.inputs:
            fields["inputs"] = {"parameters": list(self.inputs)}
        if self.call.flag:
            fields["nodeFlag"] = dict(self.call.flag)
        is_try = bool((self.call.flag or {}).get("retried"))  # Argo gives the name to the node around the tries
        shown = "" if is_try else (self.template.get("annotations") or {}).get(DISPLAY_NAME, "")
        return NewNode(
            name=self.name,
            type=node_type,
            phase=phase,
            boundary_id=self.call.boundary_id,
            display=substitute(shown, self.variables),
            fields=fields,
        )


@dataclass(slots=True, kw_only=True)
class Run:
    """The state of one reconcile; see the module's docstring."""

    workflow: Object
    spec: Object
    tree: NodeTree
    templates: Templates
    pods: Mapping[str, Object]
    now: datetime
    variables: dict[str, Any]
    execute: Callable[[Run, str, Call], Object]
    shutdown: str = ""
    deadline: datetime | None = None
    taken: frozenset[str] = frozenset()  # names of pods that are another Workflow's, an older one's of this name
    create: dict[str, Object] = field(default_factory=dict)
    end: dict[str, None] = field(default_factory=dict)
    delete: dict[str, None] = field(default_factory=dict)
    again_s: float | None = None

    @property
    def name(self) -> str:
        """The Workflow's name, which is also its root node's."""
        return str(self.workflow["metadata"]["name"])

    def look_again(self, delay_s: float) -> None:
        """Ask to be called again after a time at the latest."""
        self.again_s = delay_s if self.again_s is None else min(self.again_s, delay_s)

    @property
    def is_late(self) -> bool:
        """Whether the Workflow's own deadline is over."""
        return self.deadline is not None and self.deadline <= self.now

    def may_execute(self, on_exit: bool) -> bool:
        """Whether pods may still be started: after a stop only those of the exit handler."""
        return not self.shutdown or (self.shutdown == "Stop" and on_exit)


def kind_of(template: Mapping[str, Any]) -> str:
    """What a template is: one of KINDS, or empty."""
    return next((kind for kind in KINDS if kind in template), "")
