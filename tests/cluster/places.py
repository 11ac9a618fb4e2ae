"""Where the cluster's files are and which addresses it has. Values only; nothing here touches the machine.

Everything that belongs to one cluster lies in one folder. Its network is one of several alike, told by a number, so
that two clusters on one computer do not meet: machines have addresses in ``10.<200 + number>.0.0/24``, the pods of the
node with index I in ``10.<200 + number>.<1 + I>.0/24``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
HOME_VARIABLE = "VODA_CLUSTER_HOME"
NUM_NETWORKS = 20
MAX_NODES = 100
API_PORT = 6443
#: The machine's own files, read-only, as each node has them: what pods with the image ``HOST_IMAGE`` mount at /host.
MACHINE_FOLDER = "/run/machine"
#: A machine's own folder under a short name: the path of a socket may have no more than 107 letters.
NODE_FOLDER = "/run/node"
CONTROL = "control"


def cache_folder() -> Path:
    """The user's cache folder for this project."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "voda"


def home_folder() -> Path:
    """Folder of the cluster: ``$VODA_CLUSTER_HOME``, else one in the user's cache."""
    return Path(os.environ.get(HOME_VARIABLE) or cache_folder() / "cluster").resolve()


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The folder of one cluster and what is where in it."""

    folder: Path

    @property
    def state(self) -> Path:
        """What was asked for: network, nodes, whether there is a workflow controller."""
        return self.folder / "cluster.json"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    @property
    def logs(self) -> Path:
        """One file a part."""
        return self.folder / "logs"

    @property
    def records(self) -> Path:
        """One file a part with its process id and the time of its start."""
        return self.folder / "processes"

    @property
    def certificates(self) -> Path:
        """Keys, certificates and the kubeconfigs of the parts."""
        return self.folder / "certificates"

    def machine(self, name: str) -> Path:
        """What a machine has on disk."""
        return self.folder / "machines" / name


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The addresses of one cluster.

    Attributes:
        number: Which of the networks, 0 to ``NUM_NETWORKS`` - 1.
    """

    number: int

    @property
    def bridge(self) -> str:
        """The one interface on the host that stays: all machines hang on it."""
        return f"voda{self.number}"

    @property
    def whole(self) -> str:
        """All of it, for checking whether something else has a part of it."""
        return f"10.{200 + self.number}.0.0/16"

    @property
    def host(self) -> str:
        """The host's own address."""
        return f"10.{200 + self.number}.0.1"

    @property
    def control(self) -> str:
        """The address of the control plane."""
        return f"10.{200 + self.number}.0.10"

    @property
    def services(self) -> str:
        """Addresses of Services."""
        return f"10.96.{self.number}.0/24"

    @property
    def api_service(self) -> str:
        """Where pods find the API server: the first address of ``services``."""
        return f"10.96.{self.number}.1"

    def node(self, index: int) -> str:
        """The address of the node with this index."""
        return f"10.{200 + self.number}.0.{11 + index}"

    def pods(self, index: int) -> str:
        """The addresses of that node's pods."""
        return f"10.{200 + self.number}.{1 + index}.0/24"

    def port(self, machine: str) -> str:
        """The host's end of a machine's cable; an interface's name has at most 15 letters."""
        return f"{self.bridge}{machine}"[:15]

    @property
    def api_url(self) -> str:
        """The API server, for whoever is on this machine."""
        return f"https://{self.control}:{API_PORT}"
