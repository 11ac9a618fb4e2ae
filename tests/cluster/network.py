"""The cluster's bridge on this computer: which network is free, making it, removing it, and only ours.

The bridge is the claim: its alias names the folder of the cluster that it belongs to. Two clusters that come up at once
choose one after the other.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.cluster.faults import ClusterError
from tests.cluster.machines import run
from tests.cluster.places import NUM_NETWORKS, Network

#: All clusters of this computer take turns here; a lock on a folder leaves no file behind.
TURN_FOLDER = Path("/run")


def choose(routes: Iterable[str], bridges: Iterable[str]) -> Network:
    """The first network that nothing on this computer has a part of.

    Args:
        routes: Destinations of all routes (``10.0.0.0/8``); words that are no network are skipped.
        bridges: Names of all interfaces.

    Raises:
        ClusterError: All are taken.
    """
    taken = [network for network in map(_parsed, routes) if network is not None]
    names = set(bridges)
    for number in range(NUM_NETWORKS):
        network = Network(number=number)
        whole = ipaddress.ip_network(network.whole)
        if network.bridge not in names and not any(whole.overlaps(other) for other in taken):
            return network
    wanted = f"{Network(number=0).whole} to {Network(number=NUM_NETWORKS - 1).whole}"
    raise ClusterError(f"expected a free network among {wanted}, this computer has routes into all of them")


def claim(home: Path) -> Network:
    """Make this cluster's bridge, or see that it is there; returns its network.

    Args:
        home: The cluster's folder.
    """
    with one_at_a_time():
        network = find(home)
        if network is None:
            network = choose(_routes(), _interfaces())
            run("ip", "link", "add", network.bridge, "type", "bridge")
            run("ip", "link", "set", network.bridge, "alias", str(home))
        run("ip", "address", "replace", f"{network.host}/24", "dev", network.bridge)
        run("ip", "link", "set", network.bridge, "up")
        _open_firewall(network)
        return network


def release(home: Path) -> None:
    """Remove every bridge of this cluster and what hangs on it."""
    with one_at_a_time():
        for network in map(_numbered, range(NUM_NETWORKS)):
            # A bridge without an owner is one whose maker was killed before it could say whose it is.
            if owner(network) in {str(home), ""}:
                _remove(network)


def find(home: Path) -> Network | None:
    """The network of this cluster, if it has one."""
    return next((network for network in map(_numbered, range(NUM_NETWORKS)) if owner(network) == str(home)), None)


def is_last() -> bool:
    """Whether no cluster has a network here any more."""
    return all(owner(network) is None for network in map(_numbered, range(NUM_NETWORKS)))


def owned(home: Path) -> list[str]:
    """Names of the interfaces of this cluster."""
    network = find(home)
    return [] if network is None else [network.bridge, *(_ports(network) or ())]


def owner(network: Network) -> str | None:
    """Folder of the cluster that has this network; None where nobody has it."""
    try:
        return Path(f"/sys/class/net/{network.bridge}/ifalias").read_text().strip()
    except OSError:
        return None


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Wait for this process's turn among all clusters of this computer."""
    descriptor = os.open(TURN_FOLDER, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove(network: Network) -> None:
    """Remove a network's bridge, its ports and its rule; what has this name and is no bridge is not ours."""
    ports = _ports(network)
    if ports is None:
        return
    for port in ports:
        with contextlib.suppress(ClusterError):  # it goes by itself with the machine at its other end
            run("ip", "link", "delete", port)
    _close_firewall(network)
    run("ip", "link", "delete", network.bridge)


def _open_firewall(network: Network) -> None:
    """Let machines talk to each other where this computer forwards nothing by default, as one with Docker does.

    What crosses a bridge passes the rules for forwarding too, where the kernel was told so (br_netfilter).
    """
    if run("iptables", "-w", "-S", "FORWARD").startswith("-P FORWARD ACCEPT"):
        return
    with contextlib.suppress(ClusterError):  # it is there already
        run("iptables", "-w", "-D", *_rule(network))
    run("iptables", "-w", "-I", *_rule(network))


def _close_firewall(network: Network) -> None:
    with contextlib.suppress(ClusterError):  # it was not needed
        run("iptables", "-w", "-D", *_rule(network))


def _rule(network: Network) -> tuple[str, ...]:
    return ("FORWARD", "-i", network.bridge, "-o", network.bridge, "-j", "ACCEPT")


def _numbered(number: int) -> Network:
    return Network(number=number)


def _ports(network: Network) -> list[str] | None:
    """What hangs on a bridge; None where there is no bridge of this name."""
    try:
        return [path.name for path in Path(f"/sys/class/net/{network.bridge}/brif").iterdir()]
    except OSError:
        return None


def _parsed(text: str) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(text)
    except ValueError:
        return None


def _routes() -> list[str]:
    return [route["dst"] for route in json.loads(run("ip", "-4", "-json", "route", "show", "table", "all") or "[]")]


def _interfaces() -> list[str]:
    return [path.name for path in Path("/sys/class/net").iterdir()]
