"""Workflows as users write them, around, beside and instead of one training step: each ends as its user expects."""

from __future__ import annotations

import pytest

from tests.cluster.cases import (
    LIFE,
    LONG,
    SAMPLES,
    argo,
    freed_after_s,
    gone,
    kubectl,
    live_pods,
    of_template,
    queued_again,
    root,
    strangers,
    trains,
)
from tests.cluster.images import HOST_IMAGE, host_mount, host_volume
from tests.cluster.installed import Installation
from tests.e2e.job_record import epochs, verdicts
from voda_flows.objects import Object, phase_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def training(name: str, command: str = LIFE, **parameters: str) -> Object:
    """A step that is one training job."""
    given = {"command": command, "job-name": name, **{key.replace("_", "-"): text for key, text in parameters.items()}}
    return {
        "name": name,
        "templateRef": {"name": "voda-elastic-job", "template": "job"},
        "arguments": {"parameters": [{"name": key, "value": text} for key, text in given.items()]},
    }


def pod_template(name: str, script: str) -> Object:
    """A template that is an ordinary pod of a shell's script, with the jobs' volume."""
    return {
        "name": name,
        "serviceAccountName": "voda-job",
        "container": {
            "image": HOST_IMAGE,
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", script],
            "volumeMounts": [host_mount(), {"name": "voda", "mountPath": "/voda"}],
        },
        "volumes": [host_volume(), {"name": "voda", "persistentVolumeClaim": {"claimName": "voda"}}],
    }


def workflow(name: str, *templates: Object) -> Object:
    """A Workflow whose first template is the way in."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name},
        "spec": {"entrypoint": templates[0]["name"], "templates": list(templates)},
    }


def test_a_pipeline_with_several_training_steps(installed: Installation) -> None:
    """Steps around, two jobs at once, then one whose first try fails and that is tried again: all in their order."""
    installed.reset()
    once = "test -e /voda/tried-$VODA_WORKFLOW_UID || { touch /voda/tried-$VODA_WORKFLOW_UID; exit 3; }"
    flaky = f"sh -c '{once}; exec {LIFE}'"
    body = workflow(
        "pipeline",
        {
            "name": "main",
            "steps": [
                [{"name": "prepare", "template": "prepare"}],
                [training("left"), training("right", max_gpus="2")],
                [{"name": "stubborn", "template": "stubborn"}],
                [{"name": "evaluate", "template": "evaluate"}],
            ],
        },
        pod_template("prepare", "echo prepared"),
        {
            "name": "stubborn",
            "retryStrategy": {"limit": "2", "retryPolicy": "Always"},
            "steps": [[training("flaky", flaky, retry_limit="0", restart_limit="0")]],
        },
        pod_template("evaluate", "ls /voda/voda/{{workflow.uid}}"),
    )

    name = installed.submit(body)
    ended = installed.wait_ended(name, 2 * 300.0)

    assert phase_of(ended) == "Succeeded", installed.story(name)
    (evaluate,) = of_template(installed, name, "evaluate")
    (log,) = [
        installed.log(pod["metadata"]["name"])
        for pod in installed.pods(name)
        if pod["metadata"]["annotations"]["workflows.argoproj.io/node-id"] == evaluate["id"]
    ]
    said = [line for line in log.splitlines() if "time=" not in line]  # the executor speaks there too
    assert said == ["flaky", "left", "right"]
    assert [epochs(root(installed, name, job), SAMPLES) for job in said] == [[0]] * 3
    assert [verdicts(root(installed, name, job))[-1] for job in said] == ["done"] * 3
    assert live_pods(installed, name) == []


def test_suspend_starts_nothing_new_and_resume_goes_on(installed: Installation) -> None:
    """A suspended job trains on; one at its gate is not granted until `argo resume`, whatever is free."""
    installed.reset()
    running = installed.job("calm", LIFE, epochs=LONG, min_gpus="1", max_gpus="1")
    trains(installed, running)
    (node,) = [pod["spec"]["nodeName"] for pod in installed.pods(running, "worker")]
    held = {name: 1 if name == node else 2 for name in ("n0", "n1", "n2")}
    with strangers(installed, **held):
        waiting = installed.job("patient", LIFE, epochs="1", min_gpus="1", max_gpus="1")
        queued_again(installed, waiting, segment=0)
        for name in (running, waiting):
            argo(installed, "suspend", name)
    before = installed.life(running)
    last = installed.job("passing", LIFE, epochs="1", min_gpus="1", max_gpus="1")
    assert phase_of(installed.wait_ended(last)) == "Succeeded", installed.story(last)

    life = installed.life(waiting)
    assert before is not None
    assert life is not None
    assert (life.status, life.holding) == ("Queued (suspended)", ())
    trains(installed, running, beyond=before.done)

    argo(installed, "resume", waiting)
    assert phase_of(installed.wait_ended(waiting)) == "Succeeded", installed.story(waiting)
    argo(installed, "resume", running)
    argo(installed, "stop", running)
    assert phase_of(installed.wait_ended(running)) == "Failed"


def test_deletion_and_termination_leave_nothing_behind(installed: Installation) -> None:
    """`argo terminate` and `kubectl delete` of running jobs, one of them a user's own Workflow: no pod stays."""
    installed.reset()
    other = workflow("own", {"name": "main", "steps": [[training("inner", epochs=LONG)]]})
    names = [installed.job("ended", LIFE, epochs=LONG), installed.submit(other)]
    for name in names:
        trains(installed, name)

    freed_after_s(installed, names[0], lambda: argo(installed, "terminate", names[0]))
    freed_after_s(installed, names[1], lambda: kubectl(installed, "delete", "workflow", names[1], "--wait=false"))

    assert phase_of(installed.wait_ended(names[0])) == "Failed"
    assert installed.until(lambda: gone(installed, names[1]))
    assert installed.until(lambda: live_pods(installed, names[0]) == [])
    assert installed.gpus_held() == 0
