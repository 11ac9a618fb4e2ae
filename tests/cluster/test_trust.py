"""What a job's pods may do to others: nothing. Rights by the API server's own word, keys and addresses in real pods."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import overlay
from tests.cluster.installed import NAMESPACE, Installation
from tests.cluster.places import REPOSITORY
from tests.cluster.sleepers import write_kubeconfig
from tests.cluster.trial import pod
from tests.cluster.victims import listening_ports, live_pods, processes_of
from voda_flows.objects import POD_ENDED, Object, phase_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
LIFE = f"python {REPOSITORY}/tests/e2e/train_life.py 600 0.1"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
AGENT_PORT, DRIVER_PORT = 7070, 7071
#: What every account may ask about itself.
OF_ITSELF = {
    "selfsubjectreviews.authentication.k8s.io": "create",
    "selfsubjectaccessreviews.authorization.k8s.io": "create",
    "selfsubjectrulesreviews.authorization.k8s.io": "create",
}


@pytest.fixture
def voda(installed: Installation) -> Iterator[Installation]:
    """Voda with nothing on it."""
    installed.reset()
    yield installed
    installed.reset()


@pytest.mark.parametrize(
    ("namespace", "expected"),
    [(NAMESPACE, OF_ITSELF | {"workflowtaskresults.argoproj.io": "create patch"}), ("default", OF_ITSELF)],
)
def test_a_jobs_account_may_say_how_its_pods_ended_and_no_more(
    voda: Installation, tmp_path: Path, namespace: str, expected: dict[str, str]
) -> None:
    """`kubectl auth can-i --list` with its token: one resource in its namespace, none in others; URLs are only read."""
    write_kubeconfig(voda.cluster, tmp_path / "config", "voda-job")
    command = [voda.cluster.programs.path("kubectl"), f"--kubeconfig={tmp_path / 'config'}", "auth", "can-i", "--list"]
    said = subprocess.run([*command, f"--namespace={namespace}"], capture_output=True, text=True, check=True).stdout
    rows = [line for line in said.splitlines()[1:] if line]
    of_resources = {row.split()[0]: row[row.rindex("[") + 1 : -1] for row in rows if not row.startswith(" ")}
    of_urls = {row[row.rindex("[") + 1 : -1] for row in rows if row.startswith(" ")}

    assert (of_resources, of_urls) == (expected, {"get"})


def test_another_job_commands_nothing(voda: Installation) -> None:
    """With its own key, or with the right one and anything else wrong: agents and the rendezvous refuse it."""
    jobs = {name: voda.job(name, LIFE, epochs="60") for name in ("mine", "theirs")}
    for name in jobs.values():
        voda.until_life(name, lambda life: life.phase == "Running" and life.size == 1)
    voda.until(lambda: _rows(voda) > 0)
    before = voda.pods("theirs", "worker")

    found = _attack(voda, {name: str(voda.workflow(name)["metadata"]["uid"]) for name in jobs})
    rows = _rows(voda)
    goes_on = voda.until(lambda: _rows(voda) > rows + 5)

    assert set(found.values()) == {"refused", "403"}, found
    assert (found["a PUT to their rendezvous"], len(found)) == ("403", 7)
    assert goes_on, voda.story("theirs")
    assert [(each["metadata"]["uid"], phase_of(each)) for each in voda.pods("theirs", "worker")] == [
        (each["metadata"]["uid"], "Running") for each in before
    ]


def _rows(voda: Installation) -> int:
    """How many report rows the job that is attacked has written."""
    uid = voda.workflow("theirs")["metadata"]["uid"]
    path = voda.volume / NAMESPACE / uid / "train/segment-0/reports.jsonl"
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


def _attack(voda: Installation, uids: dict[str, str]) -> dict[str, str]:
    """Run the intruder in a pod of the namespace; what its attempts came to."""
    (driver,) = [each for each in live_pods(voda, "driver") if each["metadata"]["name"].startswith("theirs")]
    (worker,) = [each for each in live_pods(voda, "worker") if each["metadata"]["name"].startswith("theirs")]
    (process,) = processes_of(voda.cluster, driver, "voda_flows.runtime.driver")
    (rendezvous,) = listening_ports(process) - {DRIVER_PORT}
    plan = {
        "agent": [worker["status"]["podIP"], AGENT_PORT],
        "rendezvous": [driver["status"]["podIP"], rendezvous],
        "job": f"{uids['theirs']}/train",
        "own_job": f"{uids['mine']}/train",
        "segment": 0,
        "driver_uid": driver["metadata"]["uid"],
        "worker": "w0",
        "own_key": "/keys/mine/key",
        "key": "/keys/theirs/key",
    }
    voda.cluster.api.post(PODS, _intruder(plan, uids))
    voda.until(lambda: any(phase_of(each) in POD_ENDED for each in _named(voda, "intruder")))
    said = voda.cluster.api.text(f"{PODS}/intruder/log")
    voda.cluster.api.delete(f"{PODS}/intruder?gracePeriodSeconds=1")
    found: dict[str, str] = json.loads(said.splitlines()[-1])
    return found


def _named(voda: Installation, name: str) -> list[Object]:
    return [body for key, body in voda.store.snapshot("Pod").items() if (key.namespace, key.name) == (NAMESPACE, name)]


def _intruder(plan: Object, uids: dict[str, str]) -> Object:
    """A pod with both jobs' keys."""
    body = pod("intruder", "python", "-m", "tests.cluster.intruder", json.dumps(plan), node="n0")
    container = body["spec"]["containers"][0]
    container["env"] = [{"name": name, "value": value} for name, value in overlay.environment().items()]
    for name, uid in uids.items():
        body["spec"]["volumes"].append({"name": name, "secret": {"secretName": f"voda-key-{uid}"}})
        container["volumeMounts"].append({"name": name, "mountPath": f"/keys/{name}"})
    return body
