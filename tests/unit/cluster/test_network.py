"""Which network a cluster takes."""

from __future__ import annotations

import pytest

from tests.cluster.faults import ClusterError
from tests.cluster.network import choose
from tests.cluster.places import NUM_NETWORKS, Network


@pytest.mark.parametrize(
    ("routes", "bridges", "number"),
    [
        (["default", "192.168.1.0/24", "local"], ["lo", "eth0"], 0),
        (["10.200.0.0/24"], [], 1),  # another cluster's
        (["10.200.7.0/24"], [], 1),  # a part of it is enough
        (["10.200.0.0/14"], [], 4),  # and so is what holds it
        ([], ["voda0"], 1),  # a bridge that nobody owns yet
    ],
)
def test_the_first_network_that_nothing_has_a_part_of(routes: list[str], bridges: list[str], number: int) -> None:
    """Neither a route nor a bridge may be there."""
    assert choose(routes, bridges) == Network(number=number)


def test_no_free_network_is_said() -> None:
    """With what was looked for."""
    with pytest.raises(ClusterError, match=r"a free network among 10.200.0.0/16 to 10.219.0.0/16"):
        choose(["10.0.0.0/8"], [])


def test_addresses_do_not_meet() -> None:
    """Host, control plane, nodes and pods, of all networks."""
    networks = [Network(number=number) for number in range(NUM_NETWORKS)]
    addresses = [
        address
        for network in networks
        for address in (network.host, network.control, *(network.node(index) for index in range(100)))
    ]
    pods = [network.pods(index) for network in networks for index in range(100)]

    assert len(addresses) == len(set(addresses))
    assert len(pods) == len(set(pods))
    assert {f"{address.rpartition('.')[0]}.0/24" for address in addresses} & set(pods) == set()
