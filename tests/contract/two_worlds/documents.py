"""The suite's own documents: Workflows, with the WorkflowTemplates that they refer to before them in the same file."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.contract.two_worlds.play import Case, Script, to_its_end
from voda_flows.objects import Object

FOLDER = Path(__file__).parent / "documents"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def case(name: str, script: Script = to_its_end) -> Case:
    """The case of a document.

    Args:
        name: Of its file, and of its Workflow.
        script: What is done to it.
    """
    *templates, workflow = _documents(name)
    return Case(name=name, document=workflow, script=script, templates=tuple(templates))


def _documents(name: str) -> list[Object]:
    return list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()))
