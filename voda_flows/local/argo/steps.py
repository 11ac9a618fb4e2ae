"""Steps: groups that run one after another, the steps of a group at the same time.

In: the frame of a Steps template; out: its node, taken on as far as it goes in one look. A group ends when all its
steps have; it fails when one failed that may not. Later groups read what earlier steps put out.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Any, NamedTuple

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.arguments import expands
from voda_flows.local.argo.conditions import should_run
from voda_flows.local.argo.fan import begun, branches, is_full
from voda_flows.local.argo.names import node_id
from voda_flows.local.argo.nodes import NewNode, is_failed, is_fulfilled
from voda_flows.local.argo.references import unresolved
from voda_flows.local.argo.run import ExecutionError, Frame, Run
from voda_flows.local.argo.scope import aggregate_variables, node_variables, template_outputs
from voda_flows.local.argo.substitute import Variables, substitute
from voda_flows.objects import Object


def run_steps(run: Run, frame: Frame) -> Object:
    """The node of a Steps template, taken on as far as it goes.

    Raises:
        InvalidValue: An output cannot be taken from the steps.
    """
    tree, known = run.tree, dict[str, str]()
    variables = ChainMap[str, Any](known, *frame.variables.maps)
    for index, group in enumerate(frame.template["steps"]):
        name = f"{frame.name}[{index}]"
        if tree.get(name) is None:
            _add_group(run, frame, index)
        node = tree.at(name)
        if not is_fulfilled(node):
            node = _run_group(run, frame, name, [(step, variables) for step in group])
        if not is_fulfilled(node):
            return tree.at(frame.name)
        if is_failed(node):
            _set_outbound(run, frame)
            return tree.mark(frame.name, "Failed", node.get("message", ""))
        for step in group:
            known.update(_step_variables(run, name, step))
    _set_outbound(run, frame)
    outputs = template_outputs(frame.template, variables)
    if outputs is not None:
        tree.update(frame.name, outputs=outputs)
    return tree.mark(frame.name, "Succeeded")


def _add_group(run: Run, frame: Frame, index: int) -> None:
    """Make a group's node and connect it to what comes before it."""
    tree, name = run.tree, f"{frame.name}[{index}]"
    boundary_id = node_id(run.name, frame.name)
    fields = {"templateScope": frame.scope, "nodeFlag": {}}
    tree.add(NewNode(name=name, type="StepGroup", phase="Running", boundary_id=boundary_id, fields=fields))
    if index == 0:
        tree.connect(frame.name, name)
        return
    earlier = f"{frame.name}[{index - 1}]"
    children = tree.children(tree.at(earlier))
    if not children:
        tree.connect(earlier, name)
    for child in children:
        tree.connect_behind(child["name"], name)


def _run_group(run: Run, frame: Frame, name: str, group: list[tuple[Object, Variables]]) -> Object:
    """A group's node after a look at each of its steps; each comes with the variables that it may use."""
    try:
        planned = [one for step, variables in group for one in _planned(run, frame, name, (step, variables))]
    except InvalidValue as error:
        return run.tree.mark(name, "Error", str(error))
    boundary_id, waits = node_id(run.name, frame.name), False
    for step, why_not in planned:
        child = f"{name}.{step['name']}"
        if why_not:
            _skip(run, frame, name, step, why_not)
            continue
        if run.tree.get(child) is None and is_full(run, frame):
            waits = True
            continue
        try:
            run.execute(run, child, frame.child(step, boundary_id))
        except ExecutionError as error:
            run.tree.connect(name, child)
            message = f"step group deemed errored due to child {child} error: {error}"
            return run.tree.mark(name, "Error", message)
        run.tree.connect(name, child)
    if waits:
        return run.tree.at(name)
    return _group_end(run, name, {f"{name}.{step['name']}": step for step, why_not in planned if not why_not})


class _Planned(NamedTuple):
    """A step of a group, and why it does not run where it does not."""

    step: Object
    why_not: str = ""


def _planned(run: Run, frame: Frame, group: str, step: tuple[Object, Variables]) -> list[_Planned]:
    """The steps of a group that one of its template has begun, begins now, or passes over now."""
    written, variables = step
    branch = begun(run, f"{group}.", written)
    if branch is not None:
        return [] if branch.is_skipped else [_Planned(branch.step)]
    if not expands(written):
        try:
            return [_looked_at(substitute(written, variables))]
        except InvalidValue as error:
            raise InvalidValue(f"failed to resolve references: {error}") from error
    found = branches(run, f"{group}.", written, variables)
    if not found:
        _skip(run, frame, group, written, "Skipped, empty params")
    planned = [each for each in found if not each.is_skipped]
    return [_Planned(each.step) if each.has_begun else _looked_at(each.step) for each in planned]


def _looked_at(step: Object) -> _Planned:
    """A step that begins, or does not since its condition does not hold.

    Raises:
        InvalidValue: The condition is none, or the step needs what never came.
    """
    if should_run(step.get("when")):
        unresolved(step)
        return _Planned(step)
    return _Planned(step, f"when '{step['when']}' evaluated false")


def _skip(run: Run, frame: Frame, group: str, step: Object, message: str) -> None:
    child = f"{group}.{step['name']}"
    if run.tree.get(child) is None:
        call = frame.child(step, node_id(run.name, frame.name))
        fields = {**call.fields(), "nodeFlag": {}}
        new = NewNode(name=child, type="Skipped", phase="Skipped", boundary_id=call.boundary_id, message=message,
                      fields=fields)  # fmt: skip
        run.tree.add(new)
        run.tree.connect(group, child)


def _group_end(run: Run, name: str, running: Mapping[str, Object]) -> Object:
    """The group's node, ended where all its children have."""
    children = run.tree.children(run.tree.at(name))
    if not all(is_fulfilled(child) for child in children):
        return run.tree.at(name)
    for child in children:
        if is_failed(child) and not continues_on(running.get(child["name"], {}), child["phase"]):
            return run.tree.mark(name, "Failed", f"child '{child['id']}' failed")
    return run.tree.mark(name, "Succeeded")


def continues_on(step: Mapping[str, Any], phase: str) -> bool:
    """Whether a step or task may end in that phase without failing what is around it."""
    allowed = step.get("continueOn") or {}
    return bool(allowed.get("failed" if phase == "Failed" else "error"))


def _step_variables(run: Run, group: str, step: Object) -> dict[str, str]:
    """What later groups can say about a step."""
    prefix, name = f"steps.{step['name']}", f"{group}.{step['name']}"
    node = run.tree.get(name)
    if node is not None:
        return node_variables(prefix, node)
    children = [child for child in run.tree.children(run.tree.at(group)) if child["name"].startswith(f"{name}(")]
    return aggregate_variables(prefix, [child for child in children if child["type"] != "Skipped"])


def _set_outbound(run: Run, frame: Frame) -> None:
    """Say with which leaves the node ends: those of its last group."""
    for index in range(len(frame.template["steps"]) - 1, -1, -1):
        last = run.tree.get(f"{frame.name}[{index}]")
        if last is not None:
            leaves = [leaf for child in last.get("children") or () for leaf in run.tree.outbound(child)]
            run.tree.update(frame.name, outboundNodes=leaves)
            return
