"""``ttlStrategy``: when a Workflow that has ended is to be deleted.

In: the Workflow; out: the moment. As the controller has it: the limit for its phase where there is one, else that for
any end; ``Error`` is no failure here; the Workflow's own strategy goes before its WorkflowTemplate's.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from voda_flows.objects import WORKFLOW_ENDED, Object, parse_time

BY_PHASE = {"Succeeded": "secondsAfterSuccess", "Failed": "secondsAfterFailure"}
ANY_END = "secondsAfterCompletion"


def expiry(workflow: Object) -> datetime | None:
    """When the Workflow has had its time, None where it has not ended or may stay."""
    status = workflow.get("status") or {}
    phase, end = status.get("phase"), status.get("finishedAt")
    if phase not in WORKFLOW_ENDED or not end:
        return None
    stored = status.get("storedWorkflowTemplateSpec") or {}
    strategy = workflow["spec"].get("ttlStrategy") or stored.get("ttlStrategy") or {}
    limit_s = strategy.get(BY_PHASE.get(phase, ANY_END), strategy.get(ANY_END))
    return None if limit_s is None else parse_time(end) + timedelta(seconds=limit_s)
