"""Running a template as a node: the one place through which every node with a template goes.

In: a node's name and who calls which template for it; out: the node as it is now. Ended nodes are left alone,
groups go on to their steps or tasks, pods are asked for, suspended nodes wait. It may be repeated with no effect.
"""

from __future__ import annotations

from collections import ChainMap

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo import dag, retry, steps, suspend
from voda_flows.local.argo.arguments import input_parameters, input_variables
from voda_flows.local.argo.look import LATE
from voda_flows.local.argo.names import pod_name
from voda_flows.local.argo.nodes import NewNode, is_fulfilled
from voda_flows.local.argo.pods import PodRequest, build_pod
from voda_flows.local.argo.references import wants_result
from voda_flows.local.argo.run import MAX_DEPTH, POD_KINDS, Call, ExecutionError, Frame, Run, kind_of
from voda_flows.local.argo.substitute import substitute
from voda_flows.objects import Object

NODE_TYPES = {"steps": "Steps", "dag": "DAG", "container": "Pod", "script": "Pod", "suspend": "Suspend"}
INHERITED = ("nodeSelector", "tolerations")  # of the steps or the graph around a pod, before the Workflow's own
RECREATE_S = 0.5  # how soon to look whether a pod's name has become free


def execute(run: Run, name: str, call: Call) -> Object:
    """The node of that name, begun or taken on by one look.

    Raises:
        ExecutionError: The template is not there or its inputs are wrong; the node says so too.
    """
    node = run.tree.get(name)
    if node is not None and (is_fulfilled(node) or _is_pod_at_work(run, node)):
        return node
    try:
        frame = _frame(run, name, call)
        if "retryStrategy" in frame.template:
            return retry.run_retry(run, frame, start)
        return start(run, frame)
    except InvalidValue as error:
        _mark_error(run, name, call, str(error))
        raise ExecutionError(str(error)) from error


def start(run: Run, frame: Frame) -> Object:
    """Begin or take on a node by its template's kind, retries apart."""
    kind = kind_of(frame.template)
    if kind in POD_KINDS:
        return _run_pod(run, frame)
    node = run.tree.get(frame.name)
    if node is None:
        node = run.tree.add(frame.new_node(NODE_TYPES[kind], "Running"))
        if kind == "suspend":
            suspend.begin(run, frame)
    if kind == "suspend":
        return suspend.run_suspend(run, frame)
    return steps.run_steps(run, frame) if kind == "steps" else dag.run_dag(run, frame)


def _frame(run: Run, name: str, call: Call) -> Frame:
    template, scope = run.templates.resolve(call.target, call.scope)
    if call.depth > MAX_DEPTH:
        raise InvalidValue(f"Maximum recursion depth exceeded: more than {MAX_DEPTH} nested templates")
    node = run.tree.get(name)
    if node is None:
        declared = substitute({"inputs": template.get("inputs") or {}}, run.variables)
        inputs = tuple(input_parameters(declared, call.target.get("arguments")))
    else:  # what it began with is what it goes on with
        inputs = tuple((node.get("inputs") or {}).get("parameters") or ())
    local = {"node.name": name, **input_variables(inputs)}
    if kind_of(template) in POD_KINDS:
        local["pod.name"] = pod_name(run.name, name, template.get("name", ""))
    variables = ChainMap(local, run.variables)
    return Frame(name=name, template=template, scope=scope, call=call, inputs=inputs, variables=variables)


def _is_pod_at_work(run: Run, node: Object) -> bool:
    """Whether nothing is to be done for a pod's node: its pod is there, or was seen running."""
    return node["type"] == "Pod" and (node["phase"] != "Pending" or node_pod_name(run.name, node) in run.pods)


def node_pod_name(workflow: str, node: Object) -> str:
    """The name of a node's pod."""
    template = node.get("templateName") or (node.get("templateRef") or {}).get("template") or ""
    return pod_name(workflow, node["name"], template)


def _run_pod(run: Run, frame: Frame) -> Object:
    node = run.tree.get(frame.name) or run.tree.add(frame.new_node("Pod", "Pending"))
    if not run.may_execute(frame.call.on_exit):
        return run.tree.mark(frame.name, "Failed", f"workflow shutdown with strategy: {run.shutdown}")
    if run.is_late:
        return run.tree.mark(frame.name, "Failed", LATE)
    request = PodRequest(
        pod_name=pod_name(run.name, frame.name, frame.template.get("name", "")),
        node_name=frame.name,
        on_exit=frame.call.on_exit,
        wants_result=wants_result(frame.call.parent, frame.call.target),
    )
    if request.pod_name in run.taken:
        run.look_again(RECREATE_S)
    elif request.pod_name not in run.pods:
        placed = _placed(_without_inputs(frame.template), frame.call.parent or {})
        template = substitute(placed, frame.variables)
        pod = build_pod(request, template, run.workflow, run.spec)
        run.create[request.pod_name] = _with_deadline(run, pod)
    return node


def _with_deadline(run: Run, pod: Object) -> Object:
    """The pod with what is left of the Workflow's own deadline, where that is sooner than its own."""
    if run.deadline is not None:
        left_s = max(1, int((run.deadline - run.now).total_seconds()))
        pod["spec"]["activeDeadlineSeconds"] = min(left_s, pod["spec"].get("activeDeadlineSeconds", left_s))
    return pod


def _without_inputs(template: Object) -> Object:
    return {name: value for name, value in template.items() if name != "inputs"}


def _placed(template: Object, around: Object) -> Object:
    """The template with the place of the one around it, where it names none of its own."""
    taken = {field: around[field] for field in INHERITED if around.get(field) and not template.get(field)}
    return {**template, **taken}


def _mark_error(run: Run, name: str, call: Call, message: str) -> None:
    if run.tree.get(name) is None:
        fields = {**call.fields(), "nodeFlag": {}}
        new = NewNode(name=name, type="Skipped", phase="Error", boundary_id=call.boundary_id, message=message,
                      fields=fields)  # fmt: skip
        run.tree.add(new)
    else:
        run.tree.mark(name, "Error", message)
