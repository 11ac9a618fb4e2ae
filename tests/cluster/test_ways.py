"""Whichever way a job comes to a cluster, it is the same job: its document, and what the scheduler reads of it."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from scheduler_core.model.job import JobSpec
from tests.cluster.cluster import Cluster
from tests.cluster.command_lines import CommandLine, on_cluster
from tests.cluster.test_command_line import prepare
from voda_flows.config import Settings
from voda_flows.control.jobs import find_jobs
from voda_flows.control.request import Limits, read_request
from voda_flows.local.up import shipped_templates
from voda_flows.objects import Object
from voda_flows.yaml_text import dump_yaml

pytestmark = pytest.mark.cluster

NAMESPACE = "ways"
WORKFLOWS = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/workflows"
PARAMETERS = {"command": "python -m workloads.digits --repeat 4", "epochs": "36", "min-gpus": "1", "max-gpus": "4"}
LIMIT_S = 240.0
#: As a user would write it; the server and his token are in the environment.
HERA = """
import os
from hera.workflows import Parameter, Workflow, WorkflowsService
from hera.workflows import models as m

service = WorkflowsService(host=os.environ["SERVER"], token=os.environ["ARGO_TOKEN"], namespace=os.environ["NAMESPACE"])
Workflow(
    name="by-hera",
    namespace=os.environ["NAMESPACE"],
    labels={"voda.dev/category": "digits"},
    workflow_template_ref=m.WorkflowTemplateRef(name="voda-elastic-job"),
    arguments=[Parameter(name=name, value=value) for name, value in PARAMETERS.items()],
    workflows_service=service,
).create()
"""


def document(name: str) -> Object:
    """A training job, as a user writes it."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name, "labels": {"voda.dev/category": "digits"}},
        "spec": {
            "workflowTemplateRef": {"name": "voda-elastic-job"},
            "arguments": {"parameters": [{"name": name, "value": text} for name, text in PARAMETERS.items()]},
        },
    }


@pytest.fixture(scope="module")
def line(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A namespace with the job's template, and somebody who may submit to it."""
    prepare(cluster, NAMESPACE)
    made = on_cluster(cluster.kubeconfig, NAMESPACE, tmp_path_factory.mktemp("ways"))
    for template in shipped_templates():
        if template["kind"] == "WorkflowTemplate":
            said = made.voda(
                "submit", made.write_document({**template, "metadata": {"name": template["metadata"]["name"]}})
            )
            assert said.code == 0, said.err
    allow(cluster, NAMESPACE, "person")
    yield made
    cluster.api.delete(f"/api/v1/namespaces/{NAMESPACE}")


def allow(cluster: Cluster, namespace: str, account: str) -> None:
    """An account that may do with Workflows what people do."""
    version, group = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
    metadata = {"name": account, "namespace": namespace}
    rules = [
        {
            "apiGroups": ["argoproj.io"],
            "resources": ["workflows", "workflowtemplates", "workfloweventbindings"],
            "verbs": ["get", "list", "watch", "create", "patch", "update"],
        },
        {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list", "watch"]},
    ]
    cluster.api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    cluster.api.apply({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": rules})
    cluster.api.apply(
        {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": account},
            "subjects": [{"kind": "ServiceAccount", **metadata}],
        }
    )


def run(cluster: Cluster, *command: str, **environment: str) -> None:
    """Run a program as a user would, on this cluster."""
    whole = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), **environment}
    done = subprocess.run(command, env=whole, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def post(server: str, token: str, body: Object) -> None:
    """Send a document to an argo-server's REST API."""
    connection = http.client.HTTPConnection(server, timeout=60)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", f"/api/v1/workflows/{NAMESPACE}", json.dumps({"workflow": body}), headers)
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    connection.close()


def asked(workflow: Object) -> JobSpec:
    """What the scheduler reads of it, its own identity aside."""
    (job,) = find_jobs(workflow)
    spec = read_request(job.asked, Limits(settings=Settings()))
    return replace(spec, id="any", workflow="any", submitted_s=0.0)


def test_every_way_makes_the_same_job(cluster: Cluster, line: CommandLine, tmp_path: Path) -> None:
    """`voda submit`, `kubectl create`, `argo submit`, argo-server's REST API and a Hera script."""
    server, token = cluster.serve_argo(), cluster.token(NAMESPACE, "person")
    kubectl, argo = cluster.programs.path("kubectl"), cluster.programs.path("argo")
    files = {}
    for name in ("by-voda", "by-kubectl", "by-argo"):
        files[name] = tmp_path / f"{name}.yaml"
        files[name].write_text(dump_yaml([document(name)]), encoding="utf-8")
    script = tmp_path / "job.py"
    script.write_text(f"PARAMETERS = {PARAMETERS!r}\n{HERA}", encoding="utf-8")

    said = line.voda("submit", str(files["by-voda"]))
    run(cluster, kubectl, "create", "-n", NAMESPACE, "-f", str(files["by-kubectl"]))
    run(cluster, argo, "submit", "-n", NAMESPACE, str(files["by-argo"]))
    post(server, token, document("by-rest"))
    run(cluster, sys.executable, str(script), SERVER=f"http://{server}", ARGO_TOKEN=token, NAMESPACE=NAMESPACE)

    assert said.code == 0, said.err
    names = ["by-voda", "by-kubectl", "by-argo", "by-rest", "by-hera"]
    waiting = [cluster.api.wait(WORKFLOWS, name, at_its_gate, LIMIT_S) for name in names]
    assert {name: body["spec"] for name, body in zip(names, waiting, strict=True)} == dict.fromkeys(
        names, document("")["spec"]
    )
    assert len({(body["metadata"]["labels"]["voda.dev/category"]) for body in waiting}) == 1
    requests = [asked(body) for body in waiting]
    assert requests == [requests[0]] * len(names)
    assert (requests[0].min_gpus, requests[0].max_gpus, requests[0].epochs) == (1, 4, 36)


def at_its_gate(workflow: Object) -> bool:
    """Whether the controller has taken a job to its gate."""
    nodes = (workflow.get("status") or {}).get("nodes") or {}
    return any(node.get("templateName") == "gate" and node.get("phase") == "Running" for node in nodes.values())
