"""Keys and certificates of one cluster, made with openssl, and the kubeconfigs that carry them.

Who a part is stands in its certificate: the common name is the user, the organisation the group. The API server's rules
for them (RBAC, Node authorizer) are those of any cluster. The workflow controller's certificate names its service
account, so the rules of Argo's own manifests are what it is held to.
"""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.cluster.faults import ClusterError
from tests.cluster.places import Network

ARGO_NAMESPACE = "argo"
DAYS = "3650"
CONFIG = """\
[req]
distinguished_name = dn
prompt = no
[dn]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[holder]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
{names}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who gets a certificate.

    Attributes:
        name: Of the files.
        user: Common name.
        group: Organisation, or none.
        names: ``IP:..`` and ``DNS:..`` where it serves.
    """

    name: str
    user: str
    group: str = ""
    names: tuple[str, ...] = ()


def holders(network: Network, nodes: Iterable[tuple[str, int]]) -> list[Holder]:
    """Everyone who needs a certificate.

    Args:
        network: The cluster's addresses.
        nodes: Name and index of each node.
    """
    serving = [f"IP:{network.control}", f"IP:{network.api_service}", "IP:127.0.0.1"]
    serving += [f"DNS:{name}" for name in ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")]
    argo = f"system:serviceaccount:{ARGO_NAMESPACE}:argo"
    return [
        Holder(name="serving", user="control-plane", names=tuple(serving)),
        Holder(name="apiserver", user="kube-apiserver", group="system:masters"),
        Holder(name="admin", user="admin", group="system:masters"),
        Holder(name="controller-manager", user="system:kube-controller-manager"),
        Holder(name="scheduler", user="system:kube-scheduler"),
        Holder(name="argo", user=argo, group="system:serviceaccounts"),
        *(
            Holder(name=name, user=f"system:node:{name}", group="system:nodes", names=(f"IP:{network.node(index)}",))
            for name, index in nodes
        ),
    ]


def make(folder: Path, wanted: Iterable[Holder]) -> None:
    """Make what is missing: the authority, the key of service accounts, a certificate for each holder.

    Raises:
        ClusterError: openssl failed; with what it said.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (folder / "ca.crt").exists():
        _certify(folder, Holder(name="ca", user="voda-cluster"), "authority")
    if not (folder / "service-accounts.pub").exists():
        key = folder / "service-accounts.key"
        _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(key))
        _openssl("pkey", "-in", str(key), "-pubout", "-out", str(folder / "service-accounts.pub"))
    for holder in wanted:
        if not (folder / f"{holder.name}.crt").exists():
            _certify(folder, holder, "holder")


def write_kubeconfig(path: Path, certificates: Path, holder: str, url: str) -> None:
    """Write a kubeconfig that needs no other file.

    Args:
        path: Where.
        certificates: Folder of ``make``.
        holder: Whose certificate goes in.
        url: The API server.
    """

    def content(name: str) -> str:
        return base64.b64encode((certificates / name).read_bytes()).decode()

    user = {"client-certificate-data": content(f"{holder}.crt"), "client-key-data": content(f"{holder}.key")}
    server = {"server": url, "certificate-authority-data": content("ca.crt")}
    context = {"cluster": "voda", "user": holder, "namespace": ARGO_NAMESPACE if holder == "argo" else "default"}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "voda", "cluster": server}],
        "users": [{"name": holder, "user": user}],
        "contexts": [{"name": "voda", "context": context}],
        "current-context": "voda",
    }
    new = path.with_name(f"{path.name}.new")
    new.touch(mode=0o600)
    new.write_text(yaml.safe_dump(document, sort_keys=False), encoding="ascii")
    new.replace(path)


def _certify(folder: Path, holder: Holder, section: str) -> None:
    """Make a key and a certificate; the certificate appears last and whole."""
    subject = (f"/O={holder.group}" if holder.group else "") + f"/CN={holder.user}"
    signing = [] if section == "authority" else ["-CA", str(folder / "ca.crt"), "-CAkey", str(folder / "ca.key")]
    new = folder / f"{holder.name}.crt.new"
    names = f"subjectAltName = {', '.join(holder.names)}" if holder.names else ""
    _openssl(
        "req", "-x509", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", DAYS,
        "-config", "/dev/stdin", "-extensions", section, "-subj", subject, *signing,
        "-keyout", str(folder / f"{holder.name}.key"), "-out", str(new),
        config=CONFIG.format(names=names),
    )  # fmt: skip
    new.replace(folder / f"{holder.name}.crt")


def _openssl(*arguments: str, config: str = "") -> None:
    done = subprocess.run(["openssl", *arguments], input=config, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"openssl {arguments[0]}: expected it to work, it said {done.stderr.strip()}")
