"""An installation whose jobs train nothing and whose scheduler is a process of the test's: for what is about grants.

In: an installation. Out: the same, with its own scheduler put aside and a job's pods asleep for as long as its command
says, so that many real jobs go through real gates, pods and nodes in little time; and schedulers as plain processes
with the rights of the scheduler's account, over whatever address one gives them.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scheduler_core.errors import NotFound
from tests.cluster import network
from tests.cluster.cluster import Cluster
from tests.cluster.faults import ClusterError
from tests.cluster.installed import NAMESPACE, Installation
from tests.cluster.places import REPOSITORY
from voda_flows.control.lease import NAME as LEASE
from voda_flows.install.overlays import Wanted, documents
from voda_flows.install.starting import start_scheduler
from voda_flows.kube.cluster import Cluster as Chosen
from voda_flows.objects import CRON_LABEL, WORKFLOW_ENDED, Object, has_labels, phase_of
from voda_flows.worlds import open_api

ACCOUNT = "voda-scheduler"
CRON = "voda-scheduler"
TEMPLATE = "voda-elastic-job"
_ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
_WORKFLOWS = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/workflows"
_TOKEN_S = 3600
_END_S = 15.0
_SECONDS = "{{inputs.parameters.command}}"
_LISTENS = "import socket,sys,time; s=socket.create_server(('', 7070)); time.sleep(float(sys.argv[1]))"
_COMMANDS = {
    "driver": ["sleep", _SECONDS],
    "worker": ["python", "-c", _LISTENS, _SECONDS],
    "checkpoint": ["sh", "-c", "printf done >/tmp/voda-state"],
}


@contextlib.contextmanager
def asleep(voda: Installation) -> Iterator[Installation]:
    """The installation without its scheduler, and with jobs whose pods sleep, for as long as the block lasts."""
    voda.reset()
    template = voda.store.get("WorkflowTemplate", NAMESPACE, TEMPLATE)
    try:
        _put_scheduler_aside(voda)
        voda.store.merge_patch("WorkflowTemplate", NAMESPACE, TEMPLATE, {"spec": _sleeping(template["spec"])})
        yield voda
    finally:
        try:
            take_away(voda)
        finally:
            voda.store.merge_patch("WorkflowTemplate", NAMESPACE, TEMPLATE, {"spec": template["spec"]})
            _start_scheduler_again(voda)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerProcess:
    """A scheduler that is a process of ours.

    Attributes:
        process: It.
        log: What it says.
    """

    process: subprocess.Popen[bytes]
    log: Path

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def said(self) -> str:
        """What it has said until now."""
        return self.log.read_text(encoding="utf-8", errors="replace")


@contextlib.contextmanager
def scheduler(voda: Installation, folder: Path, server: str = "") -> Iterator[SchedulerProcess]:
    """A scheduler as a process, which is told to end at the end of the block and gives the Lease back.

    Args:
        voda: The installation whose account it has.
        folder: For its kubeconfig, log and records; made where it is missing.
        server: The address over which it speaks to the API server; by default that itself.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_kubeconfig(voda.cluster, folder / "kubeconfig", ACCOUNT, server)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("VODA_", "KUBE"))},
        "PYTHONPATH": str(REPOSITORY),
        "VODA_WORLD": "cluster",
        "KUBECONFIG": str(folder / "kubeconfig"),
        "VODA_SCHEDULER_NAMESPACE": NAMESPACE,
        "VODA_NAMESPACES": NAMESPACE,
        "VODA_RECORDS": str(folder / "records"),
        "VODA_METRICS": str(folder / "scheduler.prom"),
    }
    log = folder / "log"
    with log.open("ab") as output:
        command = [sys.executable, "-m", "voda_flows.control.scheduler", "--for", "1h"]
        process = subprocess.Popen(command, env=environment, cwd=folder, stderr=output, start_new_session=True)
    try:
        yield SchedulerProcess(process=process, log=log)
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the process in which it decides, too
        process.wait()


def write_kubeconfig(cluster: Cluster, path: Path, account: str, server: str = "") -> None:
    """Write a kubeconfig for one of the installation's accounts, with a token for an hour."""
    asked = {"spec": {"expirationSeconds": _TOKEN_S}}
    token = cluster.api.post(f"{_ACCOUNTS}/{account}/token", asked)["status"]["token"]
    address: Object = {"server": server}
    if not server:
        authority = str(cluster.home.certificates / "ca.crt")
        address = {"server": address_of(cluster), "certificate-authority": authority}
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": address}],
                "users": [{"name": "u", "user": {"token": token}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": NAMESPACE}}],
                "current-context": "x",
            }
        ),
        encoding="utf-8",
    )


def address_of(cluster: Cluster) -> str:
    """The API server's address.

    Raises:
        ClusterError: The cluster is not up.
    """
    found = network.find(cluster.home.folder)
    if found is None:
        raise ClusterError(f"{cluster.home.folder}: expected a cluster that is up, there is none")
    return found.api_url


def sleeper(voda: Installation, name: str, seconds: float, gpus: int = 1) -> str:
    """Submit a job of so many workers that sleeps; its name."""
    return voda.job(name, f"{seconds:g}", min_gpus=str(gpus), max_gpus=str(gpus))


def holder(voda: Installation) -> str:
    """Who holds the Lease, empty for nobody."""
    try:
        return voda.store.get("Lease", NAMESPACE, LEASE)["spec"].get("holderIdentity") or ""
    except NotFound:
        return ""


def _sleeping(spec: Object) -> Object:
    """The template's spec with other commands."""
    made: Object = json.loads(json.dumps(spec))
    for template in made["templates"]:
        if template["name"] in _COMMANDS:
            template["container"]["command"] = _COMMANDS[template["name"]]
    return made


def _put_scheduler_aside(voda: Installation) -> None:
    voda.store.merge_patch("CronWorkflow", NAMESPACE, CRON, {"spec": {"suspend": True}})
    _end_scheduler(voda)


def _end_scheduler(voda: Installation) -> None:
    for key, body in voda.store.snapshot("Workflow").items():
        if has_labels(body, {CRON_LABEL: CRON}) and phase_of(body) not in WORKFLOW_ENDED:
            voda.cluster.api.delete(f"{_WORKFLOWS}/{key.name}")
    if not voda.until(lambda: not voda.scheduler_pods()):
        raise ClusterError("expected the scheduler's pod to go, it is still there")


def take_away(voda: Installation) -> None:
    """Delete all Workflows and wait until they and what they hold are gone.

    Raises:
        ClusterError: Something stays.
    """
    for key in list(voda.store.snapshot("Workflow")):
        voda.cluster.api.delete(f"{_WORKFLOWS}/{key.name}")
    if not voda.until(lambda: not voda.store.snapshot("Workflow") and voda.gpus_held() == 0):
        raise ClusterError("expected all Workflows and their GPUs to go, some are still there")


def _start_scheduler_again(voda: Installation) -> None:
    voda.store.merge_patch("CronWorkflow", NAMESPACE, CRON, {"spec": {"suspend": False}})
    with contextlib.closing(open_api(Chosen(kubeconfig=str(voda.cluster.kubeconfig)))) as api:
        start_scheduler(api, documents(Wanted(overlay=str(voda.overlay))))
    voda.wait_for_scheduler()
