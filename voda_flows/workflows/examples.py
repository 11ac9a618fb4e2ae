"""Example jobs, as users would write them; together they are the demo.

Sized for two nodes with two GPU slots each on two CPU cores: digits outlasts
rigid and grows into its slots, the elastic jobs shrink when others come, and urgent sends one back to its checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass

from hera.workflows import ExistingVolume, Parameter, Script, Step, Steps, Workflow
from hera.workflows import models as m

from voda_flows.workflows.described import described
from voda_flows.workflows.parameters import JOB_ENTRYPOINT, JOB_TEMPLATE

DIGITS = "python -m workloads.digits"
CHARTRANSFORMER = "python -m workloads.chartransformer"
#: Argo's executor beside each step says how it ended: the account of a namespace's pods often may not.
ACCOUNT = "voda-job"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An example and what its reader should know.

    Attributes:
        workflow: The Workflow.
        header: Text for the comment at the top of its file.
    """

    workflow: Workflow
    header: str


def _example(workflow: Workflow, title: str, header: str) -> Example:
    """An example that says in Argo's UI too what it is."""
    workflow.annotations = described(header, f"{workflow.name}: {title}")
    return Example(workflow=workflow, header=header)


def _job(name: str, command: str, **inputs: str) -> Workflow:
    """A Workflow that is one training job."""
    values = {"command": command, **{key.replace("_", "-"): value for key, value in inputs.items()}}
    mirrored = {f"voda.dev/{key}": values[key] for key in ("queue", "gpu-type", "category") if values.get(key)}
    return Workflow(
        name=name,
        labels=mirrored or None,
        workflow_template_ref=m.WorkflowTemplateRef(name=JOB_TEMPLATE),
        arguments=[Parameter(name=key, value=value) for key, value in values.items()],
    )


PREPARE = """
import pathlib

# Stands for whatever a job needs beforehand; what it finds goes to the training step as an output.
pathlib.Path("/tmp/epochs").write_text("{{inputs.parameters.epochs}}")
print("will train for {{inputs.parameters.epochs}} epochs")
""".lstrip()

EVALUATE = """
import json, pathlib

folder = pathlib.Path("/voda/{{workflow.namespace}}/{{workflow.uid}}/train")
manifests = sorted(folder.glob("segment-*/step-*/manifest.json"), key=lambda path: (len(str(path)), str(path)))
newest = json.loads(manifests[-1].read_text())
print(f"trained to epoch {newest['epoch']}, step {newest['step']}")
pathlib.Path("/tmp/steps").write_text(str(newest["step"]))
""".lstrip()


def _prepare() -> Script:
    return Script(
        name="prepare",
        image="voda-train:latest",
        command=["python"],
        source=PREPARE,
        inputs=[Parameter(name="epochs")],
        outputs=[Parameter(name="epochs", value_from=m.ValueFrom(path="/tmp/epochs", default="1"))],  # noqa: S108
    )


def _evaluate() -> Script:
    return Script(
        name="evaluate",
        image="voda-train:latest",
        command=["python"],
        source=EVALUATE,
        outputs=[Parameter(name="steps", value_from=m.ValueFrom(path="/tmp/steps", default="0"))],  # noqa: S108
        volumes=[ExistingVolume(name="voda", claim_name="voda", mount_path="/voda")],
    )


def _pipeline() -> Workflow:
    """A user's own Workflow, in which training is one step of three."""
    train = {
        "command": f"{DIGITS} --repeat 3",
        "epochs": "{{steps.prepare.outputs.parameters.epochs}}",
        "min-gpus": "1",
        "max-gpus": "2",
        "category": "digits",
    }
    with Steps(name="main") as main:
        Step(name="prepare", template="prepare", arguments=[Parameter(name="epochs", value="12")])
        Step(
            name="train",
            template_ref=m.TemplateRef(name=JOB_TEMPLATE, template=JOB_ENTRYPOINT),
            arguments=[Parameter(name=key, value=value) for key, value in train.items()],
        )
        Step(name="evaluate", template="evaluate")
    return Workflow(
        name="pipeline",
        entrypoint="main",
        service_account_name=ACCOUNT,
        templates=[main, _prepare(), _evaluate()],
    )


EXAMPLES: tuple[Example, ...] = (
    _example(
        _job(
            "digits",
            f"{DIGITS} --repeat 4",
            epochs="36",
            min_gpus="1",
            max_gpus="4",
            category="digits",
        ),
        "elastic, 1 to 4 GPUs",
        "An elastic job: trains on 1 to 4 GPUs and takes what is idle.\n"
        "Submit it: voda submit templates/examples/digits.yaml --watch",
    ),
    _example(
        _job("text", f"{CHARTRANSFORMER} --text-bytes 100000", epochs="4", min_gpus="1", max_gpus="2", category="text"),
        "elastic, 1 to 2 GPUs",
        "A character transformer on 1 to 2 GPUs; it gives one back when others need it.",
    ),
    _example(
        _job("rigid", f"{DIGITS} --repeat 2", epochs="6", min_gpus="2", max_gpus="2", category="digits"),
        "2 GPUs or none",
        "A rigid job: min-gpus equals max-gpus, so it gets 2 GPUs or waits.",
    ),
    _example(
        _pipeline(),
        "prepare, train, evaluate",
        "A Workflow of your own: prepare, train (a call of the template voda-elastic-job), evaluate.\n"
        "Only the training step waits for GPUs; the steps around it are ordinary pods.",
    ),
    _example(
        _job(
            "urgent", f"{DIGITS} --repeat 2", epochs="8", min_gpus="3", max_gpus="3", priority="high", category="digits"
        ),
        "3 GPUs, before others",
        "A job of a higher priority class that needs 3 GPUs: running jobs of lower classes give up GPUs,\n"
        "down to none if they must. Those keep a checkpoint and go on from it later.",
    ),
)
