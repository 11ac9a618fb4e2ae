"""DAG: tasks that run when what they depend on has ended as they ask for.

In: the frame of a DAG template; out: its node, taken on as far as it goes in one look. ``depends`` is a condition
over the ends of other tasks; ``dependencies`` is the older spelling. Whether the DAG failed is told by its targets
(tasks on which no other depends): one that never ran takes over how the branch before it ended.
"""

from __future__ import annotations

from collections import ChainMap, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.arguments import expands
from voda_flows.local.argo.conditions import should_run
from voda_flows.local.argo.expressions import compute, names, parse
from voda_flows.local.argo.fan import Branch, branches, is_full
from voda_flows.local.argo.names import node_id
from voda_flows.local.argo.nodes import NewNode, is_completed, is_failed, is_fulfilled
from voda_flows.local.argo.references import unresolved
from voda_flows.local.argo.run import ExecutionError, Frame, Run
from voda_flows.local.argo.scope import aggregate_variables, node_variables, template_outputs
from voda_flows.local.argo.substitute import substitute
from voda_flows.objects import Object

RESULTS = ("Succeeded", "Failed", "Errored", "Skipped", "Omitted", "Daemoned", "AnySucceeded", "AllFailed")
DEFAULT_RESULTS = ("Succeeded", "Skipped", "Daemoned")
PHASE_OF_RESULT = {"Succeeded": "Succeeded", "Failed": "Failed", "Errored": "Error", "Skipped": "Skipped",
                   "Omitted": "Omitted"}  # fmt: skip
SEVERITY = {"Succeeded": 0, "Failed": 1, "Error": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The tasks of a DAG template by name, in order, with the names each depends on and its condition."""

    tasks: Mapping[str, Object]
    needs: Mapping[str, tuple[str, ...]]
    logic: Mapping[str, str]

    @property
    def targets(self) -> tuple[str, ...]:
        """The tasks on which no other depends, in the order of their names: so the controller begins with them."""
        needed = {name for needs in self.needs.values() for name in needs}
        return tuple(sorted(name for name in self.tasks if name not in needed))

    def before(self, name: str) -> tuple[str, ...]:
        """All tasks before one, near and far; the task itself is among them where it depends on itself."""
        found: dict[str, None] = {}
        queue = deque(self.needs[name])
        while queue:
            one = queue.popleft()
            if one not in found:
                found[one] = None
                queue.extend(self.needs.get(one, ()))
        return tuple(found)


def depends_logic(task: Mapping[str, Any]) -> str:
    """The condition of a task as one ``depends`` text; the older spelling is turned into it."""
    if task.get("depends"):
        return str(task["depends"])
    return " && ".join(task.get("dependencies") or ())


def graph_of(template: Object) -> Graph:
    """The graph of a DAG template; names in conditions are whole task names, dashes included."""
    tasks = {task["name"]: task for task in template["dag"]["tasks"]}
    logic = {name: depends_logic(task) for name, task in tasks.items()}
    needs = {name: _named(condition, tasks) for name, condition in logic.items()}
    return Graph(tasks=tasks, needs=needs, logic=logic)


def _named(condition: str, tasks: Mapping[str, Object]) -> tuple[str, ...]:
    by_word = {word_of(name): name for name in tasks}
    found = [name.split(".", 1)[0] for name in names(parse(word_of(condition)))] if condition.strip() else []
    return tuple(dict.fromkeys(by_word.get(word, word) for word in found))


def word_of(name: str) -> str:
    """A task's name as the language of conditions can read it."""
    return name.replace("-", "_")


def run_dag(run: Run, frame: Frame) -> Object:
    """The node of a DAG template, taken on as far as it goes.

    Raises:
        InvalidValue: An output cannot be taken from the tasks.
    """
    graph, tree = graph_of(frame.template), run.tree
    is_stopped = not run.may_execute(frame.call.on_exit)
    seen: set[str] = set()
    for name in graph.targets:
        if not is_stopped or tree.get(_node(frame, name)) is not None:
            _visit(run, frame, graph, name, seen)
    phase = "Failed" if is_stopped else _phase(run, frame, graph)
    if phase == "Running":
        return tree.at(frame.name)
    ends = [tree.at(_node(frame, name)) for name in graph.targets if tree.get(_node(frame, name)) is not None]
    tree.update(frame.name, outboundNodes=[leaf for end in ends for leaf in tree.outbound(end["id"])])
    if phase == "Succeeded":
        known: dict[str, str] = {}
        for name in graph.tasks:
            known.update(_task_variables(run, frame, name))
        outputs = template_outputs(frame.template, ChainMap[str, Any](known, *frame.variables.maps))
        if outputs is not None:
            tree.update(frame.name, outputs=outputs)
    return tree.mark(frame.name, phase)


def _node(frame: Frame, task: str) -> str:
    return f"{frame.name}.{task}"


def _visit(run: Run, frame: Frame, graph: Graph, name: str, seen: set[str]) -> None:
    """Take a task on, those it depends on first."""
    if name in seen:
        return
    seen.add(name)
    node = run.tree.get(_node(frame, name))
    if node is not None and is_fulfilled(node):
        return
    for needed in graph.needs[name]:
        _visit(run, frame, graph, needed, seen)
    decided = _depends(run, frame, graph, name)
    if decided is None:
        return
    if not decided:
        _add_skipped(run, frame, graph, name, ("Omitted", "omitted: depends condition not met"))
        return
    _run_task(run, frame, graph, name)


def _depends(run: Run, frame: Frame, graph: Graph, name: str) -> bool | None:
    """Whether a task's condition holds; None while what it depends on still runs."""
    nodes = {needed: run.tree.get(_node(frame, needed)) for needed in graph.needs[name]}
    if any(node is None or not is_fulfilled(node) for node in nodes.values()):
        return None
    if not graph.logic[name].strip():
        return True
    results: dict[str, bool] = {}
    for needed, node in nodes.items():
        if node is not None:
            results |= _results(run, graph.tasks[needed], node)
    return bool(compute(parse(word_of(graph.logic[name])), lambda word: results[word]))


def _results(run: Run, task: Object, node: Object) -> dict[str, bool]:
    """How a task ended, under the words that a condition may use; its bare name is its default."""
    word, children = word_of(task["name"]), run.tree.children(node) if node["type"] == "TaskGroup" else []
    ended = {result: node["phase"] == PHASE_OF_RESULT.get(result) for result in RESULTS}
    ended["AnySucceeded"] = any(child["phase"] == "Succeeded" for child in children)
    ended["AllFailed"] = bool(children) and all(child["phase"] == "Failed" for child in children)
    allowed = task.get("continueOn") or {}
    default = [*DEFAULT_RESULTS, *(["Failed"] if allowed.get("failed") else []),
               *(["Errored"] if allowed.get("error") else [])]  # fmt: skip
    return {word: any(ended[result] for result in default)} | {f"{word}.{key}": held for key, held in ended.items()}


def _run_task(run: Run, frame: Frame, graph: Graph, name: str) -> None:
    """Take on a task whose turn it is."""
    written = graph.tasks[name]
    node = run.tree.get(_node(frame, name))
    if node is not None and node["type"] != "TaskGroup":
        _execute(run, frame, written)
        return
    known: dict[str, str] = {}
    for needed in graph.before(name):
        known.update(_task_variables(run, frame, needed))
    variables = ChainMap[str, Any](known, *frame.variables.maps)
    try:
        if expands(written):
            _run_fan(run, frame, graph, branches(run, f"{frame.name}.", written, variables), name)
        else:
            _begin(run, frame, graph, substitute(written, variables))
    except InvalidValue as error:
        _add_skipped(run, frame, graph, name, ("Error", str(error)))


def _begin(run: Run, frame: Frame, graph: Graph, task: Object) -> None:
    """Begin a task that runs once, where its condition and the template's parallelism let it."""
    if not should_run(task.get("when")):
        _add_skipped(run, frame, graph, task["name"], ("Skipped", f"when '{task['when']}' evaluated false"))
        return
    unresolved(task)
    if not is_full(run, frame):
        _execute(run, frame, task)
        _connect(run, frame, graph, task["name"])


def _execute(run: Run, frame: Frame, task: Object) -> None:
    with suppress(ExecutionError):  # its node says so, and fails the branch
        run.execute(run, _node(frame, task["name"]), frame.child(task, node_id(run.name, frame.name)))


def _run_fan(run: Run, frame: Frame, graph: Graph, found: Sequence[Branch], name: str) -> None:
    """A task that runs once per item: a group node with one child each."""
    tree, group, boundary_id = run.tree, _node(frame, name), node_id(run.name, frame.name)
    if not found:
        _add_skipped(run, frame, graph, name, ("Skipped", "Skipped, empty params"))
        return
    if tree.get(group) is None:
        fields = {**frame.child(graph.tasks[name], boundary_id).fields(), "nodeFlag": {}}
        tree.add(NewNode(name=group, type="TaskGroup", phase="Running", boundary_id=boundary_id, fields=fields))
        _connect(run, frame, graph, name)
    for branch in found:
        if branch.has_begun:
            _execute(run, frame, branch.step)
        elif _begin_item(run, frame, branch.step):
            tree.connect(group, _node(frame, branch.step["name"]))
    children = tree.children(tree.at(group))
    if len(children) == len(found) and all(is_fulfilled(child) for child in children):
        failed = [child["phase"] for child in children if is_failed(child)]
        tree.mark(group, failed[-1] if failed else "Succeeded")


def _begin_item(run: Run, frame: Frame, task: Object) -> bool:
    """Begin one item of a fan-out; whether it has a node now."""
    child, call = _node(frame, task["name"]), frame.child(task, node_id(run.name, frame.name))
    if not should_run(task.get("when")):
        new = NewNode(name=child, type="Skipped", phase="Skipped", boundary_id=call.boundary_id,
                      message=f"when '{task['when']}' evaluated false",
                      fields={**call.fields(), "nodeFlag": {}})  # fmt: skip
        run.tree.add(new)
        return True
    if is_full(run, frame):
        return False
    unresolved(task)
    _execute(run, frame, task)
    return True


def _add_skipped(run: Run, frame: Frame, graph: Graph, name: str, end: tuple[str, str]) -> None:
    """A node for a task that does not run: (phase, message)."""
    call = frame.child(graph.tasks[name], node_id(run.name, frame.name))
    new = NewNode(name=_node(frame, name), type="Skipped", phase=end[0], boundary_id=call.boundary_id,
                  message=end[1], fields={**call.fields(), "nodeFlag": {}})  # fmt: skip
    run.tree.add(new)
    _connect(run, frame, graph, name)


def _connect(run: Run, frame: Frame, graph: Graph, name: str) -> None:
    """Make a task's node a child of what it depends on, or of the DAG's own node."""
    if not graph.needs[name]:
        run.tree.connect(frame.name, _node(frame, name))
    for needed in graph.needs[name]:
        run.tree.connect_behind(_node(frame, needed), _node(frame, name))


def _task_variables(run: Run, frame: Frame, name: str) -> dict[str, str]:
    node = run.tree.get(_node(frame, name))
    if node is None:
        return {}
    prefix = f"tasks.{name}"
    if node["type"] == "TaskGroup":
        children = [child for child in run.tree.children(node) if child["type"] != "Skipped"]
        return node_variables(prefix, node) | aggregate_variables(prefix, children)
    return node_variables(prefix, node)


def _phase(run: Run, frame: Frame, graph: Graph) -> str:
    """How the DAG stands: ``Running`` until nothing runs and its targets are decided."""
    ends = _branch_ends(run, frame)
    if ends is None:
        return "Running"
    fail_fast = frame.template["dag"].get("failFast", True)
    result = "Succeeded"
    for name in graph.targets:
        phase = ends.get(node_id(run.name, _node(frame, name)))
        if phase is None:
            result = "Running"
            if not fail_fast:
                break
        elif phase in {"Failed", "Error"} and not _may_fail(graph.tasks[name], phase):
            result = phase
            if fail_fast:
                break
    return result


def _may_fail(task: Object, phase: str) -> bool:
    return bool((task.get("continueOn") or {}).get("failed" if phase == "Failed" else "error"))


def _branch_ends(run: Run, frame: Frame) -> dict[str, str] | None:
    """By node id, how the branch that leads to a node ended, the worst where several do; None while one runs."""
    nodes, ends = run.tree.by_id, dict[str, str]()
    queue = deque((child, "Succeeded") for child in run.tree.at(frame.name).get("children") or ())
    while queue:
        key, phase = queue.popleft()
        node = nodes.get(key)
        if node is None or not is_fulfilled(node):
            return None
        if is_completed(node):
            phase = node["phase"]
        if key in ends and SEVERITY[ends[key]] >= SEVERITY[phase]:
            continue
        ends[key] = phase
        children = node.get("children") or []
        if node["type"] in {"Retry", "TaskGroup"} and children:
            children = nodes[children[-1]].get("children") or []
        queue.extend((child, phase) for child in children)
    return ends
