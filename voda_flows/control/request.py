"""Whether a training job asks for something legal: one check, for submission and for the gate, with one text.

``kubectl`` and ``argo`` pass no check of ours, so the scheduler asks again when a job stands at its gate. Everything
wrong is said at once. Values that hold ``{{`` are not known before the step runs and are left to the gate. In: one
step's parameters (``steps.py`` finds them in a document) and limits. Out: the core's ``JobSpec``, or what is wrong.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler_core.errors import InvalidValue
from scheduler_core.model.job import JobSpec
from scheduler_core.model.queue import Queue
from voda_flows import amounts
from voda_flows.config import Settings, near_miss
from voda_flows.workflows.parameters import JOB_TEMPLATE, PARAMETERS

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
#: What pods set aside, as Kubernetes writes amounts: 2, 0.5, 500m, 2Gi, 1e3.
_AMOUNTS = ("cpu-per-worker", "memory-per-worker")
_AMOUNT = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?([mkMGTPE]|[KMGTPE]i|[eE][0-9]{1,2})?")
#: Of the sizes that a message names.
_SIZES_SHOWN = 8
_FAULTS, _SHOWN = 10, 400  # of a message: it ends up in the Workflow's status
#: Parameters of the template and their defaults.
DEFAULTS = {row.name: row.default for row in PARAMETERS}


class Fault(NamedTuple):
    """Something that is not legal."""

    name: str
    """The parameter, or ``parallelism`` for the Workflow's own."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a request is measured against.

    Attributes:
        settings: Priority classes and queues.
        gpus_by_type: All GPUs of the cluster by type; empty when not known.
        claim_fault: Given a namespace and a claim's name, why that claim will not do; empty where it does or that is
            not known.
    """

    settings: Settings
    gpus_by_type: Mapping[str, int] = field(default_factory=dict)
    claim_fault: Callable[[str, str], str] = lambda _namespace, _name: ""

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
        return self.parameters.get(name) or DEFAULTS[name] or ""

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
        num_gpus=asked.number("num-gpus") or 0,
        gpu_sizes=_possible_sizes(asked, limits),
    )


def check_request(asked: Asked, limits: Limits) -> None:
    """Refuse what is not legal.

    Raises:
        InvalidValue: Naming the job and everything that is wrong with it; its path is the first wrong parameter's name.
    """
    faults = [*_check_names(asked), *_check_numbers(asked), *_check_amounts(asked), *_check_bounds(asked)]
    faults += [*_check_sizes(asked, limits), *_check_cluster(asked, limits), *_check_queue(asked, limits)]
    if not faults and (said := limits.claim_fault(asked.namespace, asked.text("volume").strip())):
        faults.append(Fault("volume", said))
    if faults:
        said = "; ".join(textwrap.shorten(fault.text, _SHOWN, placeholder=" ...") for fault in faults[:_FAULTS])
        raise InvalidValue(f"job {asked.workflow}/{asked.name}: {said}", path=faults[0].name)


def _check_names(asked: Asked) -> Iterator[Fault]:
    for name in sorted(set(asked.parameters) - set(DEFAULTS))[:_FAULTS]:
        yield Fault(name, f"expected a parameter of {JOB_TEMPLATE}, got {name!r}{near_miss(name, DEFAULTS)}")
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


def _check_amounts(asked: Asked) -> Iterator[Fault]:
    """An empty one is no default here: the template is given it as it is."""
    for name in _AMOUNTS:
        text = asked.parameters.get(name, DEFAULTS[name]) or ""
        if "{{" not in text and not _AMOUNT.fullmatch(text):
            yield Fault(name, f"expected {name} to be an amount such as 2, 500m or 4Gi, got {text!r}")


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


def _check_sizes(asked: Asked, limits: Limits) -> Iterator[Fault]:
    """The number asked for, and the sizes that it may have: its own, else the cluster's."""
    text, wish = asked.text("num-gpus").strip(), asked.number("num-gpus")
    low, high, step = (asked.number(name) or 0 for name in ("min-gpus", "max-gpus", "gpus-per-worker"))
    is_legal = 0 < low <= high and step > 0 and not low % step and not high % step
    if text and not asked.is_open("num-gpus"):
        if wish is None or wish < 1:
            yield Fault("num-gpus", f"expected num-gpus to be a whole number >= 1 or nothing, got {text!r}")
        elif is_legal and wish not in range(low, high + 1, step):
            said = f"expected num-gpus from min-gpus {low} to max-gpus {high} in multiples of gpus-per-worker {step}"
            yield Fault("num-gpus", f"{said}, got {wish}")
    if asked.is_open("gpu-sizes"):
        return
    try:
        sizes = _sizes(asked, limits)
    except ValueError as fault:
        yield Fault("gpu-sizes", f"expected gpu-sizes to be {fault}, got {asked.text('gpu-sizes')!r}")
        return
    if is_legal and sizes and not set(sizes).intersection(range(low, high + 1, step)):
        whose = "gpu-sizes" if asked.text("gpu-sizes").strip() else "the cluster's gpu_sizes (gpu-sizes of its own win)"
        said = f"expected one of {whose} from min-gpus {low} to max-gpus {high} in multiples of gpus-per-worker {step}"
        shown = ",".join(map(str, sizes[:_SIZES_SHOWN])) + (",..." if len(sizes) > _SIZES_SHOWN else "")
        yield Fault("gpu-sizes", f"{said}, got {shown}")


def _sizes(asked: Asked, limits: Limits) -> tuple[int, ...]:
    """Its own sizes, else the cluster's.

    Raises:
        ValueError: Its own are no list of sizes.
    """
    return amounts.gpu_sizes(asked.text("gpu-sizes")) or limits.settings.gpu_sizes


def _possible_sizes(asked: Asked, limits: Limits) -> tuple[int, ...]:
    """Of the sizes that it may have those within its bounds.

    None where that is no restriction: all of them are allowed, or (of a job that has begun before the setting came) no
    size would be.
    """
    low, high, step = (asked.number(name) or 0 for name in ("min-gpus", "max-gpus", "gpus-per-worker"))
    every = range(low, high + 1, max(1, step))
    try:
        found = tuple(gpus for gpus in _sizes(asked, limits) if gpus in every)
    except ValueError:  # refused, unless it has begun
        return ()
    return found if len(found) < len(every) else ()


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
