"""Jobs that cannot run as they are: each is told why at its gate, or ends with the reason; the others are unharmed."""

from __future__ import annotations

import os
import signal

import pytest

from tests.cluster.cases import LIFE, SAMPLES, argo, closed, explained, nodes, queued_again, root, strangers
from tests.cluster.installed import NAMESPACE, SETTINGS, Installation
from tests.e2e.job_record import epochs
from voda_flows.objects import Object, phase_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
CLAIMS = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
QUICKLY = {**SETTINGS, "start_limit_s": "5"}


def messages(installed: Installation, workflow: str) -> str:
    """What its nodes say."""
    return "\n".join(str(node["message"]) for node in nodes(installed, workflow).nodes.values() if node.get("message"))


def test_requests_that_cannot_work_are_refused_at_the_gate(installed: Installation) -> None:
    """A volume for one node, no volume at all, too small a parallelism: failed with the reason, no pod was made."""
    installed.reset()
    installed.cluster.api.delete(f"{CLAIMS}/alone")
    installed.cluster.api.wait_until_gone(CLAIMS, "alone")
    installed.cluster.api.post(
        CLAIMS,
        {
            "metadata": {"name": "alone"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        },
    )
    narrow: Object = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "narrow"},
        "spec": {"workflowTemplateRef": {"name": "voda-elastic-job"}, "parallelism": 1},
    }
    wanted = {
        installed.job("alone", LIFE, volume="alone"): "expected volume 'alone' to be one that all nodes can mount "
        "(ReadWriteMany), its claim has ReadWriteOnce",
        installed.job("nowhere", LIFE, volume="nowhere"): "expected a claim 'nowhere' in namespace 'voda' for its "
        "checkpoints, there is none: make it",
        installed.submit(narrow, command=LIFE): "expected the Workflow's parallelism to be at least 2 (max-gpus in "
        "workers, and a driver), got 1",
    }

    ended = {name: phase_of(installed.wait_ended(name)) for name in wanted}

    assert ended == dict.fromkeys(wanted, "Failed")
    for name, reason in wanted.items():
        assert f"job {name}/train: {reason}" in messages(installed, name)
        assert reason in argo(installed, "get", name), name
        assert installed.pods(name) == []


def test_an_image_that_cannot_be_had_ends_its_job_only(installed: Installation) -> None:
    """Its GPUs go to another after the start limit, people are told what the kubelet says, and in the end it fails."""
    installed.reset()
    installed.configure(**QUICKLY)
    with strangers(installed, n0=2, n1=2):
        bad = installed.job("unpullable", LIFE, image="localhost/nothing:1", min_gpus="2", max_gpus="2")
        assert installed.until(
            lambda: "ErrImage" in explained(installed, bad) or "ImagePull" in explained(installed, bad)
        )
        assert phase_of(installed.wait_ended(bad)) == "Failed", installed.story(bad)
        installed.configure(**SETTINGS)
        good = installed.job("neighbour", LIFE, epochs="1", min_gpus="2", max_gpus="2")
        assert phase_of(installed.wait_ended(good)) == "Succeeded", installed.story(good)

    said = messages(installed, bad)
    assert "its driver did not come up within 5 s" in said  # its image may not have been asked for so soon
    assert "the checkpoint step did not come up within 5 s: " in said
    assert "nothing:1" in said
    assert epochs(root(installed, good), SAMPLES) == [0]


def test_a_gpu_that_a_stranger_took_meanwhile(installed: Installation) -> None:
    """Granted, and before its pods are made somebody else is on the node: told why, and granted again later."""
    installed.reset()
    controller = installed.cluster.processes.pid("workflow-controller")
    assert controller is not None
    with strangers(installed, n1=2, n2=2):
        try:
            with closed(installed, "n0"):
                name = installed.job("late", LIFE, epochs="1", min_gpus="2", max_gpus="2")
                queued_again(installed, name, segment=0)
                os.kill(controller, signal.SIGSTOP)
            granted = installed.until_life(name, lambda life: life.segments[-1].granted_s is not None)
            assert granted.holding == ()
            with strangers(installed, n0=2):
                os.kill(controller, signal.SIGCONT)
                assert installed.until(lambda: "Unschedulable: " in explained(installed, name)), installed.story(name)
                queued_again(installed, name, segment=1)
        finally:
            os.kill(controller, signal.SIGCONT)
        ended = installed.wait_ended(name)

    assert (phase_of(ended), epochs(root(installed, name), SAMPLES)) == ("Succeeded", [0])
