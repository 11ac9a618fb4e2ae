"""What the text of a template says about variables: which stay open, and whose standard output is read.

In: templates and steps as documents; out: faults and flags. Used while a Workflow runs; the check before it runs is
``validate.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.substitute import tags_within
from voda_flows.objects import Object

OPEN_PREFIXES = ("steps.", "tasks.", "inputs.", "workflow.")


def unresolved(step: Object) -> None:
    """Check that a step about to run refers to nothing that is not there.

    Raises:
        InvalidValue: It does; Argo from 4.0.7 on fails such a step, before that it hung.
    """
    for tag in tags_within({key: step[key] for key in ("arguments", "when", "withParam") if key in step}):
        if tag.startswith(OPEN_PREFIXES) or tag.startswith("="):
            raise InvalidValue(f"failed to resolve {{{{{tag}}}}}")


def wants_result(parent: Object | None, target: Mapping[str, Any]) -> bool:
    """Whether some part of the group's template reads the standard output of that step or task."""
    if parent is None:
        return False
    name, written = str(target.get("name", "")).split("(", 1)[0], json.dumps(parent)
    return any(f"{kind}.{name}.outputs.result" in written for kind in ("steps", "tasks"))
