"""Finding jobs by the names that people give them, and reading their lives from a store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from scheduler_core.errors import InvalidValue, NotFound
from voda_flows.config import SCHEDULER_CRON, near_miss
from voda_flows.objects import CRON_LABEL, WORKFLOW_ENDED, WORKFLOW_LABEL, Object, seconds
from voda_flows.report import settled
from voda_flows.report.lives import JobLife, epochs_of, lives
from voda_flows.report.progress import UNITS_PER_EPOCH
from voda_flows.report.sources import Source, source_of
from voda_flows.selectors import Selector
from voda_flows.store import ObjectStore
from voda_flows.workflows.parameters import JOB_TEMPLATE, PARAMETERS
from voda_flows.worlds import home_of

LATEST = "@latest"
EVERYTHING = Selector()


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What a name stands for.

    Attributes:
        workflow: The Workflow.
        lives: The jobs meant: all of the Workflow's, or the one that was named.
    """

    workflow: Object
    lives: tuple[JobLife, ...]


def find(store: ObjectStore, namespace: str | None, name: str) -> Named:
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


def read(store: ObjectStore, workflow: Object) -> tuple[JobLife, ...]:
    """The jobs of one Workflow, with their pods."""
    namespace, name = _place(workflow)
    return _lives(store, workflow, store.list("Pod", namespace, {WORKFLOW_LABEL: name}))


def workflows(store: ObjectStore, namespace: str | None, labels: Selector = EVERYTHING) -> list[Object]:
    """Workflows in order of creation; the scheduler's own only where its namespace is asked for."""
    found = [workflow for workflow in store.list("Workflow", namespace) if _is_shown(workflow, namespace, labels)]
    return sorted(found, key=_creation)


def every(store: ObjectStore, namespace: str | None, labels: Selector = EVERYTHING) -> list[Named]:
    """All Workflows (with such labels) and their jobs, in order of creation; pods are read once, however many."""
    pods = _by_workflow(store.list("Pod", namespace))
    return [
        Named(workflow=workflow, lives=_lives(store, workflow, pods.get(_place(workflow), ())))
        for workflow in workflows(store, namespace, labels)
    ]


def brief(store: ObjectStore, namespace: str | None, labels: Selector = EVERYTHING) -> list[Named]:
    """As ``every``; a Workflow that has ended for good is the head of its document only, and costs no reading of it.

    On a cluster nothing is remembered.
    """
    memos = settled.memos(store)
    if memos is None:
        return every(store, namespace, labels)
    known = [Named(workflow=head, lives=said) for head, said in map(settled.read, memos.texts("Workflow", namespace))]
    pods, made, texts = _by_workflow(memos.others("Pod", namespace)), [], {}
    for workflow in memos.others("Workflow", namespace):
        own = pods.get(_place(workflow), ())
        made.append(Named(workflow=workflow, lives=_lives(store, workflow, own)))
        if settled.is_settled(workflow, own):
            meta = workflow["metadata"]
            texts[meta["uid"], int(meta["resourceVersion"])] = settled.text_of(workflow, made[-1].lives)
    memos.keep(texts)
    shown = [named for named in (*known, *made) if _is_shown(named.workflow, namespace, labels)]
    return sorted(shown, key=lambda named: _creation(named.workflow))


def everything(store: ObjectStore, namespace: str | None, labels: Selector = EVERYTHING) -> tuple[JobLife, ...]:
    """All jobs (of Workflows with such labels), in order of submission."""
    found = [life for named in brief(store, namespace, labels) for life in named.lives]
    return tuple(sorted(found, key=lambda life: (life.submitted_s, life.id)))


def _by_workflow(pods: Iterable[Object]) -> dict[tuple[str, str], list[Object]]:
    """Pods by namespace and name of their Workflow."""
    found: dict[tuple[str, str], list[Object]] = {}
    for pod in pods:
        meta = pod["metadata"]
        found.setdefault((meta["namespace"], (meta.get("labels") or {}).get(WORKFLOW_LABEL, "")), []).append(pod)
    return found


def _creation(workflow: Object) -> tuple[float, str]:
    """The order of creation."""
    meta = workflow["metadata"]
    return seconds(meta["creationTimestamp"]) or 0.0, meta["name"]


def is_schedulers(workflow: Object) -> bool:
    """Whether a Workflow is a run of the scheduler: shown where its namespace is named, meant by its own name only."""
    return (workflow["metadata"].get("labels") or {}).get(CRON_LABEL) == SCHEDULER_CRON


def _is_shown(workflow: Object, namespace: str | None, labels: Selector) -> bool:
    """Whether a Workflow is among those that people see where they ask for all of them."""
    return (namespace is not None or not is_schedulers(workflow)) and labels.fits(workflow["metadata"].get("labels"))


def _place(workflow: Object) -> tuple[str, str]:
    """Namespace and name."""
    return workflow["metadata"]["namespace"], workflow["metadata"]["name"]


def _lives(store: ObjectStore, workflow: Object, pods: Iterable[Object]) -> tuple[JobLife, ...]:
    """The jobs of a Workflow; a job whose engine has not looked yet counts as queued."""
    source = source_of(store, home_of(store))
    return tuple(_with_ends(life, source) for life in lives(workflow, pods)) or _unseen(workflow)


def _with_ends(life: JobLife, source: Source) -> JobLife:
    """A job with what its drivers said at their ends: how far they had come, and why the last one failed."""
    if life.phase == "Succeeded" or not life.segments:
        return life
    ends, furthest = source.ends(life), source.furthest(life)
    epochs = [*furthest.values(), *(end.get("epoch") for end in ends.values())]
    done = max([life.done, *(round(epoch * UNITS_PER_EPOCH) for epoch in epochs if isinstance(epoch, int | float))])
    total = life.total or (round(epochs_of(life.asked) * UNITS_PER_EPOCH) if done else 0)
    reason = _reason(ends.get(life.segments[-1].number, {})) if life.phase in WORKFLOW_ENDED else ""
    return replace(
        life,
        done=done,
        total=max(done, total),
        message=reason or life.message,
        is_known=life.is_known or bool(furthest),
    )


def _reason(end: Object) -> str:
    """Why a job failed as its last driver said, empty where it did not: Argo knows only which node failed first."""
    return str(end.get("message") or "") if end.get("outcome") == "failed" else ""


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


def _workflow(store: ObjectStore, namespace: str | None, name: str) -> Object:
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


def _latest(store: ObjectStore, namespace: str | None) -> Object:
    """The Workflow that was made last; never one of the scheduler's, of which one is made every few minutes."""
    found = [workflow for workflow in workflows(store, namespace) if not is_schedulers(workflow)]
    if not found:
        raise NotFound("@latest: there is no job yet\nsubmit one with `voda submit FILE`")
    return found[-1]


def _near(name: str, known: Iterable[str]) -> str:
    """Which name was probably meant."""
    names = list(known)
    return near_miss(name, names) if names else "\nthere is no job yet; submit one with `voda submit FILE`"
