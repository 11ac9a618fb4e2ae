"""The parts of the control plane and their settings: etcd, API server, controller manager, scheduler.

They run in a machine of their own, so they have the usual ports, whatever else runs on this computer.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from tests.cluster.api import Api
from tests.cluster.faults import ClusterError
from tests.cluster.places import API_PORT, CONTROL, Home, Network
from tests.cluster.processes import Part
from tests.cluster.programs import Programs

PROBE_LIMIT_S = 5.0
#: A node that says nothing for this long is not ready; kubelets speak every 5 s.
NODE_GRACE_S = 20
#: What needs a cloud, or hands out addresses that this cluster hands out itself.
NOT_RUN = ("nodeipam", "cloud-node-lifecycle", "service-lb-controller", "node-route-controller")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all parts are made from."""

    home: Home
    network: Network
    programs: Programs

    @property
    def api(self) -> Api:
        """The API server, as the administrator."""
        return Api(self.network.api_url, self.home.certificates, "admin")

    def file(self, name: str) -> str:
        """Path of a file among the certificates."""
        return str(self.home.certificates / name)


def parts(setting: Setting) -> list[Part]:
    """The control plane in the order of its start."""
    return [_etcd(setting), _api_server(setting), _controller_manager(setting), _scheduler(setting)]


def answers(
    url_host: str, port: int, path: str, context: ssl.SSLContext | None = None, status: int = http.client.OK
) -> bool:
    """Whether a GET is answered with that status."""
    connection = (
        http.client.HTTPConnection(url_host, port, timeout=PROBE_LIMIT_S)
        if context is None
        else http.client.HTTPSConnection(url_host, port, timeout=PROBE_LIMIT_S, context=context)
    )
    try:
        connection.request("GET", path)
        return connection.getresponse().status == status
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _probe(setting: Setting, port: int, path: str) -> Callable[[], bool]:
    """A check that a part of the control plane answers, as the administrator."""

    def is_ready() -> bool:
        context = ssl.create_default_context(cafile=setting.file("ca.crt"))
        context.load_cert_chain(setting.file("admin.crt"), setting.file("admin.key"))
        return answers(setting.network.control, port, path, context)

    return is_ready


def _etcd(setting: Setting) -> Part:
    url = f"https://{setting.network.control}:2379"
    return Part(
        name="etcd",
        machine=CONTROL,
        command=(
            setting.programs.path("etcd"),
            f"--data-dir={setting.home.machine(CONTROL) / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--cert-file={setting.file('serving.crt')}",
            f"--key-file={setting.file('serving.key')}",
            f"--trusted-ca-file={setting.file('ca.crt')}",
            "--client-cert-auth",
            # What a killed process wrote is in the kernel's hands already; only a loss of power would lose it.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ),
        is_ready=_probe(setting, 2379, "/health"),
    )


def _api_server(setting: Setting) -> Part:
    network, file = setting.network, setting.file
    return Part(
        name="kube-apiserver",
        machine=CONTROL,
        command=(
            setting.programs.path("kube-apiserver"),
            f"--bind-address={network.control}",
            f"--advertise-address={network.control}",
            f"--secure-port={API_PORT}",
            f"--service-cluster-ip-range={network.services}",
            f"--tls-cert-file={file('serving.crt')}",
            f"--tls-private-key-file={file('serving.key')}",
            f"--client-ca-file={file('ca.crt')}",
            f"--etcd-servers=https://{network.control}:2379",
            f"--etcd-cafile={file('ca.crt')}",
            f"--etcd-certfile={file('apiserver.crt')}",
            f"--etcd-keyfile={file('apiserver.key')}",
            f"--kubelet-certificate-authority={file('ca.crt')}",
            f"--kubelet-client-certificate={file('apiserver.crt')}",
            f"--kubelet-client-key={file('apiserver.key')}",
            "--kubelet-preferred-address-types=InternalIP",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={file('service-accounts.pub')}",
            f"--service-account-signing-key-file={file('service-accounts.key')}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            "--profiling=false",
        ),
        # Half of its processor time went into collecting garbage; memory there is plenty of.
        environment={"GOGC": "400"},
        is_ready=lambda: _is_ready(setting),
    )


def _is_ready(setting: Setting) -> bool:
    try:
        return setting.api.text("/readyz") == "ok"
    except ClusterError:
        return False


def _controller_manager(setting: Setting) -> Part:
    return Part(
        name="kube-controller-manager",
        machine=CONTROL,
        command=(
            setting.programs.path("kube-controller-manager"),
            f"--kubeconfig={setting.file('controller-manager.kubeconfig')}",
            *_served(setting),
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={setting.file('service-accounts.key')}",
            f"--root-ca-file={setting.file('ca.crt')}",
            f"--controllers=*,{','.join(f'-{name}' for name in NOT_RUN)}",
            f"--node-monitor-grace-period={NODE_GRACE_S}s",
            "--node-monitor-period=2s",
        ),
        is_ready=_probe(setting, 10257, "/healthz"),
    )


def _scheduler(setting: Setting) -> Part:
    return Part(
        name="kube-scheduler",
        machine=CONTROL,
        command=(
            setting.programs.path("kube-scheduler"),
            f"--kubeconfig={setting.file('scheduler.kubeconfig')}",
            *_served(setting),
        ),
        is_ready=_probe(setting, 10259, "/healthz"),
    )


def _served(setting: Setting) -> tuple[str, ...]:
    return (
        f"--bind-address={setting.network.control}",
        f"--tls-cert-file={setting.file('serving.crt')}",
        f"--tls-private-key-file={setting.file('serving.key')}",
        "--leader-elect=false",
    )
