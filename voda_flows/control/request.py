"""Whether a training job asks for something legal: one check, for submission and for the gate, with one text.

``kubectl`` and ``argo`` pass no check of ours, so the scheduler asks again when a job stands at its gate. Everything
wrong is said at once. Values that hold ``{{`` are not known before the step runs and are left to the gate.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler_core.errors import InvalidValue
from scheduler_core.model.job import JobSpec
from scheduler_core.model.queue import Queue
from voda_flows.config import Settings, near_miss
from voda_flows.objects import Object
from voda_flows.workflows.parameters import JOB_ENTRYPOINT, JOB_TEMPLATE, PARAMETERS

#: Launch adapters that the driver knows.
LAUNCHERS = ("horovod",)
#: The driver, beside the workers, counts against a Workflow's ``parallelism``.
_DRIVERS = 1
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST = 253
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
_SMALLEST = {
    "min-gpus": 1,
    "max-gpus": 1,
    "gpus-per-worker": 1,
    "epochs": 1,
    "checkpoint-steps": 0,
    "retry-limit": 0,
    "restart-limit": 0,
}
_FAULTS, _SHOWN = 10, 400  # of a message: it ends up in the Workflow's status
_DEFAULTS = {row.name: row.default for row in PARAMETERS}


class Fault(NamedTuple):
    """Something that is not legal."""

    name: str
    """The parameter, or ``parallelism`` for the Workflow's own."""
    text: str


class Step(NamedTuple):
    """A training step of a document."""

    path: str
    """Where it stands."""
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a request is measured against.

    Attributes:
        settings: Priority classes and queues.
        gpus_by_type: All GPUs of the cluster by type; empty when not known.
    """

    settings: Settings
    gpus_by_type: Mapping[str, int] = field(default_factory=dict)

    @property
    def queues(self) -> Mapping[str, Queue]:
        """The queues by name."""
        return self.settings.queues


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One training step's parameters and where they stand.

    Attributes:
        workflow_uid: Uid of its Workflow, empty before submission.
        namespace: The Workflow's namespace.
        workflow: The Workflow's name.
        parameters: Text by name; what is left out has its default.
        submitted_s: When it reached the queue, seconds since the epoch.
        parallelism: The Workflow's own limit of pods at once, None for none.
        started: Whether it has held GPUs before: it is not refused any more, whatever became of queues and nodes.
    """

    workflow_uid: str
    namespace: str
    workflow: str
    parameters: Mapping[str, str]
    submitted_s: float = 0.0
    parallelism: int | None = None
    started: bool = False

    @property
    def name(self) -> str:
        """The job's name within its Workflow."""
        return self.text("job-name")

    @property
    def given_name(self) -> str:
        """The name that its user gave; ``jobs.py`` sets the second of two steps of one name apart by its node."""
        return self.name.partition("@")[0]

    def text(self, name: str) -> str:
        """A parameter's value or default; empty where it has none."""
        return self.parameters.get(name) or _DEFAULTS[name] or ""

    def is_open(self, name: str) -> bool:
        """Whether a value is not known yet."""
        return "{{" in self.text(name)

    def number(self, name: str) -> int | None:
        """A whole number, or None where the text is none."""
        text = self.text(name).strip()
        return int(text) if _INTEGER.fullmatch(text) else None


def read_request(asked: Asked, limits: Limits) -> JobSpec:
    """The job that a training step asks for.

    Args:
        asked: Its parameters.
        limits: What they are measured against.

    Returns:
        The request, legal.

    Raises:
        InvalidValue: Naming the job and everything that is wrong with it.
    """
    if not asked.started:
        check_request(asked, limits)
    numbers = {name: asked.number(name) or 0 for name in _SMALLEST}
    return JobSpec(
        id=f"{asked.workflow_uid}/{asked.name}",
        namespace=asked.namespace,
        workflow=asked.workflow,
        name=asked.name,
        submitted_s=asked.submitted_s,
        min_gpus=numbers["min-gpus"],
        max_gpus=numbers["max-gpus"],
        gpus_per_worker=numbers["gpus-per-worker"],
        queue=asked.text("queue"),
        priority=_priority(asked, limits) or 0,
        gpu_type=asked.text("gpu-type"),
        category=asked.text("category"),
        epochs=numbers["epochs"],
    )


def check_request(asked: Asked, limits: Limits) -> None:
    """Refuse what is not legal.

    Raises:
        InvalidValue: Naming the job and everything that is wrong with it; its path is the first wrong parameter's name.
    """
    faults = [*_check_names(asked), *_check_numbers(asked), *_check_bounds(asked)]
    faults += [*_check_cluster(asked, limits), *_check_queue(asked, limits)]
    if faults:
        said = "; ".join(textwrap.shorten(fault.text, _SHOWN, placeholder=" ...") for fault in faults[:_FAULTS])
        raise InvalidValue(f"job {asked.workflow}/{asked.name}: {said}", path=faults[0].name)


def check_submission(workflow: Object, limits: Limits) -> None:
    """Refuse a Workflow in whose training steps something is not legal, before it is submitted.

    Args:
        workflow: Its raw document; Workflows without training steps pass.
        limits: What its requests are measured against.

    Raises:
        InvalidValue: Naming the first job that is not legal, with the path of what is wrong.
    """
    names: dict[str, str] = {}
    for step, asked in _asked(workflow):
        try:
            check_request(asked, limits)
        except InvalidValue as wrong:
            raise InvalidValue(str(wrong), path=_path(step, wrong.path)) from wrong
        if asked.name in names and not asked.is_open("job-name"):
            said = f"job {asked.workflow}/{asked.name}: {twice(asked.name)}"
            raise InvalidValue(said, path=_path(step, "job-name"))
        names[asked.name] = step.path


def remarks(workflow: Object, limits: Limits) -> list[str]:
    """What is legal, and yet will not be as its author may expect: sizes that this cluster does not have.

    Args:
        workflow: Its raw document.
        limits: What its requests are measured against.

    Returns:
        A sentence each.
    """
    return [text for _, asked in _asked(workflow) if (text := _beyond(asked, limits))]


def _beyond(asked: Asked, limits: Limits) -> str:
    """What becomes of a request for more than the cluster has; empty where it is not one."""
    kinds, kind = limits.gpus_by_type, asked.text("gpu-type")
    low, high = asked.number("min-gpus") or 0, asked.number("max-gpus") or 0
    if not kinds or asked.is_open("gpu-type") or (kind and kind not in kinds):
        return ""
    total = kinds[kind] if kind else sum(kinds.values())
    has = f"the cluster has {total}{f' of {kind}' if kind else ''}"
    if low > total:
        return f"job {asked.workflow}/{asked.name}: min-gpus is {low} and {has}: it waits until there are more"
    if high > total:
        return f"job {asked.workflow}/{asked.name}: max-gpus is {high} and {has}: it gets {total} at most"
    return ""


def _asked(workflow: Object) -> Iterator[tuple[Step, Asked]]:
    """The training steps of a document, and what each asks for."""
    metadata, spec = workflow.get("metadata") or {}, workflow.get("spec") or {}
    parallelism = spec.get("parallelism")
    for step in _training_steps(spec):
        yield (
            step,
            Asked(
                workflow_uid="",
                namespace=metadata.get("namespace") or "default",
                workflow=metadata.get("name") or metadata.get("generateName") or "",
                parameters=step.parameters,
                parallelism=parallelism if isinstance(parallelism, int) else None,
            ),
        )


def _path(step: Step, name: str) -> str:
    """Where a parameter of a training step stands: its value, its name where there is no such, else all arguments."""
    if name == "parallelism":
        return f"spec.{name}"
    names = list(step.parameters)
    field = "value" if name in _DEFAULTS else "name"
    arguments = f"{step.path}.arguments"
    return f"{arguments}.parameters[{names.index(name)}].{field}" if name in names else arguments


def twice(name: str) -> str:
    """The text for a second training step of the same name."""
    return f"expected a job-name that no other training step of its Workflow has, got {name!r} twice; give one another"


def strange_names(spec: Object) -> dict[str, str]:
    """Parameters given to training steps that the template does not have; Argo drops them without a word.

    Args:
        spec: A Workflow's spec.

    Returns:
        Their values by name.
    """
    given = {name: text for step in _training_steps(spec) for name, text in step.parameters.items()}
    return {name: text for name, text in given.items() if name not in _DEFAULTS}


def _training_steps(spec: Object) -> Iterator[Step]:
    """Every training step that the document shows."""
    if (spec.get("workflowTemplateRef") or {}).get("name") == JOB_TEMPLATE:
        yield Step("spec", _texts(spec))
    for number, template in enumerate(spec.get("templates") or ()):
        for path, step in _steps(template):
            called = step.get("templateRef") or {}
            if called.get("name") == JOB_TEMPLATE and called.get("template") == JOB_ENTRYPOINT:
                yield Step(f"spec.templates[{number}].{path}", _texts(step))


def _steps(template: Object) -> Iterator[tuple[str, Object]]:
    """The steps and tasks of a template, each with its path in it."""
    for index, group in enumerate(template.get("steps") or ()):
        yield from ((f"steps[{index}][{number}]", step) for number, step in enumerate(group))
    for index, task in enumerate((template.get("dag") or {}).get("tasks") or ()):
        yield f"dag.tasks[{index}]", task


def _texts(holder: Object) -> dict[str, str]:
    rows = (holder.get("arguments") or {}).get("parameters") or ()
    return {row["name"]: str(row["value"]) if "value" in row else "{{}}" for row in rows}


def _check_names(asked: Asked) -> Iterator[Fault]:
    for name in sorted(set(asked.parameters) - set(_DEFAULTS))[:_FAULTS]:
        yield Fault(name, f"expected a parameter of {JOB_TEMPLATE}, got {name!r}{near_miss(name, _DEFAULTS)}")
    for name in ("command", "volume"):
        if not asked.text(name).strip():
            yield Fault(name, f"expected {name} to be given, got none")
    volume = asked.text("volume").strip()
    if volume and not asked.is_open("volume") and (len(volume) > _LONGEST or not _NAME.fullmatch(volume)):
        said = f"expected volume to be a claim's name of lower-case letters, digits, '-' and '.', got {volume!r}"
        yield Fault("volume", said)
    if ".." in asked.text("workdir").split("/"):
        yield Fault("workdir", f"expected workdir to be a path without '..', got {asked.text('workdir')!r}")
    if not asked.is_open("job-name") and not _LABEL.fullmatch(asked.name):
        said = f"expected job-name of at most 63 lower-case letters, digits and '-', got {asked.name!r}"
        yield Fault("job-name", said)
    launcher = asked.text("launcher")
    if not asked.is_open("launcher") and launcher not in LAUNCHERS:
        yield Fault("launcher", f"expected launcher out of {', '.join(LAUNCHERS)}, got {launcher!r}")


def _check_numbers(asked: Asked) -> Iterator[Fault]:
    for name, smallest in _SMALLEST.items():
        number = asked.number(name)
        if not asked.is_open(name) and (number is None or number < smallest):
            yield Fault(name, f"expected {name} to be a whole number >= {smallest}, got {asked.text(name)!r}")


def _check_bounds(asked: Asked) -> Iterator[Fault]:
    low, high, step = (asked.number(name) for name in ("min-gpus", "max-gpus", "gpus-per-worker"))
    if low and high and low > high:
        yield Fault("min-gpus", f"expected min-gpus <= max-gpus, got {low} and {high}")
    for name, gpus in (("min-gpus", low), ("max-gpus", high)):
        if gpus and step and step > 0 and gpus % step:
            yield Fault(name, f"expected {name} in multiples of gpus-per-worker {step}, got {gpus}")
    if high and step and step > 0 and asked.parallelism is not None:
        pods = high // step + _DRIVERS
        if asked.parallelism < pods:
            yield Fault(
                "parallelism",
                f"expected the Workflow's parallelism to be at least {pods} (max-gpus in workers, and a driver), "
                f"got {asked.parallelism}",
            )


def _check_cluster(asked: Asked, limits: Limits) -> Iterator[Fault]:
    kinds, kind = limits.gpus_by_type, asked.text("gpu-type")
    if kinds and kind and not asked.is_open("gpu-type") and kind not in kinds:
        known = [one for one in kinds if one]
        meant = near_miss(kind, known) if known else "; its nodes have no label nvidia.com/gpu.product"
        yield Fault("gpu-type", f"expected a gpu-type of this cluster, got {kind!r}{meant}")


def _check_queue(asked: Asked, limits: Limits) -> Iterator[Fault]:
    name, priority = asked.text("queue"), _priority(asked, limits)
    if not asked.is_open("priority") and priority is None:
        classes = limits.settings.priority_classes
        text = asked.text("priority")
        said = f"expected priority to be a class or a whole number, got {text!r}{near_miss(text, classes)}"
        yield Fault("priority", said)
    if asked.is_open("queue"):
        return
    queue = limits.queues.get(name)
    if queue is None:
        yield Fault("queue", f"expected a queue that exists, got {name!r}{near_miss(name, limits.queues)}")
        return
    if queue.namespaces and asked.namespace not in queue.namespaces:
        yield Fault("queue", f"expected a namespace that queue {name!r} is open to, got {asked.namespace!r}")
    if priority is not None and queue.max_priority is not None and priority > queue.max_priority:
        said = f"expected a priority of at most {queue.max_priority} in queue {name!r}, got {priority}"
        yield Fault("priority", said)


def _priority(asked: Asked, limits: Limits) -> int | None:
    """The value of the priority class, or the number; None where it is neither."""
    return limits.settings.priority_classes.get(asked.text("priority"), asked.number("priority"))
