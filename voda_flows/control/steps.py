"""The training steps of a Workflow's document: what each asks for, and whether all of it may be submitted.

In: a raw document and limits; out: nothing, remarks, or the first thing wrong with the path at which it stands. What a
single request must be like is in ``request.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from scheduler_core.errors import InvalidValue
from voda_flows.control.request import DEFAULTS, Asked, Limits, check_request
from voda_flows.objects import Object
from voda_flows.workflows.parameters import JOB_ENTRYPOINT, JOB_TEMPLATE


class Step(NamedTuple):
    """A training step of a document."""

    path: str
    """Where it stands."""
    parameters: Mapping[str, str]


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
    return {name: text for name, text in given.items() if name not in DEFAULTS}


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
    field = "value" if name in DEFAULTS else "name"
    arguments = f"{step.path}.arguments"
    return f"{arguments}.parameters[{names.index(name)}].{field}" if name in names else arguments


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
