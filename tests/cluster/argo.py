"""Argo Workflows in the cluster: its CRDs, its rights, its settings, its controller.

CRDs and rights are those of Argo's own module. The controller is a process of the control plane's machine; to the API
server it is its service account.
"""

from __future__ import annotations

import concurrent.futures
import http.client
import time
from pathlib import Path

import yaml

from tests.cluster.api import CRDS, Api, RefusedError
from tests.cluster.certificates import ARGO_NAMESPACE
from tests.cluster.control_plane import Setting, answers
from tests.cluster.faults import ClusterError
from tests.cluster.images import EXECUTOR_IMAGE
from tests.cluster.places import CONTROL
from tests.cluster.processes import LOOK_AGAIN_S, Part
from voda_flows.objects import Object

HEALTH_PORT = 6060
SERVER_PORT = 2746
SERVED_LIMIT_S = 180.0
APPLIED_AT_ONCE = 2
NAMESPACED = {"ConfigMap", "ServiceAccount", "Role", "RoleBinding"}
GROUP = "/apis/argoproj.io/v1alpha1"
#: With the defaults a step takes 10 s and progress is seen after a minute (docs/adr/0012).
ENVIRONMENT = {
    "LEADER_ELECTION_DISABLE": "true",
    "DEFAULT_REQUEUE_TIME": "1s",
    "ARGO_PROGRESS_PATCH_TICK_DURATION": "2s",
    "ARGO_PROGRESS_FILE_TICK_DURATION": "1s",
}
SETTINGS = """\
executor: {imagePullPolicy: Never}
metricsConfig: {enabled: true, secure: false, port: 9090}
telemetryConfig: {enabled: false}
"""


def controller(setting: Setting) -> Part:
    """The workflow controller."""
    return Part(
        name="workflow-controller",
        machine=CONTROL,
        command=(
            setting.programs.path("workflow-controller"),
            f"--kubeconfig={setting.file('argo.kubeconfig')}",
            f"--executor-image={EXECUTOR_IMAGE}",
            "--executor-image-pull-policy=Never",
        ),
        environment=ENVIRONMENT,
        is_ready=lambda: answers(setting.network.control, HEALTH_PORT, "/healthz"),
    )


def server(setting: Setting) -> Part:
    """argo-server; who calls it is whoever his token says."""
    return Part(
        name="argo-server",
        machine=CONTROL,
        command=(
            setting.programs.path("argo"),
            "server",
            f"--kubeconfig={setting.file('argo.kubeconfig')}",
            f"--namespace={ARGO_NAMESPACE}",
            "--auth-mode=client",
            "--secure=false",
            f"--port={SERVER_PORT}",
        ),
        # Where it is to send what it is asked with somebody's token, it looks up here and not in its options.
        environment={"KUBECONFIG": setting.file("argo.kubeconfig")},
        # Its pages are there before the service behind its API, which then is the one to say that a token is missing.
        is_ready=lambda: answers(setting.network.control, SERVER_PORT, "/api/v1/info", status=http.client.UNAUTHORIZED),
    )


def install(setting: Setting) -> None:
    """Apply what Argo needs, where it is not there yet."""
    api, manifests = setting.api, setting.programs.argo_manifests
    crds = sorted((manifests / "crds").glob("*.yaml"))
    if not _is_served(api, {_plural(path) for path in crds}):
        with concurrent.futures.ThreadPoolExecutor(APPLIED_AT_ONCE) as pool:
            list(pool.map(lambda path: api.create_text(CRDS, path.read_bytes()), crds))
        _wait_until_served(api, {_plural(path) for path in crds})
    for document in documents(manifests / "rbac"):
        api.apply(document)
    _give_settings(api)


def documents(rbac: Path) -> list[Object]:
    """Namespace, account and rights of the controller.

    Args:
        rbac: Folder of Argo's own manifests, which leave the namespace open.
    """
    made: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ARGO_NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "argo"}},
    ]
    for path in sorted(rbac.glob("*.yaml")):
        made += [document for document in yaml.safe_load_all(path.read_text()) if document is not None]
    return [_placed(document) for document in made]


def _placed(document: Object) -> Object:
    """A document with the namespace where it goes and where its subjects are."""
    placed = dict(document)
    if document["kind"] in NAMESPACED:
        placed["metadata"] = {**document["metadata"], "namespace": ARGO_NAMESPACE}
    if "subjects" in document:
        placed["subjects"] = [{**subject, "namespace": ARGO_NAMESPACE} for subject in document["subjects"]]
    return placed


def _give_settings(api: Api) -> None:
    """Make the controller's ConfigMap, unless somebody has made it theirs."""
    name = "workflow-controller-configmap"
    try:
        api.get(f"/api/v1/namespaces/{ARGO_NAMESPACE}/configmaps/{name}")
    except RefusedError as refused:
        if refused.status != 404:
            raise
        metadata = {"name": name, "namespace": ARGO_NAMESPACE}
        api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config": SETTINGS}})


def _is_served(api: Api, plurals: set[str]) -> bool:
    try:
        return plurals <= {resource["name"] for resource in api.get(GROUP)["resources"]}
    except RefusedError:
        return False


def _wait_until_served(api: Api, plurals: set[str]) -> None:
    deadline_s = time.monotonic() + SERVED_LIMIT_S
    while not _is_served(api, plurals):
        if time.monotonic() > deadline_s:
            raise ClusterError(
                f"expected {GROUP} to serve {sorted(plurals)} within {SERVED_LIMIT_S:.0f} s of their CRDs"
            )
        time.sleep(LOOK_AGAIN_S)  # discovery cannot be watched


def _plural(path: Path) -> str:
    return path.stem.removeprefix("argoproj.io_")
