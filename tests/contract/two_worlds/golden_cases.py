"""The golden documents as cases: what was done to them when they were recorded is done to them here."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.contract.argo import golden
from tests.contract.argo.golden_runs import UNSUPPORTED
from tests.contract.two_worlds.play import Case, Notes, Script, to_its_end
from tests.contract.two_worlds.world import Flow
from voda_flows.objects import Object

LEFT_TO_CHANCE = ("pod-deleted", "pod-deleted-retry")
"""Of a pod deleted with grace Argo tells how it ended, or that it was deleted: by what its watch shows first."""
SLOWER = 6
"""Times of documents that end by the clock are made longer: on a busy computer a pod starts late."""
TIMED = frozenset({"deadline-template", "deadline-workflow"})


def _while_running(verb: str) -> Script:
    def script(flow: Flow, _notes: Notes) -> None:
        flow.works("[0].a")
        flow.world.operate(verb, flow.name)
        flow.ends()

    return script


def _resume(flow: Flow, _notes: Notes) -> None:
    flow.until(lambda: flow.status.get("phase") == "Running", "it to be taken on")
    flow.world.operate("resume", flow.name)
    flow.ends()


SCRIPTS: Mapping[str, Script] = {
    "stop-while-running": _while_running("stop"),
    "terminate-while-running": _while_running("terminate"),
    "suspend-whole": _resume,
}


def _document(name: str) -> Object:
    """The document; one that is asked to end says when it has set up what it does then."""
    document = golden.document(name)
    slower = SLOWER if name in TIMED else 1
    if "activeDeadlineSeconds" in document["spec"]:
        document["spec"]["activeDeadlineSeconds"] *= slower
    for template in document["spec"].get("templates") or ():
        if "activeDeadlineSeconds" in template:
            template["activeDeadlineSeconds"] *= slower
        command = (template.get("container") or {}).get("command") or []
        if command and "trap" in command[-1]:
            command[-1] = command[-1].replace("; ", "; echo ready; ", 1)
        if command and slower > 1:
            command[-1] = re.sub(r"sleep (\d+)", lambda found: f"sleep {int(found[1]) * slower}", command[-1])
    return document


def golden_cases() -> list[Case]:
    """All documents that local mode runs and that come to one end, and all that are refused."""
    names = [name for name in golden.NAMES if name not in (*UNSUPPORTED, *LEFT_TO_CHANCE)]
    return [
        Case(name=name, document=_document(name), script=SCRIPTS.get(name, to_its_end), is_timed=name in TIMED)
        for name in names
    ]
