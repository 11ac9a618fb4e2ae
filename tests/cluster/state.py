"""What a cluster was asked to be, as it is kept in its folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.cluster.nodes import Node
from tests.cluster.places import REPOSITORY, Home, Network
from tests.cluster.programs import Programs

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a cluster was asked to be.

    Attributes:
        origin: What it stands on: this boot of this computer, its network, its programs. A cluster of another origin
            cannot be healed, only made anew.
        number: Of its network.
        nodes: Its nodes.
        has_controller: Whether Argo's controller runs.
    """

    origin: str
    number: int
    nodes: tuple[Node, ...]
    has_controller: bool


def origin(network: Network, programs: Programs) -> str:
    """What a cluster made now stands on."""
    folders = [folder.name for folder in programs.folders.values()]
    return " ".join([BOOT_ID.read_text().strip(), str(network.number), str(REPOSITORY), *folders])


def write(home: Home, state: State) -> None:
    """Keep a state; it appears whole."""
    new = home.state.with_suffix(".new")
    new.write_text(json.dumps(asdict(state), indent=1))
    new.replace(home.state)


def read(home: Home) -> State | None:
    """The state that was kept; None where there is none."""
    try:
        kept = json.loads(home.state.read_text())
    except OSError:
        return None
    return State(**{**kept, "nodes": tuple(Node(**node) for node in kept["nodes"])})
