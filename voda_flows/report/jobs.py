"""Finding jobs by the names that people give them, and reading their lives from a store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from scheduler_core.errors import InvalidValue, NotFound
from voda_flows.config import DEFAULT_NAMESPACE, near_miss
from voda_flows.local.store import LocalStore
from voda_flows.objects import WORKFLOW_ENDED, Object, seconds
from voda_flows.report.files import job_folder, read_files
from voda_flows.report.lives import JobLife, lives
from voda_flows.selectors import Selector
from voda_flows.workflows.parameters import JOB_TEMPLATE, PARAMETERS

LATEST = "@latest"
EVERYTHING = Selector()
WORKFLOW_LABEL = "workflows.argoproj.io/workflow"
_CRON_LABEL = "workflows.argoproj.io/cron-workflow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What a name stands for.

    Attributes:
        workflow: The Workflow.
        lives: The jobs meant: all of the Workflow's, or the one that was named.
    """

    workflow: Object
    lives: tuple[JobLife, ...]


def find(store: LocalStore, namespace: str | None, name: str) -> Named:
    """The Workflow and jobs of a name.

    Args:
        store: Where to look.
        namespace: Where the Workflow is; None for anywhere.
        name: ``<workflow>``, ``<workflow>/<job-name>`` or ``@latest``.

    Returns:
        What is meant.

    Raises:
        NotFound: There is none; says which names are near.
        InvalidValue: The name is in several namespaces.
    """
    workflow_name, _, job_name = name.partition("/")
    workflow = _latest(store, namespace) if workflow_name == LATEST else _workflow(store, namespace, workflow_name)
    found = read(store, workflow)
    if not job_name:
        return Named(workflow=workflow, lives=found)
    chosen = tuple(life for life in found if life.name == job_name)
    if not chosen:
        near = near_miss(job_name, [life.name for life in found]) if found else "; it has no job in the queue yet"
        raise NotFound(f"job {name!r}: Workflow {workflow_name!r} has no such job{near}")
    return Named(workflow=workflow, lives=chosen)


def read(store: LocalStore, workflow: Object) -> tuple[JobLife, ...]:
    """The jobs of one Workflow, with their pods."""
    namespace, name = _place(workflow)
    return _lives(store, workflow, store.list("Pod", namespace, {WORKFLOW_LABEL: name}))


def workflows(store: LocalStore, namespace: str | None, labels: Selector = EVERYTHING) -> list[Object]:
    """Workflows in order of creation; those that a CronWorkflow made only in the scheduler's own namespace."""
    found = [workflow for workflow in store.list("Workflow", namespace) if _is_shown(workflow, namespace, labels)]
    return sorted(
        found, key=lambda body: (seconds(body["metadata"]["creationTimestamp"]) or 0, body["metadata"]["name"])
    )


def every(store: LocalStore, namespace: str | None, labels: Selector = EVERYTHING) -> list[Named]:
    """All Workflows (with such labels) and their jobs, in order of creation; pods are read once, however many."""
    pods: dict[tuple[str, str], list[Object]] = {}
    for pod in store.list("Pod", namespace):
        meta = pod["metadata"]
        pods.setdefault((meta["namespace"], (meta.get("labels") or {}).get(WORKFLOW_LABEL, "")), []).append(pod)
    return [
        Named(workflow=workflow, lives=_lives(store, workflow, pods.get(_place(workflow), ())))
        for workflow in workflows(store, namespace, labels)
    ]


def everything(store: LocalStore, namespace: str | None, labels: Selector = EVERYTHING) -> tuple[JobLife, ...]:
    """All jobs (of Workflows with such labels), in order of submission."""
    found = [life for named in every(store, namespace, labels) for life in named.lives]
    return tuple(sorted(found, key=lambda life: (life.submitted_s, life.id)))


def _is_shown(workflow: Object, namespace: str | None, labels: Selector) -> bool:
    """Whether a Workflow is among those that people mean by all of them."""
    own = workflow["metadata"].get("labels") or {}
    return (namespace == DEFAULT_NAMESPACE or _CRON_LABEL not in own) and labels.fits(own)


def _place(workflow: Object) -> tuple[str, str]:
    """Namespace and name."""
    return workflow["metadata"]["namespace"], workflow["metadata"]["name"]


def _lives(store: LocalStore, workflow: Object, pods: Iterable[Object]) -> tuple[JobLife, ...]:
    """The jobs of a Workflow; a job whose engine has not looked yet counts as queued."""
    return tuple(_with_files(life, store.home) for life in lives(workflow, pods)) or _unseen(workflow)


def _with_files(life: JobLife, home: Path) -> JobLife:
    """A job between two segments with the progress of its checkpoint: only a driver at work says how much is left."""
    if life.phase in WORKFLOW_ENDED:
        return _with_reason(life, home)
    if life.counted:
        return life
    for files in reversed(read_files(job_folder(home, life)).values()):
        epoch, step = files.end.get("epoch"), files.end.get("step")
        if isinstance(epoch, int | float) and isinstance(step, int) and epoch > 0:
            return replace(life, done=step, total=max(step, round(step * float(life.asked.get("epochs", "1")) / epoch)))
    return replace(life, done=0, total=0)


def _with_reason(life: JobLife, home: Path) -> JobLife:
    """A job that failed with what its last driver said of it: Argo knows only which node failed first."""
    if life.phase == "Succeeded" or not life.segments:
        return life
    files = read_files(job_folder(home, life)).get(life.segments[-1].number)
    if files is None or files.end.get("outcome") != "failed" or not files.end.get("message"):
        return life
    return replace(life, message=str(files.end["message"]))


def _unseen(workflow: Object) -> tuple[JobLife, ...]:
    """The job of a Workflow that is one job, before the engine has made a node for it."""
    spec, meta = workflow.get("spec") or {}, workflow["metadata"]
    if (spec.get("workflowTemplateRef") or {}).get("name") != JOB_TEMPLATE:
        return ()
    given = (spec.get("arguments") or {}).get("parameters") or []
    defaults = {parameter.name: parameter.default or "" for parameter in PARAMETERS}
    asked = defaults | {entry["name"]: str(entry.get("value", "")) for entry in given}
    status = workflow.get("status") or {}
    ended = status.get("phase") if status.get("phase") in ("Failed", "Error") else None
    return (
        JobLife(
            id=f"{meta['uid']}/{asked['job-name']}",
            namespace=meta["namespace"],
            workflow=meta["name"],
            name=asked["job-name"],
            label=meta["name"],
            phase=ended or "Queued",
            message=status.get("message", ""),
            asked=asked,
            submitted_s=seconds(meta["creationTimestamp"]) or 0.0,
            ended_s=seconds(status.get("finishedAt")),
            done=0,
            total=0,
            segments=(),
        ),
    )


def _workflow(store: LocalStore, namespace: str | None, name: str) -> Object:
    """The Workflow of that name."""
    if namespace is not None:
        try:
            return store.get("Workflow", namespace, name)
        except NotFound as wrong:
            known = [body["metadata"]["name"] for body in workflows(store, namespace)]
            raise NotFound(f"no job {name!r} in namespace {namespace!r}{_near(name, known)}") from wrong
    found = [body for body in store.list("Workflow") if body["metadata"]["name"] == name]
    if len(found) > 1:
        where = ", ".join(body["metadata"]["namespace"] for body in found)
        raise InvalidValue(f"job {name!r} is in several namespaces ({where})\nname one with -n")
    if not found:
        raise NotFound(f"no job {name!r}{_near(name, [body['metadata']['name'] for body in workflows(store, None)])}")
    return found[0]


def _latest(store: LocalStore, namespace: str | None) -> Object:
    """The Workflow that was made last."""
    found = workflows(store, namespace)
    if not found:
        raise NotFound("@latest: there is no job yet\nsubmit one with `voda submit FILE`")
    return found[-1]


def _near(name: str, known: Iterable[str]) -> str:
    """Which name was probably meant."""
    names = list(known)
    return near_miss(name, names) if names else "\nthere is no job yet; submit one with `voda submit FILE`"
