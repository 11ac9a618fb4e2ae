"""Who a certificate makes of its holder."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.cluster.certificates import Holder, holders, make, write_kubeconfig
from tests.cluster.faults import ClusterError
from tests.cluster.places import Network

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
NODE = Holder(name="n0", user="system:node:n0", group="system:nodes", names=("IP:10.200.0.11",))


def test_a_certificate_names_its_holder_and_is_signed(tmp_path: Path) -> None:
    """User, group, addresses; and the cluster's authority vouches for it."""
    make(tmp_path, [NODE])

    checked = ["openssl", "verify", "-x509_strict", "-CAfile", str(tmp_path / "ca.crt"), str(tmp_path / "n0.crt")]
    shown = ["openssl", "x509", "-in", str(tmp_path / "n0.crt"), "-noout", "-subject", "-ext", "subjectAltName"]
    assert subprocess.run(checked, capture_output=True, text=True, check=False).stdout.endswith("n0.crt: OK\n")
    said = subprocess.run(shown, capture_output=True, text=True, check=True).stdout.split("\n")
    assert (said[0], said[2].strip()) == (
        "subject=O = system:nodes, CN = system:node:n0",
        "IP Address:10.200.0.11",
    )


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    """A cluster that comes up again is still the same for those who have its kubeconfig."""
    make(tmp_path, [NODE])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    make(tmp_path, [NODE])

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert sorted(before) == ["ca.crt", "ca.key", "n0.crt", "n0.key", "service-accounts.key", "service-accounts.pub"]


def test_a_kubeconfig_needs_no_other_file(tmp_path: Path) -> None:
    """It can be copied elsewhere; only its owner may read it."""
    make(tmp_path / "certificates", [NODE])
    path = tmp_path / "kubeconfig"

    write_kubeconfig(path, tmp_path / "certificates", "n0", "https://10.200.0.10:6443")

    found = yaml.safe_load(path.read_text())
    assert sorted(found["users"][0]["user"]) == ["client-certificate-data", "client-key-data"]
    assert (found["clusters"][0]["cluster"]["server"], path.stat().st_mode & 0o777) == (
        "https://10.200.0.10:6443",
        0o600,
    )


def test_python_takes_certificate_and_key(tmp_path: Path) -> None:
    """They belong together."""
    make(tmp_path, [NODE])

    ssl.create_default_context(cafile=str(tmp_path / "ca.crt")).load_cert_chain(
        tmp_path / "n0.crt", tmp_path / "n0.key"
    )


def test_the_workflow_controller_is_its_service_account() -> None:
    """So that the rights in Argo's own manifests are what it has, and nodes are those that are asked for."""
    found = {holder.name: (holder.user, holder.group) for holder in holders(Network(number=0), [("n0", 0)])}

    assert found["argo"] == ("system:serviceaccount:argo:argo", "system:serviceaccounts")
    assert found["n0"] == ("system:node:n0", "system:nodes")


def test_what_openssl_refuses_is_told(tmp_path: Path) -> None:
    """With its own words."""
    with pytest.raises(ClusterError, match="openssl req: expected it to work, it said"):
        make(tmp_path, [Holder(name="bad", user="u", names=("IP:no-address",))])
