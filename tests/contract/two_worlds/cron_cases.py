"""CronWorkflows: what their children are, and what ``Forbid`` does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.contract.two_worlds.play import Case, Notes
from tests.contract.two_worlds.story import Story
from tests.contract.two_worlds.world import Flow, World
from voda_flows.objects import CRON_LABEL, Object, parse_time

GONE_BY_S = 5
"""So long after a full minute a child that was to come has come."""


def cron_cases() -> list[Case]:
    """The one there is: it takes three minutes, whatever else is played meanwhile."""
    container = {"image": "busybox", "command": ["sh", "-c", "trap 'exit 0' TERM; echo ready; sleep 600 & wait"]}
    spec = {
        "schedules": ["* * * * *"],
        "timezone": "Etc/UTC",
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": 0,
        "successfulJobsHistoryLimit": 1,
        "workflowMetadata": {"labels": {"of": "cron"}, "annotations": {"note": "kept"}},
        "workflowSpec": {"entrypoint": "main", "templates": [{"name": "main", "container": container}]},
    }
    cron = {"apiVersion": "argoproj.io/v1alpha1", "kind": "CronWorkflow", "metadata": {"name": "ticks"}, "spec": spec}
    return [Case(name="ticks", document=cron, tell=_tell)]


def _tell(world: World, case: Case) -> Story:
    notes = Notes()
    world.submit(case.document)
    look = Flow(world, case.name)
    first = _next(look, ())
    notes.add("first", _child(look, first))
    notes.add("first", _cron(look))
    _pass(look, first)
    notes.facts["children while the first runs"] = str(len(_children(look)))
    _end(look, first)
    second = _next(look, (first,))
    notes.add("second", _cron(look))
    _end(look, second)
    third = _next(look, (first, second))
    look.until(lambda: len(_children(look)) == 2, "the oldest child to be forgotten")
    notes.facts["children kept"] = str(
        [name == kept for name, kept in zip(sorted(_children(look)), (second, third), strict=True)]
    )
    world.store.merge_patch("CronWorkflow", world.namespace, case.name, {"spec": {"suspend": True}})
    _end(look, third)
    look.until(lambda: not (_status(look).get("active") or ()), "no active child")
    notes.add("ended", _cron(look))
    world.store.delete("CronWorkflow", world.namespace, case.name)
    look.until(lambda: not _children(look), "its children to be gone with it")
    return notes.facts


def _children(look: Flow) -> dict[str, Object]:
    found = look.world.store.snapshot("Workflow")
    return {key.name: body for key, body in found.items() if key.namespace == look.world.namespace
            and (body["metadata"].get("labels") or {}).get(CRON_LABEL) == look.name}  # fmt: skip


def _next(look: Flow, known: tuple[str, ...]) -> str:
    """The name of a child other than those, once its pod is at work."""
    look.until(lambda: bool(_children(look).keys() - set(known)), "another child")
    (name,) = _children(look).keys() - set(known)
    Flow(look.world, name).works("")
    return name


def _pass(look: Flow, child: str) -> None:
    """Let the next tick go by."""
    until = _tick(child) + timedelta(seconds=60 + GONE_BY_S)
    look.until(lambda: datetime.now(UTC) > until, "a tick to go by")


def _tick(child: str) -> datetime:
    return datetime.fromtimestamp(int(child.rsplit("-", 1)[1]), UTC)


def _end(look: Flow, child: str) -> None:
    flow = Flow(look.world, child)
    flow.world.ask_to_end(flow.pod(""))
    flow.ends()


def _child(look: Flow, name: str) -> Story:
    """What a child is, its times told by whether they are those of its tick."""
    body = _children(look)[name]
    metadata, tick = body["metadata"], _tick(name)
    annotations = dict(metadata.get("annotations") or {})
    scheduled = parse_time(annotations.pop("workflows.argoproj.io/scheduled-time"))
    owner = metadata["ownerReferences"][0]
    return {
        "name": str((name.rsplit("-", 1)[0], tick.second)),
        "scheduled at its tick": str(scheduled == tick),
        "labels": str(sorted(metadata["labels"].items())),
        "annotations": str(
            sorted(
                (key, value) for key, value in annotations.items() if "last-seen" not in key and "pod-name" not in key
            )
        ),
        "owner": str(
            [owner.get(field) for field in ("apiVersion", "kind", "name", "controller", "blockOwnerDeletion")]
        ),
    }


def _status(look: Flow) -> Object:
    body = look.world.store.get("CronWorkflow", look.world.namespace, look.name)
    status: Object = body.get("status") or {}
    return status


def _cron(look: Flow) -> Story:
    status, children = _status(look), _children(look)
    last = parse_time(status["lastScheduledTime"])
    return {
        "active": str([each["name"] in children for each in status.get("active") or ()]),
        "of active": str([sorted(each.keys() - {"resourceVersion"}) for each in status.get("active") or ()]),
        "last is a child's": str(any(_tick(name) == last for name in children)),
        "phase": str(status.get("phase")),
        "counts": str((status.get("succeeded"), status.get("failed"))),
        "conditions": str(status.get("conditions")),
    }
