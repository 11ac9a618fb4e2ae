"""What a job tells in Argo: its outputs, what its nodes are called, and its description; for ``elastic_job.py``."""

from __future__ import annotations

from hera.workflows import Container, Parameter, Steps, Suspend, WorkflowTemplate
from hera.workflows import models as m
from hera.workflows.protocol import Templatable

from voda_flows.workflows.parameters import JOB_TEMPLATE

#: What the checkpoint step says, and what stands for it where its pod was lost before it could.
CHECKPOINT_OUTPUTS = {
    "state": "lost",
    "why": "the checkpoint step was lost",
    "metric": "unknown",
    "resizes": "unknown",
    "gpu-seconds": "unknown",
    "record": "{}",
}
#: Those that the job has too, for people and for the steps behind it, taken on from its last checkpoint step.
JOB_OUTPUTS = ("metric", "resizes", "gpu-seconds")
DESCRIPTION = """
Trains on `min-gpus` to `max-gpus` GPUs with elastic Horovod.

It waits at its **gate** (no pod, no GPU) until the scheduler grants it workers: the gate's message says its place in
the queue and when that may be. It grows and shrinks while it trains (**grow**, workers such as `w2-on-node7`), and is
stopped at a **checkpoint** where others come first; the next **segment** goes on from there. Messages say why.
""".strip()
#: What nodes are called where Argo shows them, by template; others by their step. A name that does not match Argo's
#: rule (63 letters, digits, ``-`` and ``.``) fails the node, so it must be sure to.
CALLED = {
    "segment": "segment-{{inputs.parameters.segment}}",
    "grow": "grow",
    "grow-gate": "grow-gate",
    "worker": "{{inputs.parameters.shown}}",
    "checkpoint": "checkpoint-{{inputs.parameters.segment}}",
}


def taken_from(last: str, otherwise: str) -> list[Parameter]:
    """The job's outputs from the one of two steps that ran; unknown where neither has any.

    Args:
        last: A step that may have been skipped.
        otherwise: The one whose outputs count then.
    """
    return [
        Parameter(
            name=name,
            value_from=m.ValueFrom(
                expression=f"steps.{last}.status == 'Skipped' ? steps.{otherwise}.outputs.parameters['{name}']"
                f" : steps.{last}.outputs.parameters['{name}']",
                default="unknown",
            ),
        )
        for name in JOB_OUTPUTS
    ]


def called(*templates: Steps | Suspend | Container) -> list[m.Template | Templatable]:
    """The templates with what their nodes are called: an annotation of the template, for which Hera has no argument.

    Args:
        templates: All of the job's.
    """
    whole = WorkflowTemplate(name=JOB_TEMPLATE, templates=list(templates)).build()
    assert isinstance(whole, m.WorkflowTemplate)
    built = whole.spec.templates or []
    for template in built:
        if template.name in CALLED:
            template.annotations = {"workflows.argoproj.io/display-name": CALLED[template.name]}
    return list(built)
