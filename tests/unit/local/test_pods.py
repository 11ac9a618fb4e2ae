"""Pods as real processes under a real engine: starts, ends, outputs, signals, orphans, files that follow."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import stat
import sys
import time
from pathlib import Path

import pytest

from tests.unit.local.conftest import World
from voda_flows.local.processes import parent_of
from voda_flows.objects import Object, parse_time

SAY = "import os, socket, sys, time; open(os.environ['ARGO_PROGRESS_FILE'], 'w').write('1/1')"
SH_SAY = "echo 1/1 > $ARGO_PROGRESS_FILE"
"""How a pod's command tells the test that it has come so far: by its progress, which the store has soon after."""


def has_said(pod: Object) -> bool:
    """Whether the pod's command has come to where it says so."""
    return "voda.dev/progress" in (pod["metadata"].get("annotations") or {})


def outputs(pod: Object) -> Object:
    """What a pod's end carries."""
    return dict(json.loads(pod["metadata"]["annotations"]["voda.dev/outputs"]))


def terminated(pod: Object) -> Object:
    """How the container ended."""
    return dict(pod["status"]["containerStatuses"][0]["state"]["terminated"])


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ready(pod: Object) -> bool:
    """Whether the pod is said to be ready."""
    return any(
        one["type"] == "Ready" and one["status"] == "True" for one in (pod.get("status") or {}).get("conditions", ())
    )


def test_pod_runs_to_its_end(world: World) -> None:
    """A pod gets a node and an address, runs, and its end is told with code, times and log."""
    world.pod("plain", "sh", "-c", "echo one; echo two >&2; echo three")
    pod = world.phase("Pod", "plain", "Succeeded", "Failed")

    assert pod["spec"]["nodeName"] in ("n0", "n1")
    assert pod["status"]["podIP"].startswith("127.")
    assert pod["status"]["phase"] == "Succeeded"
    assert (terminated(pod)["exitCode"], terminated(pod)["reason"]) == (0, "Completed")
    assert parse_time(terminated(pod)["startedAt"]) <= parse_time(terminated(pod)["finishedAt"])
    assert outputs(pod) == {"parameters": {}, "exitCode": "0"}
    assert world.log(pod) == "one\ntwo\nthree\n"
    assert not ready(pod)


def test_failure_is_told_with_its_code(world: World) -> None:
    """A command's exit code, and 128 and the signal's number for one that was killed."""
    world.pod("exit-3", "sh", "-c", "exit 3")
    world.pod("killed", "sh", "-c", "kill -9 $$$$")

    assert world.phase("Pod", "exit-3", "Failed")["status"]["message"] == "Error (exit code 3)"
    assert world.phase("Pod", "killed", "Failed")["status"]["message"] == "Error (exit code 137)"


def test_command_that_is_not_there(world: World) -> None:
    """A command that does not exist fails in the words of Argo's executor."""
    world.pod("absent", "no-such-program")
    pod = world.phase("Pod", "absent", "Failed")

    said = 'failed to find name in PATH: exec: "no-such-program": executable file not found in $PATH'
    assert (terminated(pod)["exitCode"], terminated(pod)["message"]) == (64, said)


def test_outputs_are_collected(world: World) -> None:
    """Declared files and standard output come back without their last newline; what is not there is left out."""
    collect = {"parameters": {"o": "/tmp/voda-o", "none": "/tmp/voda-none"}, "result": True}
    script = "printf 'a\\n\\n' > /tmp/voda-o; echo result; echo aside >&2; echo more"
    world.pod("outputs", "sh", "-c", script, annotations={"voda.dev/collect": json.dumps(collect)})
    pod = world.phase("Pod", "outputs", "Succeeded", "Failed")

    assert outputs(pod) == {"parameters": {"o": "a\n"}, "result": "result\nmore", "exitCode": "0"}
    assert sorted(world.log(pod).splitlines()) == ["aside", "more", "result"]
    assert not Path("/tmp/voda-o").exists()


def test_python_is_the_one_that_runs_voda(world: World) -> None:
    """``python`` is this interpreter, whatever PATH says, and Voda can be imported."""
    collect = {"voda.dev/collect": '{"result": true}'}
    world.pod("py", "python", "-c", "import sys, voda_flows; print(sys.executable)", annotations=collect)
    world.pod("sh-py", "sh", "-c", "python -c 'import sys; print(sys.executable)'", annotations=collect)

    assert outputs(world.phase("Pod", "py", "Succeeded", "Failed"))["result"] == sys.executable
    assert outputs(world.phase("Pod", "sh-py", "Succeeded", "Failed"))["result"] == sys.executable


def test_addresses_differ(world: World) -> None:
    """Each pod has an address of its own on which it can listen."""
    code = "import os, socket, time; s = socket.create_server((os.environ['IP'], 7070)); time.sleep(60)"
    env = {"env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]}
    probe = {"readinessProbe": {"tcpSocket": {"port": 7070}}}
    for name in ("listen-a", "listen-b"):
        world.pod(name, "python", "-c", code, container={**env, **probe})
    pods = [world.until("Pod", name, ready) for name in ("listen-a", "listen-b")]

    assert len({pod["status"]["podIP"] for pod in pods}) == 2
    for pod in pods:
        socket.create_connection((pod["status"]["podIP"], 7070), 5).close()
        world.store.delete("Pod", "default", pod["metadata"]["name"])


def test_ready_only_once_it_listens(world: World) -> None:
    """A pod with a readiness probe runs before it is ready, and is ready soon after it listens."""
    code = (
        f"{SAY}\nwhile not os.path.exists('go'): time.sleep(0.005)\n"
        "s = socket.create_server((os.environ['IP'], 7071)); print(time.time(), flush=True); time.sleep(60)"
    )
    env = {"env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]}
    probe = {"readinessProbe": {"tcpSocket": {"port": 7071}}}
    world.pod("late", "python", "-c", code, container={**env, **probe})
    pod = world.until("Pod", "late", has_said)
    assert not ready(pod)

    (world.folder(pod) / "fs" / "go").touch()
    pod = world.until("Pod", "late", ready)
    listening_s = float(world.log(pod))
    condition = next(one for one in pod["status"]["conditions"] if one["type"] == "Ready")

    assert parse_time(condition["lastTransitionTime"]).timestamp() - listening_s < 0.5
    world.store.delete("Pod", "default", "late")


def test_slots_are_shared_out(world: World) -> None:
    """GPU pods hold slots alone, tell them, and wait for them; without devices they see none."""
    world.pod("gpu-a", "sh", "-c", "sleep 60", gpus=2, spec={"nodeSelector": {"kubernetes.io/hostname": "n1"}})
    first = world.phase("Pod", "gpu-a", "Running")
    world.pod(
        "gpu-b",
        "sh",
        "-c",
        "echo [$CUDA_VISIBLE_DEVICES]",
        gpus=1,
        spec={"nodeSelector": {"kubernetes.io/hostname": "n1"}},
    )
    waiting = world.until("Pod", "gpu-b", lambda pod: (pod.get("status") or {}).get("message"))

    assert first["metadata"]["annotations"]["voda.dev/slots"] == "0,1"
    assert waiting["status"]["message"].startswith("Unschedulable: 0/2 nodes are available: 1 Insufficient")
    world.store.delete("Pod", "default", "gpu-a")
    world.store.delete("Pod", "default", "gpu-b")
    assert world.gone("Pod", "gpu-b")


def test_deleted_pod_may_say_goodbye(world: World) -> None:
    """A deleted pod gets SIGTERM, its end is recorded, and then it and its folder are gone."""
    world.pod("polite", "sh", "-c", f"trap 'echo bye > {world.home}/bye; exit 0' TERM; {SH_SAY}; sleep 60 & wait")
    pod = world.until("Pod", "polite", has_said)
    world.store.delete("Pod", "default", "polite")

    assert world.gone("Pod", "polite")
    assert (world.home / "bye").read_text() == "bye\n"
    assert not world.folder(pod).exists()


def test_stubborn_pod_is_killed_after_its_grace_period(world: World) -> None:
    """Who ignores SIGTERM is killed once the grace period is over, not before."""
    code = f"{SAY}; time.sleep(60)".replace("import os", "import signal; signal.signal(15, signal.SIG_IGN); import os")
    world.pod("stubborn", "python", "-c", code, spec={"terminationGracePeriodSeconds": 0.5})
    world.until("Pod", "stubborn", has_said)
    start_s = time.monotonic()
    world.store.delete("Pod", "default", "stubborn")

    assert world.gone("Pod", "stubborn")
    assert time.monotonic() - start_s >= 0.5


def test_no_process_survives_its_pod(world: World) -> None:
    """When the command ends, whatever it left behind is killed, also what made itself a session of its own."""
    orphan = world.home / "orphan"
    leave = f"(setsid sh -c 'echo $$$$ > {orphan}; exec sleep 600' &)"
    world.pod("leaves", "sh", "-c", f"{leave}; while ! test -s {orphan}; do sleep 0.01; done")
    world.phase("Pod", "leaves", "Succeeded", "Failed")

    assert not is_alive(int(orphan.read_text()))


def test_lost_parent_is_noticed(world: World) -> None:
    """A pod whose parent process is killed is Failed, and nothing of it goes on."""
    orphan = world.home / "left"
    leave = f"(setsid sh -c 'echo $$$$ > {orphan}; {SH_SAY}; exec sleep 600' &)"
    world.pod("lost", "sh", "-c", f"{leave}; sleep 600")
    parent = parent_of(world.folder(world.until("Pod", "lost", has_said)))
    assert parent is not None
    os.kill(parent, signal.SIGKILL)
    pod = world.phase("Pod", "lost", "Failed")

    assert (pod["status"]["reason"], pod["status"]["message"]) == ("Lost", "pod's process was lost")
    assert not is_alive(int(orphan.read_text()))


def test_annotation_reaches_the_pod(world: World) -> None:
    """A downward-API file says what the annotation says, whole at every moment, also after it changes."""
    code = (
        "import pathlib, time\nfile, last = pathlib.Path('/podinfo/allocation'), None\n"
        "while last != 'done':\n"
        "    text = file.read_text()\n"
        "    if text != last: print(text, flush=True)\n"
        f"    last = text; time.sleep(0.002); {SAY}"
    )
    item = {"path": "allocation", "fieldRef": {"fieldPath": "metadata.annotations['voda.dev/allocation']"}}
    spec = {"volumes": [{"name": "podinfo", "downwardAPI": {"items": [item]}}]}
    mounts = {"volumeMounts": [{"name": "podinfo", "mountPath": "/podinfo"}]}
    world.pod(
        "follows", "python", "-c", code, container=mounts, spec=spec, annotations={"voda.dev/allocation": "first"}
    )
    pod = world.until("Pod", "follows", has_said)
    patch = {"metadata": {"annotations": {"voda.dev/allocation": "done"}}}
    world.store.merge_patch("Pod", "default", "follows", patch)
    world.phase("Pod", "follows", "Succeeded")

    assert world.log(pod).splitlines() == ["first", "done"]


def test_progress_is_told(world: World) -> None:
    """What the command writes to its progress file is the pod's progress; nonsense is not."""
    script = "echo 3/10 > $ARGO_PROGRESS_FILE; while ! test -e go; do sleep 0.01; done; echo x > $ARGO_PROGRESS_FILE"
    world.pod("progress", "sh", "-c", script)
    pod = world.until("Pod", "progress", lambda body: body["metadata"]["annotations"].get("voda.dev/progress"))
    (world.folder(pod) / "fs" / "go").touch()
    pod = world.phase("Pod", "progress", "Succeeded")

    assert pod["metadata"]["annotations"]["voda.dev/progress"] == "3/10"


def test_secret_is_waited_for_and_kept_private(world: World) -> None:
    """A pod waits for a Secret that it mounts, says so, and then has it in a file that only its owner reads."""
    volumes = {"volumes": [{"name": "k", "secret": {"secretName": "the-key"}}]}
    mounts = {"volumeMounts": [{"name": "k", "mountPath": "/etc/key"}]}
    collect = {"voda.dev/collect": '{"result": true}'}
    world.pod("secret", "cat", "/etc/key/key", container=mounts, spec=volumes, annotations=collect)
    waiting = world.until("Pod", "secret", lambda pod: (pod.get("status") or {}).get("message"))
    assert "Secret default/the-key" in waiting["status"]["message"]

    data = {"key": base64.b64encode(b"abc").decode()}
    world.store.create({"kind": "Secret", "metadata": {"name": "the-key"}, "data": data})
    pod = world.phase("Pod", "secret", "Succeeded", "Failed")

    assert outputs(pod)["result"] == "abc"
    assert stat.S_IMODE((world.folder(pod) / "volumes/k/key").stat().st_mode) == 0o600


def test_claim_is_shared_between_pods(world: World) -> None:
    """What one pod writes to a claim, another one reads."""
    volumes = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "shared"}}]}
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/data"}]}
    world.pod("writes", "sh", "-c", "mkdir /data/sub && echo hello > /data/sub/x", container=mounts, spec=volumes)
    world.phase("Pod", "writes", "Succeeded", "Failed")
    world.pod("reads", "cat", "/data/sub/x", container=mounts, spec=volumes)

    assert world.log(world.phase("Pod", "reads", "Succeeded", "Failed")) == "hello\n"
    assert (world.home / "volumes/shared/sub/x").exists()


@pytest.mark.parametrize(
    ("name", "spec", "said"),
    [
        ("no-command", {"containers": [{"name": "main"}]}, "cannot start: expected a command"),
        ("no-containers", {"containers": "x"}, "cannot start: expected a list of containers"),
        ("odd-mounts", {"containers": [{"name": "main", "command": ["x"], "volumeMounts": [1]}]}, "cannot start: "),
        ("bad-volume", {"volumes": [{"name": "v", "nfs": {}}]}, "cannot start: volume 'v'"),
    ],
)
def test_pod_that_makes_no_sense_fails(world: World, name: str, spec: Object, said: str) -> None:
    """What cannot be started fails with the reason instead of waiting for ever."""
    world.pod(name, "true", spec=spec)

    assert world.phase("Pod", name, "Failed")["status"]["message"].startswith(said)


def test_deadline_ends_a_pod(world: World) -> None:
    """A pod that runs longer than its deadline is Failed with Kubernetes' reason."""
    world.pod("too-long", "sleep", "60", spec={"activeDeadlineSeconds": 0.2})
    pod = world.phase("Pod", "too-long", "Failed")

    assert pod["status"]["reason"] == "DeadlineExceeded"
    assert pod["status"]["message"] == "Pod was active on the node longer than the specified deadline"
