"""What `voda submit` and `voda lint` refuse: the same that the gate and the engine would refuse later, in their words.

First every document's shape, before anybody reads a field of it; later, when it is ready, what it is called and what
it asks for. All of it happens before anything is created.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress

from scheduler_core.errors import Conflict, InvalidValue
from voda_flows.control.steps import check_submission, remarks
from voda_flows.local.argo import TemplateSource, Unsupported, validate, validate_template
from voda_flows.local.argo.schema import check_fields
from voda_flows.local.cron import validate_cron
from voda_flows.objects import Key, Object, key_of
from voda_flows.submission.names import check_names
from voda_flows.submission.places import Document
from voda_flows.submission.world import World

_MADE = "in the Workflow that it makes"
_CRON_PATH = re.compile(r"\(at \$\.(?P<path>[\w.]+)\)")


def check_shape(document: Document, *, is_local: bool = True) -> None:
    """Refuse fields that do not exist and values of another type than their field's.

    Args:
        document: As read, of a kind that can be submitted, with `metadata` and `spec`.
        is_local: Whether it is for local mode, which does not know all of a CronWorkflow.

    Raises:
        InvalidValue: Says where in which document what was expected and what was found.
    """
    body, made = document.body, False
    try:
        if document.kind == "CronWorkflow":
            check_fields({"metadata": body["metadata"]})
            _check_cron(body, is_local=is_local)
            made = True
        # What local mode has not is refused last, by the engine's check: whoever asks for what nobody has should know.
        check_fields(_workflow_of(body) if made else body, supported=False)
    except InvalidValue as wrong:
        raise _placed(document, wrong, made=made) from wrong


def check_all(documents: Sequence[Document], world: World) -> None:
    """Check every document.

    Args:
        documents: Ready to be created, in any order.
        world: What they are held against.

    Raises:
        InvalidValue: Says where in which document what was expected, what was found and what to do.
        Conflict: A Workflow has a name that is taken.
    """
    for fault in faults(documents, world):
        raise fault
    for document in documents:
        key = key_of(document.body)
        if key.kind == "Workflow" and key.name and world.find(key) is not None:
            place = document.place("metadata.name")
            raise Conflict(
                f"{f'{place}: ' if place else ''}{key}: expected a new name, it exists already\n"
                "delete it first, or choose another with --name or `generateName`"
            )


def faults(documents: Sequence[Document], world: World) -> Iterator[InvalidValue]:
    """The first fault of each document that has one; names that are taken in the world are none.

    Args:
        documents: Ready to be created, in any order.
        world: What they are held against.
    """
    brought: dict[Key, Object] = {}
    named = list[Document]()
    for document in documents:
        try:
            check_names(document.body)
            _check_once(document, brought)
            named.append(document)
        except InvalidValue as wrong:
            yield document.fault(wrong, who=document.title)
    for document in named:
        try:
            _check(document.body, world, brought)
        except InvalidValue as wrong:
            yield _placed(document, wrong, made=document.kind == "CronWorkflow")


def remarks_on(documents: Sequence[Document], world: World) -> list[str]:
    """What is right, and yet will not be as its author may expect.

    Args:
        documents: Checked.
        world: The world they go to.

    Returns:
        A sentence each.
    """
    limits = world.limits
    if limits is None:
        return []
    bodies = [_workflow_of(document.body) for document in documents if document.kind != "WorkflowTemplate"]
    return [text for body in bodies for text in remarks(body, limits)]


def _check_once(document: Document, brought: dict[Key, Object]) -> None:
    """Refuse a name that another document has; note it."""
    key = key_of(document.body)
    if key in brought:
        said = f"{key}: expected one document of that name, found two; give one another name, or `generateName`"
        raise InvalidValue(said, path="metadata.name")
    if key.name:
        brought[key] = document.body


def _check(body: Object, world: World, brought: Mapping[Key, Object]) -> None:
    """Refuse one document in the words of whoever would refuse it later: the gate or the engine."""

    def template(namespace: str, name: str, /) -> Object | None:
        """A WorkflowTemplate that comes with the documents, or that is there."""
        key = Key("WorkflowTemplate", namespace, name)
        return brought.get(key) or world.find(key)

    with suppress(Unsupported) if world.attempt else nullcontext():
        _check_alone(body, world, template, brought)
    if world.attempt:
        # Templates and schedules that are there already are brought up to date; a Workflow's name is looked at later.
        with suppress(Conflict):
            world.attempt(body)


def _check_alone(body: Object, world: World, template: TemplateSource, brought: Mapping[Key, Object]) -> None:
    """As the gate and the engine would; a cluster has more than local mode's engine knows."""
    if body["kind"] == "WorkflowTemplate":
        validate_template(body, template, supported=world.attempt is None)
        return
    workflow = _workflow_of(body)
    if world.limits is not None:
        check_submission(workflow, world.limits)
    try:
        validate(workflow, template, supported=world.attempt is None)
    except Unsupported:
        raise
    except InvalidValue as wrong:
        known = [*world.templates(), *((key.namespace, key.name) for key in brought if key.kind == "WorkflowTemplate")]
        raise InvalidValue(f"{wrong}{_meant(str(wrong), body, known)}", path=wrong.path) from wrong


def _workflow_of(body: Object) -> Object:
    """The Workflow that a document is, or makes."""
    if body["kind"] != "CronWorkflow":
        return body
    return {"kind": "Workflow", "metadata": {"uid": "", **body["metadata"]}, "spec": body["spec"]["workflowSpec"]}


def _meant(said: str, body: Object, known: Sequence[tuple[str, str]]) -> str:
    """A suggestion for a WorkflowTemplate that is not there."""
    asked = re.search(r'templates\.argoproj\.io "([^"]*)" not found|template reference (\S*)\.\S* not found', said)
    if asked is None:
        return ""
    name, namespace = asked[1] or asked[2] or "", body["metadata"].get("namespace") or "default"
    names = [other for place, other in known if place == namespace]
    near = difflib.get_close_matches(name, names, n=1)
    if near and near[0] != name:
        return f"; did you mean '{near[0]}'?"
    elsewhere = sorted(place for place, other in known if other == name)
    return f"; there is one in namespace {elsewhere[0]}" if elsewhere and not near else ""


def _check_cron(body: Object, *, is_local: bool) -> None:
    """Check a CronWorkflow's own fields; what it makes is checked as a Workflow."""
    try:
        validate_cron(body, supported=is_local)
    except InvalidValue as wrong:
        found = _CRON_PATH.search(str(wrong))
        raise InvalidValue(str(wrong), path=wrong.path or (found["path"] if found else "spec")) from wrong


def _placed(document: Document, wrong: InvalidValue, *, made: bool) -> InvalidValue:
    """The fault at its place; what a CronWorkflow makes stands deeper in the document than the fault knows."""
    said, path, who = str(wrong), wrong.path, document.title
    if made and path.startswith("spec"):
        path = re.sub(r"^spec", "spec.workflowSpec", wrong.path)
        said = said.replace(wrong.path, path)
    if made:
        who = f"{who}, {_MADE}"
    return document.fault(InvalidValue(said, path=path), who="" if said.startswith("job ") else who)
