"""Whether a Workflow is one that Argo would run and local mode can: checked at submission.

In: a Workflow's document and the WorkflowTemplates that it may refer to; out: nothing, or the first fault with its
path. First what the API server refuses (``schema.py``), then what the controller calls an invalid spec, in its words;
last what only local mode cannot do.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.arguments import EXPANDING, expands
from voda_flows.local.argo.dag import Graph, graph_of, word_of
from voda_flows.local.argo.endless import Calling, Template, check_ends, may_stop
from voda_flows.local.argo.expressions import parse
from voda_flows.local.argo.known import check_tags, outputs_of, own_names, step_names, workflow_names
from voda_flows.local.argo.places import at, elsewhere
from voda_flows.local.argo.podpatch import patched
from voda_flows.local.argo.retry import POLICIES
from voda_flows.local.argo.run import POD_KINDS, kind_of
from voda_flows.local.argo.schema import check_fields, check_pod_spec
from voda_flows.local.argo.scope import described
from voda_flows.local.argo.substitute import tags_within
from voda_flows.local.argo.templates import NAMESPACED, Templates, TemplateSource, effective_spec
from voda_flows.local.argo.unsupported import Unsupported
from voda_flows.objects import Object

QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|{{.*?}}")
PATTERN = re.compile(r"=~|!~")
"""Comparison with a regular expression: one of a stranger could keep the engine busy for ever."""


def validate(workflow: Object, source: TemplateSource, *, supported: bool = True) -> None:
    """Check a Workflow before it is kept.

    Args:
        workflow: The document as it is submitted.
        source: Gives WorkflowTemplates by namespace and name.
        supported: Whether fields that only local mode has not are refused too.

    Raises:
        InvalidValue: The first fault: an unknown field, a wrong type, what the spec says wrong, or what local mode
            does not support.
    """
    check_fields(workflow, supported=supported)
    metadata = workflow.get("metadata") or {}
    if not (metadata.get("name") or metadata.get("generateName")):
        raise InvalidValue("metadata.name: Required value: name or generateName is required", path="metadata")
    if not isinstance(workflow.get("spec"), dict):
        raise InvalidValue("spec: Required value", path="spec")
    own = (workflow["spec"].get("arguments") or {}).get("parameters") or ()
    _check_unique(own, "spec.arguments.parameters[{index}].name")
    named = {**workflow, "metadata": {"name": metadata.get("generateName", ""), **metadata}}
    with at("spec.workflowTemplateRef.name"):
        spec = effective_spec(named, source)
    if spec.get("templates") != workflow["spec"].get("templates"):
        with elsewhere(), at("spec.workflowTemplateRef"):
            check_fields({"spec": spec}, supported=supported)
    _Check(named, spec, source).run()


def validate_template(template: Object, source: TemplateSource, *, supported: bool = True) -> None:
    """Check a WorkflowTemplate before it is kept, as far as that is possible without the arguments of its users.

    Args:
        template: The document.
        source: Gives other WorkflowTemplates.
        supported: As for ``validate``.

    Raises:
        InvalidValue: The first fault, as ``validate`` has it.
    """
    check_fields(template, supported=supported)
    spec = template.get("spec")
    if not isinstance(spec, dict):
        raise InvalidValue("spec: Required value", path="spec")
    check = _Check({**template, "metadata": {"name": "", **(template.get("metadata") or {})}}, spec, source)
    check.templates()


class _Check:
    """A walk over all templates that a Workflow reaches; each is checked once."""

    def __init__(self, workflow: Object, spec: Object, source: TemplateSource) -> None:
        self._spec = spec
        own = (workflow.get("spec") or {}).get("templates") or ()
        self._paths = {id(template): f"spec.templates[{index}]" for index, template in enumerate(own)}
        self._calls: dict[Template, list[Calling]] = {}
        self._templates = Templates(workflow, spec, source, {})
        self._arguments: list[Object] = (spec.get("arguments") or {}).get("parameters") or []
        whole = {**workflow, "metadata": described(workflow["metadata"], spec)}
        self._global = workflow_names(whole, self._arguments)
        self._seen: set[tuple[str, str]] = set()

    def run(self) -> None:
        """Check the arguments, the names, and every template from the entrypoint and the exit handler on.

        Raises:
            InvalidValue: The first fault, with its path.
        """
        _check_unique(self._spec.get("templates") or (), "spec.templates[{index}].name")
        for each in self._arguments:
            if "value" not in each and "default" not in each:
                where = f"spec.arguments.{each['name']}"
                raise InvalidValue(
                    f"{where}.value or {where}.valueFrom is required", path=f"spec.arguments.parameters.{each['name']}"
                )
        if not self._spec.get("entrypoint"):
            raise InvalidValue("spec.entrypoint is required", path="spec")
        whole = {"arguments": {"parameters": self._arguments}}
        for field in ("entrypoint", "onExit"):
            if self._spec.get(field):
                with at(f"spec.{field}"):
                    self._enter({**whole, "template": self._spec[field]}, self._templates.scope, "")
        hook = (self._spec.get("hooks") or {}).get("exit")
        if hook:
            with at("spec.hooks.exit"):
                self._enter(hook, self._templates.scope, "spec.hooks.exit ")
        self.templates()

    def templates(self) -> None:
        """Check every template, also those that nobody reaches."""
        _check_unique(self._spec.get("templates") or (), "spec.templates[{index}].name")
        _check_patch(self._spec, "spec")
        for template in self._spec.get("templates") or ():
            self._template(template, self._templates.scope)
        check_ends(self._calls)

    def _enter(self, call: Mapping[str, Any], scope: str, where: str) -> Object:
        """The template of a call, checked together with the arguments that it is given."""
        try:
            template, inside = self._templates.resolve(call, scope)
        except InvalidValue as error:
            raise InvalidValue(f"{where}{error}{self._meant(call)}", path=error.path) from error
        given = {each["name"] for each in (call.get("arguments") or {}).get("parameters") or () if "value" in each}
        for declared in (template.get("inputs") or {}).get("parameters") or ():
            if declared["name"] not in given and "value" not in declared and "default" not in declared:
                shown = template.get("name", "inline")
                raise InvalidValue(f"{where}templates.{shown} inputs.parameters.{declared['name']} was not supplied")
        self._template(template, inside)
        return template

    def _meant(self, call: Mapping[str, Any]) -> str:
        """A suggestion for a template's name that is none."""
        known = [str(template.get("name", "")) for template in self._spec.get("templates") or ()]
        near = difflib.get_close_matches(str(call.get("template", "")), known, n=1)
        return f"; did you mean '{near[0]}'?" if near else ""

    def _noted(self, template: Object, scope: str, step: Object, target: Object, path: str) -> None:
        """Note a call that is always made."""
        called = step.get("templateRef") or {}
        inside = f"{NAMESPACED}{called.get('name')}" if called else scope
        if template.get("name") and target.get("name") and not may_stop(step):
            where = f"{self._paths[id(template)]}.{path}" if id(template) in self._paths else ""
            self._calls.setdefault((scope, template["name"]), []).append(
                Calling(called=(inside, target["name"]), path=where)
            )

    def _template(self, template: Object, scope: str) -> None:
        """Check a template once; what is wrong with one of another document stands, for the user, at its call."""
        name = template.get("name", "")
        if name:
            if (scope, name) in self._seen:
                return
            self._seen.add((scope, name))
        path = self._paths.get(id(template), "" if name else "inline")
        with at(path) if path else elsewhere():
            self._content(template, scope)

    def _content(self, template: Object, scope: str) -> None:
        name = template.get("name", "")
        if scope.startswith(NAMESPACED):  # of another document, whose fields nobody has looked at yet
            _check_referred(template, scope)
        kind, where = kind_of(template), f"templates.{name or 'inline'}"
        if not kind:
            raise InvalidValue(f"template '{name}' type is unknown")
        _check_retry(template, where)
        _check_patch(template, where)
        known = self._global | own_names(template)
        if kind == "steps":
            self._steps(template, scope, known)
        elif kind == "dag":
            self._dag(template, scope, known)
        else:
            check_tags({key: part for key, part in template.items() if key != "inputs"}, known, f"{where}:")
            _check_leaf(template, kind, where)

    def _steps(self, template: Object, scope: str, known: frozenset[str]) -> None:
        where, seen = f"templates.{template.get('name', 'inline')}", set[str]()
        for index, group in enumerate(template["steps"]):
            for number, step in enumerate(group):
                with at(f"steps[{index}][{number}]"):
                    _check_name(step, f"{where}.steps[{index}]", seen)
                    check_tags(_asked(step), known, f"{where}.steps", items=expands(step))
                    _check_when(step, f"{where}.steps[{index}].{step['name']}")
            for number, step in enumerate(group):
                path = f"steps[{index}][{number}]"
                with at(path):
                    target = self._enter(step, scope, f"{where}.steps[{index}].{step['name']} ")
                self._noted(template, scope, step, target, path)
                known |= step_names(f"steps.{step['name']}", step, target)
        _check_outputs(template, ("parameter", "expression"), where)
        with at("outputs.parameters"):
            check_tags(outputs_of(template), known, f"{where}.outputs")

    def _dag(self, template: Object, scope: str, known: frozenset[str]) -> None:
        where, seen = f"templates.{template.get('name', 'inline')}", set[str]()
        tasks = template["dag"]["tasks"]
        for index, task in enumerate(tasks):
            with at(f"dag.tasks[{index}]"):
                _check_name(task, f"{where}.tasks", seen)
        places = {task["name"]: f"dag.tasks[{index}]" for index, task in enumerate(tasks)}
        if any(task.get("depends") for task in tasks) and any(task.get("dependencies") for task in tasks):
            raise InvalidValue(f"{where} cannot use both 'depends' and 'dependencies' in the same DAG template")
        if any(task.get("depends") and task.get("continueOn") for task in tasks):
            raise InvalidValue(f"{where} cannot use 'continueOn' when using 'depends'. Instead use "
                               "'dep-task.Failed'/'dep-task.Errored'")  # fmt: skip
        graph, said = _graph(template, places), dict[str, frozenset[str]]()
        for name, task in _sorted(graph, where, places):
            with at(places[name]):
                target = self._enter(task, scope, f"{where}.tasks.{name} ")
                _check_when(task, f"{where}.tasks.{name}")
            self._noted(template, scope, task, target, places[name])
            said[name] = step_names(f"tasks.{name}", task, target)
        for name, task in graph.tasks.items():
            if not tags_within(_asked(task)):
                continue
            before = frozenset[str]().union(*(said[needed] for needed in graph.before(name)))
            with at(places[name]):
                check_tags(_asked(task), known | before, f"{where}.tasks.{name}", items=expands(task))
        _check_outputs(template, ("parameter", "expression"), where)
        with at("outputs.parameters"):
            check_tags(outputs_of(template), known.union(*said.values()), f"{where}.outputs")


def _asked(step: Object) -> Object:
    """The parts of a step or task that are filled in by the template around it."""
    return {key: part for key, part in step.items() if key not in {"inline", "name"}}


def _check_unique(rows: Iterable[Object], where: str) -> None:
    seen: set[str] = set()
    for index, row in enumerate(rows):
        path = where.format(index=index)
        if not row.get("name"):
            raise InvalidValue(f"{path} is required", path=path)
        if row["name"] in seen:
            raise InvalidValue(f"{path} '{row['name']}' is not unique", path=path)
        seen.add(row["name"])


def _check_name(step: Object, where: str, seen: set[str]) -> None:
    """Check that a step or task has a name of its own and calls exactly one template."""
    name = step.get("name")
    if not name:
        raise InvalidValue(f"{where}.name is required")
    if name in seen:
        raise InvalidValue(f"{where}.name '{name}' is not unique", path="name")
    seen.add(name)
    if sum(bool(step.get(key)) for key in ("template", "templateRef", "inline")) != 1:
        raise InvalidValue(f"{where}.{name}: expected one of template, templateRef and inline")
    lists = [key for key in EXPANDING if key in step]
    if len(lists) > 1:
        raise InvalidValue(f"{where}.{name}: expected one of {', '.join(EXPANDING)}, got {', '.join(lists)}")


def _check_when(step: Object, where: str) -> None:
    """Check that a condition has nothing that local mode does not know, as far as its text tells."""
    found = PATTERN.search(QUOTED.sub("", str(step.get("when", ""))))
    if found:
        raise InvalidValue(f"{where}.when: {found[0]}: not supported in local mode", path="when")


def _graph(template: Object, places: Mapping[str, str]) -> Graph:
    """The graph of a DAG template, once the condition of each task is known to be one."""
    for task in template["dag"]["tasks"]:
        if task.get("depends"):
            with at(f"{places[task['name']]}.depends"):
                parse(word_of(task["depends"]))
    return graph_of(template)


def _sorted(graph: Graph, where: str, places: Mapping[str, str]) -> list[tuple[str, Object]]:
    """The tasks, each behind what it depends on."""
    for name, needs in graph.needs.items():
        for needed in needs:
            if needed not in graph.tasks:
                near = difflib.get_close_matches(needed, graph.tasks, n=1)
                meant = f"; did you mean '{near[0]}'?" if near else ""
                raise InvalidValue(f"{where} sorting failed: invalid dependency {needed}{meant}", path=places[name])
    try:
        names = tuple(TopologicalSorter(graph.needs).static_order())
    except CycleError as wrong:
        # The sorter names a circle from a task to one that depends on it; people read it the other way round.
        circle = " -> ".join(reversed(wrong.args[1]))
        first = places[wrong.args[1][0]]
        raise InvalidValue(f"{where} sorting failed: graph with cycle: {circle}", path=first) from wrong
    return [(name, graph.tasks[name]) for name in names]


def _check_retry(template: Object, where: str) -> None:
    strategy = template.get("retryStrategy")
    if not strategy:
        return
    policy = strategy.get("retryPolicy")
    if policy and policy not in POLICIES:
        raise InvalidValue(
            f"{where}.retryStrategy.retryPolicy: expected one of {', '.join(POLICIES)}, got {policy!r}",
            path="retryStrategy.retryPolicy",
        )
    if strategy.get("expression"):
        try:
            parse(strategy["expression"])
        except InvalidValue as error:
            raise InvalidValue(f"{where}.retryStrategy.expression: {error}", path="retryStrategy.expression") from error


def _check_referred(template: Object, scope: str) -> None:
    try:
        check_fields({"spec": {"templates": [template]}})
    except InvalidValue as error:
        said = str(error).replace("spec.templates[0]", f"templates.{template['name']}")
        raise InvalidValue(f"workflow template {scope.removeprefix(NAMESPACED)}: {said}") from error


def _check_patch(holder: Object, where: str) -> None:
    """Check what a ``podSpecPatch`` brings; one that is no document before its variables are filled in is left."""
    patch, path = holder.get("podSpecPatch"), f"{'spec.' if where == 'spec' else ''}podSpecPatch"
    if not patch:
        return
    try:
        spec = patched({"containers": [{"name": "main"}]}, patch)
    except InvalidValue as error:
        if "{{" in patch:
            return  # build_pod checks it then
        raise InvalidValue(f"{where}.{error}", path=path) from error
    try:
        check_pod_spec(spec, f"{where}.podSpecPatch", types=False)
    except InvalidValue as error:
        raise InvalidValue(str(error), path=path) from error


def _check_leaf(template: Object, kind: str, where: str) -> None:
    """Check what only local mode asks of a pod, and where outputs come from."""
    if kind == "suspend":
        _check_outputs(template, ("supplied",), where)
        return
    if kind in POD_KINDS:
        if not template[kind].get("command"):
            raise Unsupported(
                f"{where}.{kind}.command: expected a command; local mode has no image to take one from", path=kind
            )
        _check_outputs(template, ("path",), where)


def _check_outputs(template: Object, sources: tuple[str, ...], where: str) -> None:
    for index, declared in enumerate(outputs_of(template)):
        source, path = declared.get("valueFrom") or {}, f"outputs.parameters[{index}].valueFrom"
        said = f"{where}.outputs.parameters.{declared.get('name', '')}.valueFrom"
        if not any(one in source for one in sources):
            raise InvalidValue(
                f"{said}: expected {' or '.join(sources)} in a template of this kind, got"
                f" {', '.join(source) or 'nothing'}",
                path=path,
            )
        if "expression" in sources and "expression" in source:
            try:
                parse(source["expression"])
            except InvalidValue as error:
                raise InvalidValue(f"{said}.expression: {error}", path=f"{path}.expression") from error
