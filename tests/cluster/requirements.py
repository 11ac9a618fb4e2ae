"""What the cluster needs of a machine: Linux, root, namespaces, Debian packages, and Go or programs built before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from deploy.setup.progress import Progress
from tests.cluster import programs
from tests.cluster.faults import CannotRunHereError

#: A file of each Debian package that is needed.
PACKAGES: Mapping[str, str] = {
    "containerd": "containerd",
    "runc": "runc",
    "containernetworking-plugins": "/usr/lib/cni/bridge",
    "iptables": "iptables",
    "iproute2": "ip",
    "openssl": "openssl",
    "util-linux": "nsenter",
}
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NAMESPACES = ("unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--mount-proc", "true")


def missing_packages(packages: Mapping[str, str] = PACKAGES) -> list[str]:
    """Names of the Debian packages that are not installed.

    Args:
        packages: Those that are needed, with a file of each.
    """
    return [package for package, file in packages.items() if not _is_there(file)]


def obstacle() -> str | None:
    """Why the cluster cannot run here, in one line; None where it can, once packages and programs are there."""
    if sys.platform != "linux":
        return f"expected Linux, found {sys.platform}"
    if os.geteuid() != 0:
        return "expected to be root: nodes are made of namespaces, mounts and network interfaces"
    missing = missing_packages()
    if missing and shutil.which("apt-get") is None:
        return _without_apt(missing)
    if programs.go_version() is None and not programs.are_built():
        return "expected Go 1.26 to build Kubernetes, etcd and Argo, found no `go` in PATH"
    if not missing and subprocess.run(NAMESPACES, capture_output=True, check=False).returncode:
        return f"expected to be allowed to make namespaces, `{' '.join(NAMESPACES)}` fails"
    return None


def check() -> None:
    """See that the cluster can run here.

    Raises:
        CannotRunHereError: It cannot; with the reason in one line.
    """
    found = obstacle()
    if found is not None:
        raise CannotRunHereError(found)


def install_packages(packages: Mapping[str, str] = PACKAGES) -> None:
    """Install the Debian packages that are missing.

    Args:
        packages: Those that are needed, with a file of each.

    Raises:
        CannotRunHereError: They could not be installed.
    """
    missing = missing_packages(packages)
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise CannotRunHereError(_without_apt(missing))
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with Progress(f"Debian packages: {' '.join(missing)}"):
        for command in (["update"], ["install", "--yes", "--no-install-recommends", *missing]):
            done = subprocess.run(
                ["apt-get", "-qq", *command], env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode and command[0] == "install":
                said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
                raise CannotRunHereError(f"expected apt-get to install {' '.join(missing)}, it said: {said}")


def _without_apt(missing: list[str]) -> str:
    return f"expected the Debian packages {' '.join(missing)}, found neither them nor apt-get"


def _is_there(file: str) -> bool:
    return Path(file).exists() if file.startswith("/") else shutil.which(file, path=SYSTEM_PATH) is not None
