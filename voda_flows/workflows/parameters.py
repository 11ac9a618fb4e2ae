"""What a training job can be asked for: every input of the template ``voda-elastic-job``, once.

The template's inputs, its arguments (what a submit form shows) and the check of a request all read this table, so a
new input is one row here. Everything is text, as in every Argo parameter.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Name of the WorkflowTemplate, and of the template in it that is one training job.
JOB_TEMPLATE = "voda-elastic-job"
JOB_ENTRYPOINT = "job"
#: What a driver hands out: how far it was, as it showed it, and where it ended (``report/progress.py``).
DRIVER_PROGRESS = "progress"
#: Where drivers answer, on their pods' own addresses (docs/contracts.md, section 5).
DRIVER_PORT = 7071


@dataclass(frozen=True, slots=True, kw_only=True)
class JobParameter:
    """One input.

    Attributes:
        name: Its name.
        default: Its default; None when the user must give it.
        description: What it means, for submit forms.
        for_pods: Whether the pods need it, so that it is carried on from segment to segment; what only the scheduler
            reads is kept on the job's root node alone, because each node's inputs count against Argo's 1 MB of status.
    """

    name: str
    default: str | None
    description: str
    for_pods: bool = False


PARAMETERS: tuple[JobParameter, ...] = (
    JobParameter(
        name="command", default=None, for_pods=True, description="Training command, e.g. python -m workloads.digits."
    ),
    JobParameter(
        name="image",
        default="voda-train:latest",
        for_pods=True,
        description="Container image with the training code and its launcher.",
    ),
    JobParameter(name="min-gpus", default="1", description="Fewest GPUs it can train on."),
    JobParameter(name="max-gpus", default="1", description="Most GPUs it can use; equal to min-gpus: a rigid job."),
    JobParameter(name="gpus-per-worker", default="1", description="GPUs of each worker pod; one rank per GPU."),
    JobParameter(
        name="cpu-per-worker",
        default="1",
        for_pods=True,
        description="Processors set aside for each worker, e.g. 500m.",
    ),
    JobParameter(
        name="memory-per-worker", default="2Gi", for_pods=True, description="Memory set aside for each worker."
    ),
    JobParameter(name="gpu-type", default="", description="GPU product it must run on; empty for any."),
    JobParameter(name="queue", default="default", description="Queue it is submitted to."),
    JobParameter(name="priority", default="normal", description="Priority class (low, normal, high) or a number."),
    JobParameter(name="epochs", default="1", for_pods=True, description="Epochs to train."),
    JobParameter(
        name="volume", default="voda", for_pods=True, description="Claim for checkpoints; every node can mount it."
    ),
    JobParameter(
        name="job-name", default="train", for_pods=True, description="Name of the job, unique in its Workflow."
    ),
    JobParameter(
        name="service-account",
        default="voda-job",
        for_pods=True,
        description="Service account of its pods; empty for the Workflow's own.",
    ),
    JobParameter(name="category", default="", description="Jobs of one category learn speed from each other."),
    JobParameter(name="workdir", default="", for_pods=True, description="Folder in which the command starts."),
    JobParameter(
        name="checkpoint-steps",
        default="0",
        for_pods=True,
        description="Steps between checkpoints; 0: only at the end of an epoch and at a stop.",
    ),
    JobParameter(
        name="retry-limit",
        default="3",
        for_pods=True,
        description="Failures in a row without a new checkpoint after which the job fails.",
    ),
    JobParameter(
        name="restart-limit",
        default="3",
        for_pods=True,
        description="Crashes of one worker that are mended in place before it is dropped.",
    ),
    JobParameter(name="launcher", default="horovod", for_pods=True, description="How ranks are launched."),
    JobParameter(
        name="warm", default="", for_pods=True, description="Modules to import before training, comma-separated."
    ),
    JobParameter(
        name="num-gpus",
        default="",
        description="GPUs it asks for under tiresias and elastic_tiresias; empty: min-gpus.",
    ),
    JobParameter(
        name="gpu-sizes",
        default="",
        description="Numbers of GPUs it may have, e.g. 1,2,4 or powers-of-two; empty: as the cluster says.",
    ),
)

#: Inputs that the pods need, in the table's order.
POD_PARAMETERS: tuple[str, ...] = tuple(parameter.name for parameter in PARAMETERS if parameter.for_pods)
