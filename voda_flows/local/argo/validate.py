"""Whether a Workflow is one that local mode can run."""

from __future__ import annotations

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.templates import TemplateSource, effective_spec
from voda_flows.objects import Object


def validate(workflow: Object, source: TemplateSource) -> None:
    """Check that the entrypoint is there.

    Raises:
        InvalidValue: It is not.
    """
    spec = effective_spec(workflow, source)
    if spec.get("entrypoint") not in {template["name"] for template in spec.get("templates") or ()}:
        raise InvalidValue(f"template name '{spec.get('entrypoint')}' undefined")
