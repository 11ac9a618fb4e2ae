"""Small pieces of which the suite's own documents are made."""

from __future__ import annotations

from typing import Any

from tests.contract.two_worlds.play import Case, Script, to_its_end
from tests.unit.local.argo.builders import call, dag, shell, steps
from voda_flows.objects import Object

__all__ = ["asks", "call", "case", "dag", "document", "patient", "says", "script", "shell", "steps", "template"]

API = "argoproj.io/v1alpha1"


def document(name: str, *templates: Object, **spec: Any) -> Object:
    """A Workflow of these templates; the first is its entrypoint where nothing else is said."""
    whole = {"entrypoint": templates[0]["name"], "templates": list(templates), **spec} if templates else spec
    return {"apiVersion": API, "kind": "Workflow", "metadata": {"name": name}, "spec": whole}


def template(name: str, *templates: Object, **spec: Any) -> Object:
    """A WorkflowTemplate."""
    return {**document(name, *templates, **spec), "kind": "WorkflowTemplate"}


def case(name: str, *templates: Object, script: Script = to_its_end, **spec: Any) -> Case:
    """A case of a Workflow of these templates."""
    return Case(name=name, document=document(name, *templates, **spec), script=script)


def says(name: str = "says", *inputs: str, command: str = "", default: str | None = None) -> Object:
    """A template whose output ``o`` is what its command writes to a file, or its input ``m`` as it came."""
    written = command or "printf '%s' '{{inputs.parameters.m}}' > /tmp/o"
    source: Object = {"path": "/tmp/o"} | ({} if default is None else {"default": default})
    return shell(name, written, outputs={"parameters": [{"name": "o", "valueFrom": source}]}, **asks(*(inputs or ("m",))))


def asks(*names: str, **defaults: str) -> Object:
    """The field ``inputs`` of a template."""
    rows: list[Object] = [{"name": name} for name in names]
    rows += [{"name": name.replace("_", "-"), "default": value} for name, value in defaults.items()]
    return {"inputs": {"parameters": rows}}


def script(name: str, source: str, **fields: Any) -> Object:
    """A template of a shell script."""
    return {"name": name, "script": {"image": "i", "command": ["sh"], "source": source}, **fields}


def patient(name: str = "patient", *, code: int = 0, seconds: int = 600, **fields: Any) -> Object:
    """A template that waits until it is asked to end, and ends with a code then."""
    return shell(name, f"trap 'exit {code}' TERM; echo ready; sleep {seconds} & wait", **fields)
