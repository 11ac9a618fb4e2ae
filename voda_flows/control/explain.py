"""Why a job waits, or why it has what it has: sentences for people and codes for programs, from target and world.

In: an object store. Out: what is to be said, the most important first. ``voda explain`` prints it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scheduler_core.allocate.feasible import unschedulable
from scheduler_core.errors import NotFound
from scheduler_core.model.job import Job, JobPhase, WorkerPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.quarantine import quarantines
from scheduler_core.model.reason import Code
from scheduler_core.model.target import Target
from scheduler_core.model.units import in_words
from voda_flows.config import Settings, near_miss
from voda_flows.control import pods, trouble
from voda_flows.control.jobs import DEPTH_LIMIT, STATUS_LIMIT_BYTES
from voda_flows.control.observe import StoreObserver
from voda_flows.control.reports import Reports
from voda_flows.control.targets import StoredTarget
from voda_flows.control.view import JobView
from voda_flows.objects import Object
from voda_flows.report.history import deed, history
from voda_flows.report.times import short, text
from voda_flows.store import ObjectStore
from voda_flows.world import Fetch

#: Lines of the job's own history that are shown.
_RECENT = 5


def explain(
    store: ObjectStore, settings: Settings, name: str, *, namespace: str = "default", fetch: Fetch | None = None
) -> tuple[str, ...]:
    """Why a live job stands where it stands.

    Args:
        store: The world.
        settings: The scheduler's settings.
        name: ``<workflow>`` or ``<workflow>/<job-name>``.
        namespace: Namespace of its Workflow.
        fetch: How drivers are asked, where not at their own addresses.

    Returns:
        Sentences; for a Workflow with several jobs, those of all of them.

    Raises:
        NotFound: No live job of that name.
    """
    return tuple(one.text for one in explained(store, settings, name, namespace=namespace, fetch=fetch))


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One thing that is said of a job.

    Attributes:
        code: What kind of thing, the same in every version (docs/contracts.md, section 8).
        text: A sentence.
        notes: Codes of what it says beside that.
    """

    code: str
    text: str
    notes: tuple[str, ...] = ()


def explained(
    store: ObjectStore, settings: Settings, name: str, *, namespace: str = "default", fetch: Fetch | None = None
) -> tuple[Told, ...]:
    """The same as ``explain``, with codes.

    Raises:
        NotFound: No live job of that name.
    """
    reports = Reports(fetch=fetch)
    observer = StoreObserver(store, settings, reports)
    try:
        observation = observer.observe()
    finally:
        reports.close()
    live = [view for view in observer.views.values() if view.nodes.asked.namespace == namespace]
    found = [view for view in live if name in (_label(view), view.nodes.asked.workflow)]
    if not found:
        hint = near_miss(name, [_label(view) for view in live]) if live else "; there is none"
        raise NotFound(f"job {name!r}: expected a live job in namespace {namespace!r}{hint}")
    seen = Seen(
        observation=observation,
        target=StoredTarget(store, settings.namespace).load(),
        rows=history(store, settings.namespace),
        settings=settings,
    )
    return tuple(one for view in found for one in _all_of(view, seen))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What explanations are made from.

    Attributes:
        observation: The world now.
        target: What the scheduler wants.
        rows: Its recent rounds, oldest first.
        settings: Its settings.
    """

    observation: Observation
    target: Target
    rows: tuple[Object, ...]
    settings: Settings


def _all_of(view: JobView, seen: Seen) -> list[Told]:
    """What is to be said of one job."""
    label, now_s = _label(view), seen.observation.now_s
    if view.job is None:
        return [Told(code="refused", text=f"{label} is refused: {view.refusal}")]
    job = view.job
    rows = (row for row in seen.rows if row["time_s"] >= job.spec.submitted_s)
    limit_s, logs = seen.settings.start_limit_s, _command("logs", view, label)
    return [
        Told(code=job.phase.value.lower(), text=f"{label} {_standing(view, job, now_s)}."),
        *_cause(job, seen),
        *_coded("quarantined", trouble.left_out(job, seen.observation, seen.target)),
        *_coded("decisions-fail", trouble.fenced(seen.target, now_s)),
        *_coded("workers-start", _workers(view, job, seen.settings, now_s)),
        *_coded("pods-wait", _own_pods(view)),
        *_coded("workers-failed", trouble.failing_workers(job, now_s, limit_s, logs)),
        *_limits(view, job, seen),
        *_coded("done", _recent(label, rows)),
    ]


def _coded(code: str, lines: Iterable[str]) -> list[Told]:
    return [Told(code=code, text=line) for line in lines]


def _cause(job: Job, seen: Seen) -> list[Told]:
    """What it waits for, or what the last decision gave it; nothing for one that waits because it is left out."""
    waits, target = job.phase is JobPhase.QUEUED, seen.target
    never = unschedulable(job.spec, seen.observation.cluster) if waits else ""
    if never:
        return [Told(code=Code.UNSCHEDULABLE, text=f"It {never}.")]
    if waits and job.id in quarantines(seen.observation, target):
        return []
    if job.id in target.reasons:
        simply = Code.GRANTED if target.allocation.gpus(job.id) else Code.WAITING
        code, *notes = target.codes.get(job.id, (simply.value,))
        said = f"Decision {target.decision} ({target.policy}): it {target.reasons[job.id]}."
        return [Told(code=code, text=said, notes=tuple(notes))]
    if waits and not trouble.is_fenced(target):
        said = f"No decision has seen it yet; is the scheduler running? See: voda list -n {seen.settings.namespace}"
        return [Told(code="not-decided", text=said)]
    return []


def _standing(view: JobView, job: Job, now_s: float) -> str:
    """Where it stands and since when."""
    spec = job.spec
    size = in_words(job.held_gpus) + (f" of {spec.min_gpus}..{spec.max_gpus}" if spec.is_elastic else "")
    since = f" {short(now_s - job.granted_s)} ago" if job.granted_s else ""
    match job.phase:
        case JobPhase.QUEUED:
            return f"waits at its gate ({_gate(job, now_s)})"
        case JobPhase.STARTING:
            return f"starts on {size}, granted{since}"
        case JobPhase.RUNNING:
            done = job.progress  # nothing while its driver does not answer
            far = f", epoch {done.epoch} of {spec.epochs}, step {done.step}" if done.step else ""
            return f"trains on {size}{far}, granted{since}"
        case JobPhase.STOPPING:
            return f"writes a checkpoint and gives back {size}"
        case _:
            return _between(view, job, now_s)


def _between(view: JobView, job: Job, now_s: float) -> str:
    """Where a job stands that neither has GPUs nor may be given any."""
    if view.nodes.gate_open:
        return f"is held at its gate ({_gate(job, now_s)})"
    if job.granted_s is None:
        return f"is about to come to its gate ({_gate(job, now_s)})"
    return f"is between two segments, its last one was {job.segment}"


def _gate(job: Job, now_s: float) -> str:
    """Which gate, and for how long."""
    return f"queue {job.spec.queue}, submitted {short(now_s - job.spec.submitted_s)} ago, segment {job.segment}"


def _workers(view: JobView, job: Job, settings: Settings, now_s: float) -> list[str]:
    """Workers that are not warm yet, since when they are waited for, and what their pods say."""
    if not job.is_active:
        return []
    late = [worker for worker in job.holding if worker.phase not in (WorkerPhase.READY, WorkerPhase.LEAVING)]
    if not late:
        return []
    names = ", ".join(f"{worker.id} on {worker.node} ({worker.phase.value})" for worker in late)
    longest = short(now_s - min(worker.since_s for worker in late))
    limit = short(settings.start_limit_s)
    told = [(worker.id, view.pod_by_worker.get(worker.id)) for worker in late]
    said = [f"{name} does not run: {why}." for name, pod in told if pod and (why := pods.why_pending(pod))]
    return [
        f"Not warm yet, for {longest} of at most {limit}: {names}; a worker trains when its imports are done.",
        *said,
    ]


def _own_pods(view: JobView) -> list[str]:
    """Its driver or checkpoint step, where it waits for something."""
    told = (("driver", view.driver), ("checkpoint step", view.checkpoint))
    return [f"Its {name} does not run: {why}." for name, pod in told if pod and (why := pods.why_pending(pod))]


def _limits(view: JobView, job: Job, seen: Seen) -> list[Told]:
    """What keeps it from changing."""
    said: list[Told] = []
    settings = seen.settings
    left_s = seen.target.disturbed_s + settings.decide_interval_s - seen.observation.now_s
    if 0 < left_s <= settings.decide_interval_s and job.is_active:  # more: the clock was set back meanwhile
        line = f"Running jobs were last disturbed recently; the next change may come in {short(left_s)}."
        said.append(Told(code=Code.RATE_LIMIT, text=line))
    if job.pinned:
        size = view.nodes.status_bytes
        line = (
            f"It is pinned, neither preempted nor grown any more: {view.nodes.num_segments} segments of at most "
            f"{settings.segments_limit}, {size} bytes of status of at most {STATUS_LIMIT_BYTES}, "
            f"{view.nodes.depth} nested templates of at most {DEPTH_LIMIT}."
        )
        said.append(Told(code=Code.PINNED, text=line))
    if job.retries:
        logs = _command("logs", view, _label(view))
        line = f"Its last {job.retries} segments ended without a new checkpoint; see: {logs}"
        said.append(Told(code="retries", text=line))
    if view.nodes.held:
        rest = "it is not grown" if job.is_active else "its gate is not answered"
        resume = _command("resume", view, view.nodes.asked.workflow)
        line = f"Its Workflow is suspended (see: {resume}) or told to stop: {rest}."
        said.append(Told(code=Code.SUSPENDED, text=line))
    return said


def _recent(label: str, rows: Iterable[Object]) -> list[str]:
    """The last things that were done to it."""
    lines = [
        f"{text(row['time_s'])}: {done}"
        for row in rows
        for action in row.get("actions", ())
        if action.get("job") == label and (done := deed(action))
    ]
    return lines[-_RECENT:]


def _command(verb: str, view: JobView, name: str) -> str:
    """A command line about a job, to be typed as it stands: wherever one stands, its namespace is named."""
    return f"voda {verb} {name} -n {view.nodes.asked.namespace}"


def _label(view: JobView) -> str:
    """As people name it; the second of two steps of one name is set apart by its node, which nobody knows."""
    return f"{view.nodes.asked.workflow}/{view.nodes.asked.given_name}"
