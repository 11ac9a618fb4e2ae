"""Steps and tasks that run once per item of a list, and how many may run at once.

In: a step or task as its template has it, and the variables that it may use; out: one step per item. What has begun
goes on with what it began with: its arguments are not worked out again, so a large fan-out that waits costs little.
"""

from __future__ import annotations

from dataclasses import dataclass

from voda_flows.local.argo.arguments import EXPANDING, for_item, items
from voda_flows.local.argo.names import item_name, node_id
from voda_flows.local.argo.nodes import is_fulfilled
from voda_flows.local.argo.run import Frame, Run
from voda_flows.local.argo.substitute import Variables, substitute
from voda_flows.objects import Object

COUNTED = frozenset({"Pod", "Steps", "DAG"})  # node types that ``parallelism`` counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One step or task that stands beside others, and whether it has begun (or was skipped) already."""

    step: Object
    has_begun: bool
    is_skipped: bool = False


def begun(run: Run, prefix: str, step: Object) -> Branch | None:
    """The branch of a step whose node is there; ``prefix`` stands before its name in the node's."""
    node = run.tree.get(prefix + step["name"])
    if node is None:
        return None
    return Branch(step=step, has_begun=True, is_skipped=node["type"] == "Skipped")


def branches(run: Run, prefix: str, written: Object, variables: Variables) -> list[Branch]:
    """One branch per item.

    Raises:
        InvalidValue: What should be a list is none.
    """
    lists = {name: written[name] for name in EXPANDING if name in written}
    found, filled = list[Branch](), None
    for index, item in enumerate(items(substitute(lists, variables))):
        old = begun(run, prefix, {**written, "name": item_name(written["name"], index, item)})
        if old is None:
            filled = filled or substitute(written, variables)
            old = Branch(step=for_item(filled, index, item), has_begun=False)
        found.append(old)
    return found


def is_full(run: Run, frame: Frame) -> bool:
    """Whether as many steps or tasks of the template run as its ``parallelism`` allows."""
    limit = frame.template.get("parallelism")
    if limit is None:
        return False
    key = node_id(run.name, frame.name)
    active = (node for node in run.tree.by_id.values() if node.get("boundaryID") == key and node["type"] in COUNTED)
    return sum(not is_fulfilled(node) for node in active) >= int(limit)
