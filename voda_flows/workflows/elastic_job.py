"""The training job as an Argo WorkflowTemplate: gates, driver, workers, checkpoint, and again until it is done.

One *segment* is one life between two checkpoints; templates call each other so::

    job -> segment: gate (suspend) -> train when granted, else requeue (segment again)
           train:   { driver | worker per granted worker | grow } -> checkpoint -> resize (segment again) unless done
           grow:    gate (suspend) -> { worker per granted worker | grow again while there may be more }

Three rules of Argo give it this shape. A ``when`` reads only outputs of a step that always ran and has defaults,
else the controller waits for ever. The defaults of the gates do no harm, because ``argo resume`` completes every open
gate with them. Templates called by ``templateRef`` see nothing of their WorkflowTemplate's spec, so all comes by
inputs and template-level fields.
"""

from __future__ import annotations

import json

from hera.workflows import (
    Container,
    DownwardAPIVolume,
    Env,
    ExistingVolume,
    FieldEnv,
    Parameter,
    Resources,
    RetryStrategy,
    SecretVolume,
    Step,
    Steps,
    Suspend,
    WorkflowTemplate,
)
from hera.workflows import models as m

from voda_flows.workflows.described import described
from voda_flows.workflows.parameters import (
    DRIVER_PROGRESS,
    JOB_ENTRYPOINT,
    JOB_TEMPLATE,
    PARAMETERS,
    POD_PARAMETERS,
)
from voda_flows.workflows.told import CHECKPOINT_OUTPUTS, DESCRIPTION, JOB_OUTPUTS, called, taken_from

#: Ports on a pod's own address; the agent's readiness probe connects to it when its imports are done.
AGENT_PORT = 7070
#: A node that is not ready for so long has lost its pods: Kubernetes' own default of 300 s holds GPUs hostage.
NODE_LOSS_S = 10
#: Time for a rank to reach its next commit and write a checkpoint when its pod is asked to leave.
GRACE_S = 60
#: Tries of a checkpoint step whose pod was lost; a step that failed by itself (exit code 1) has said that its job has.
CHECKPOINT_TRIES = 5

_WORKER_INPUTS = (
    *("segment", "image", "volume", "job-name", "service-account", "workdir", "command", "warm"),
    *("cpu-per-worker", "memory-per-worker"),
)
#: What the scheduler says of each worker that it grants.
_GRANTED = ("id", "node", "gpus", "shown")
_DRIVER_INPUTS = (
    *("segment", "image", "volume", "job-name", "service-account", "workdir", "command"),
    *("epochs", "checkpoint-steps", "restart-limit", "launcher"),
)
_CHECKPOINT_INPUTS = ("segment", "image", "volume", "job-name", "service-account", "retry-limit")
_SEGMENT_INPUTS = (*POD_PARAMETERS, "segment")
#: Driver, workers and grow gate may fail without ending the segment: the checkpoint step decides what comes next.
_CONTINUE = m.ContinueOn(failed=True, error=True)


def _input(name: str) -> str:
    return f"{{{{inputs.parameters.{name}}}}}"


def _inputs(*names: str) -> list[Parameter]:
    return [Parameter(name=name) for name in names]


def _passed(*names: str, **values: str) -> list[Parameter]:
    """Arguments that hand inputs on under their own names, and others by value."""
    handed_on = [Parameter(name=name, value=_input(name)) for name in names if name not in values]
    return handed_on + [Parameter(name=name, value=value) for name, value in values.items()]


def _supplied(name: str, default: str) -> Parameter:
    """An output that only the scheduler gives; the default is what ``argo resume`` leaves."""
    return Parameter(name=name, value_from=m.ValueFrom(supplied=m.SuppliedValueFrom(), default=default))


def _identity_env() -> list[Env]:
    return [
        Env(name="VODA_JOB", value="{{workflow.uid}}/" + _input("job-name")),
        Env(name="VODA_NAMESPACE", value="{{workflow.namespace}}"),
        Env(name="VODA_WORKFLOW_UID", value="{{workflow.uid}}"),
        Env(name="VODA_JOB_NAME", value=_input("job-name")),
        Env(name="VODA_SEGMENT", value=_input("segment")),
        Env(
            name="VODA_CHECKPOINT_ROOT",
            value="/voda/{{workflow.namespace}}/{{workflow.uid}}/" + _input("job-name"),
        ),
    ]


def _member_env() -> list[Env | FieldEnv]:
    """What driver and workers know beyond the job's identity: who they are and the job's key."""
    return [
        *_identity_env(),
        FieldEnv(name="VODA_POD_UID", field_path="metadata.uid"),
        FieldEnv(name="VODA_POD_IP", field_path="status.podIP"),
        Env(name="VODA_KEY_FILE", value="/etc/voda-key/key"),
        Env(name="VODA_COMMAND", value=_input("command")),
    ]


def _labels(role: str) -> dict[str, str]:
    return {"voda.dev/role": role, "voda.dev/job": _input("job-name"), "voda.dev/segment": _input("segment")}


def _claim() -> ExistingVolume:
    return ExistingVolume(name="voda", claim_name=_input("volume"), mount_path="/voda")


def _key() -> SecretVolume:
    return SecretVolume(
        name="voda-key",
        secret_name="voda-key-{{workflow.uid}}",  # noqa: S106 -- a name, not a secret
        mount_path="/etc/voda-key",
        read_only=True,
    )


def _small() -> Resources:
    """What driver and checkpoint step need: they talk and count, and the first reads a file at a time."""
    return Resources(cpu_request="100m", memory_request="256Mi")


def _tolerations() -> list[m.Toleration]:
    """A lost node is not waited for, and GPU nodes take all pods of a job: a cluster may have no others."""
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    node_loss = [
        m.Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=NODE_LOSS_S) for key in keys
    ]
    return [*node_loss, m.Toleration(key="nvidia.com/gpu", operator="Exists")]


def _asked() -> list[Parameter]:
    """Every input of a job with its default; what has none stays without one, so that Argo asks for it."""
    return [
        Parameter(name=row.name, description=row.description)
        if row.default is None
        else Parameter(name=row.name, description=row.description, default=row.default)
        for row in PARAMETERS
    ]


def _shown() -> list[Parameter]:
    """The same as a Workflow's arguments: what a submit form shows."""
    return [
        Parameter(name=row.name, description=row.description)
        if row.default is None
        else Parameter(name=row.name, description=row.description, value=row.default)
        for row in PARAMETERS
    ]


def _job() -> Steps:
    outputs = [
        Parameter(
            name=name,
            value_from=m.ValueFrom(parameter=f"{{{{steps.segment.outputs.parameters.{name}}}}}", default="unknown"),
        )
        for name in JOB_OUTPUTS
    ]
    with Steps(name=JOB_ENTRYPOINT, inputs=_asked(), outputs=outputs) as job:
        Step(name="segment", template="segment", arguments=_passed(*POD_PARAMETERS, segment="0"))
    return job


def _segment() -> Steps:
    granted = "'{{steps.gate.outputs.parameters.grant}}'"
    with Steps(
        name="segment",
        inputs=_inputs(*_SEGMENT_INPUTS),
        outputs=taken_from("train", "requeue"),
    ) as segment:
        Step(name="gate", template="gate")
        with segment.parallel():
            Step(
                name="train",
                template="train",
                when=f"{granted} == 'given'",
                arguments=_passed(*_SEGMENT_INPUTS, workers="{{steps.gate.outputs.parameters.workers}}"),
            )
            Step(
                name="requeue",
                template="segment",
                when=f"{granted} != 'given'",
                arguments=_passed(*_SEGMENT_INPUTS),
            )
    return segment


def _worker_step(workers: str) -> Step:
    return Step(
        name="worker",
        template="worker",
        continue_on=_CONTINUE,
        with_param=workers,
        arguments=_passed(*_WORKER_INPUTS, **{name: f"{{{{item.{name}}}}}" for name in _GRANTED}),
    )


def _train() -> Steps:
    with Steps(
        name="train", inputs=_inputs(*_SEGMENT_INPUTS, "workers"), outputs=taken_from("resize", "checkpoint")
    ) as train:
        with train.parallel():
            Step(name="driver", template="driver", continue_on=_CONTINUE, arguments=_passed(*_DRIVER_INPUTS))
            _worker_step(_input("workers"))
            Step(name="grow", template="grow", continue_on=_CONTINUE, arguments=_passed(*_WORKER_INPUTS))
        Step(
            name="checkpoint",
            template="checkpoint",
            arguments=_passed(*_CHECKPOINT_INPUTS, status="{{steps.driver.status}}"),
        )
        Step(
            name="resize",
            template="segment",
            when="'{{steps.checkpoint.outputs.parameters.state}}' != 'done'",
            arguments=_passed(*POD_PARAMETERS, segment="{{=asInt(inputs.parameters.segment)+1}}"),
        )
    return train


def _grow() -> Steps:
    with Steps(name="grow", inputs=_inputs(*_WORKER_INPUTS)) as grow:
        Step(name="gate", template="grow-gate")
        with grow.parallel():
            _worker_step("{{steps.gate.outputs.parameters.workers}}")
            Step(
                name="again",
                template="grow",
                continue_on=_CONTINUE,
                when="'{{steps.gate.outputs.parameters.more}}' == 'yes'",
                arguments=_passed(*_WORKER_INPUTS),
            )
    return grow


def _gates() -> list[Suspend]:
    return [
        Suspend(name="gate", outputs=[_supplied("grant", "none"), _supplied("workers", "[]")]),
        Suspend(name="grow-gate", outputs=[_supplied("workers", "[]"), _supplied("more", "yes")]),
    ]


def _worker() -> Container:
    place = {
        "nodeSelector": {"kubernetes.io/hostname": _input("node")},
        "terminationGracePeriodSeconds": GRACE_S,
        "containers": [
            {
                "name": "main",
                "resources": {
                    "limits": {"nvidia.com/gpu": _input("gpus")},
                    "requests": {"cpu": _input("cpu-per-worker"), "memory": _input("memory-per-worker")},
                },
            }
        ],
    }
    return Container(
        name="worker",
        inputs=_inputs(*_WORKER_INPUTS, *_GRANTED),
        labels={**_labels("worker"), "voda.dev/worker": _input("id")},
        service_account_name=_input("service-account"),
        image=_input("image"),
        command=["python", "-m", "voda_flows.runtime.agent"],
        working_dir=_input("workdir"),
        env=[
            *_member_env(),
            Env(name="VODA_WORKER", value=_input("id")),
            Env(name="VODA_WARM", value=_input("warm")),
        ],
        volumes=[_claim(), _key()],
        # The default, said aloud: the API server adds it, and whoever applies the template without it changes it.
        ports=[m.ContainerPort(name="agent", container_port=AGENT_PORT, protocol="TCP")],
        readiness_probe=m.Probe(
            tcp_socket=m.TCPSocketAction(port=m.IntOrString(AGENT_PORT)), period_seconds=1, failure_threshold=3
        ),
        tolerations=_tolerations(),
        pod_spec_patch=json.dumps(place),
    )


def _driver() -> Container:
    document = m.DownwardAPIVolumeFile(
        path="allocation", field_ref=m.ObjectFieldSelector(field_path="metadata.annotations['voda.dev/allocation']")
    )
    progress = "/tmp/voda-progress"  # noqa: S108 -- in the pod's own file system
    return Container(
        name="driver",
        inputs=_inputs(*_DRIVER_INPUTS),
        outputs=[Parameter(name=DRIVER_PROGRESS, value_from=m.ValueFrom(path=progress, default=""))],
        labels=_labels("driver"),
        annotations={"voda.dev/allocation": ""},
        service_account_name=_input("service-account"),
        image=_input("image"),
        command=["python", "-m", "voda_flows.runtime.driver"],
        working_dir=_input("workdir"),
        env=[
            *_member_env(),
            Env(name="VODA_ALLOCATION_FILE", value="/podinfo/allocation"),
            Env(name="VODA_EPOCHS", value=_input("epochs")),
            Env(name="VODA_CHECKPOINT_STEPS", value=_input("checkpoint-steps")),
            Env(name="VODA_LAUNCHER", value=_input("launcher")),
            Env(name="VODA_RESTART_LIMIT", value=_input("restart-limit")),
            Env(name="VODA_OUTPUTS", value=f"{DRIVER_PROGRESS}={progress}"),
        ],
        volumes=[_claim(), _key(), DownwardAPIVolume(name="podinfo", items=[document], mount_path="/podinfo")],
        tolerations=_tolerations(),
        resources=_small(),
        pod_spec_patch=json.dumps({"terminationGracePeriodSeconds": GRACE_S}),
    )


def _checkpoint() -> Container:
    files = {name: f"/tmp/voda-{name}" for name in CHECKPOINT_OUTPUTS}  # noqa: S108 -- in the pod's own file system
    said = [
        Parameter(name=name, value_from=m.ValueFrom(path=files[name], default=default))
        for name, default in CHECKPOINT_OUTPUTS.items()
    ]
    return Container(
        name="checkpoint",
        inputs=_inputs(*_CHECKPOINT_INPUTS, "status"),
        outputs=said,
        labels=_labels("checkpoint"),
        service_account_name=_input("service-account"),
        image=_input("image"),
        command=["python", "-m", "voda_flows.runtime.checkpoint"],
        env=[
            *_identity_env(),
            Env(name="VODA_DRIVER_STATUS", value=_input("status")),
            Env(name="VODA_RETRY_LIMIT", value=_input("retry-limit")),
            Env(name="VODA_OUTPUTS", value=" ".join(f"{name}={path}" for name, path in files.items())),
        ],
        volumes=[_claim()],
        tolerations=_tolerations(),
        resources=_small(),
        retry_strategy=RetryStrategy(
            limit=str(CHECKPOINT_TRIES), retry_policy="Always", expression="lastRetry.exitCode != '1'"
        ),
    )


w = WorkflowTemplate(
    name=JOB_TEMPLATE,
    labels={"app.kubernetes.io/part-of": "voda"},
    annotations=described(DESCRIPTION),
    entrypoint=JOB_ENTRYPOINT,
    arguments=_shown(),
    templates=called(_job(), _segment(), _train(), _grow(), *_gates(), _worker(), _driver(), _checkpoint()),
)
