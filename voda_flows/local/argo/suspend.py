"""Suspended nodes: gates that somebody opens, and waits with a duration.

In: a suspend template's frame; out: its node. A gate is opened from outside by a patch of the node (docs/contracts.md,
section 3) or by a resume; a duration opens it by itself with the defaults of its outputs.
"""

from __future__ import annotations

import re
from datetime import timedelta

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.names import text
from voda_flows.local.argo.run import Frame, Run
from voda_flows.local.argo.scope import suspended_outputs, with_defaults
from voda_flows.local.argo.substitute import substitute
from voda_flows.objects import Object, parse_time

PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
UNIT_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def duration_s(value: object, where: str) -> float:
    """A duration in seconds: a number of seconds, or as Go writes it (``1h30m``).

    Raises:
        InvalidValue: It is neither.
    """
    written = text(value).strip()
    if re.fullmatch(r"\d+", written):
        return float(written)
    parts = PART.findall(written)
    if not parts or "".join(number + unit for number, unit in parts) != written:
        raise InvalidValue(f"{where}: expected a duration such as 90, 30s or 1h30m, got {written!r}")
    return sum(float(number) * UNIT_S[unit] for number, unit in parts)


def begin(run: Run, frame: Frame) -> None:
    """Give a new suspended node the outputs that it waits for."""
    outputs = suspended_outputs(substitute({"outputs": frame.template.get("outputs") or {}}, frame.variables))
    if outputs is not None:
        run.tree.update(frame.name, outputs=outputs)


def run_suspend(run: Run, frame: Frame) -> Object:
    """The suspended node, ended with its defaults once its duration is over.

    Raises:
        InvalidValue: The duration is over and an output has neither value nor default.
    """
    node = run.tree.at(frame.name)
    duration = (frame.template["suspend"] or {}).get("duration")
    if not duration:
        return node
    wait = timedelta(seconds=duration_s(substitute(duration, frame.variables), "suspend.duration"))
    left_s = (parse_time(node["startedAt"]) + wait - run.now).total_seconds()
    if left_s > 0:
        run.look_again(left_s)
        return node
    run.tree.update(frame.name, outputs=with_defaults(node.get("outputs")))
    return run.tree.mark(frame.name, "Succeeded")
