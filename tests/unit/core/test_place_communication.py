"""What communication costs: worked numbers of the formulas, and laws of the cheaper one."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.model.communication import (
    NODE_LINK,
    SWITCH_LINK,
    Link,
    Shape,
    all_reduce_s,
    hierarchical_s,
    links_of,
    ring_s,
    shape_of,
    slow_down,
)

FAST, SLOW = Link(bytes_per_s=10.0, latency_s=0.01), Link(bytes_per_s=1.0, latency_s=0.1)


def test_ring_is_held_up_by_its_slowest_link() -> None:
    """Four ranks on two nodes, 8 bytes: 2 * 3/4 * 8 over the slow link, and six of its latencies."""
    assert ring_s(8.0, Shape(ranks=4, fanouts=(2, 2)), (FAST, SLOW)) == pytest.approx(12.0 + 0.6)


def test_ring_inside_a_node_knows_only_its_link() -> None:
    """Four ranks on one node: the same bytes over the fast link."""
    assert ring_s(8.0, Shape(ranks=4, fanouts=(4, 1)), (FAST, SLOW)) == pytest.approx(1.2 + 0.06)


def test_hierarchical_adds_up_its_stages() -> None:
    """Two ranks a node, two nodes: 2 * 1/2 * 8 over each link, and two latencies of each."""
    seconds = hierarchical_s(8.0, Shape(ranks=4, fanouts=(2, 2)), (FAST, SLOW))

    assert seconds == pytest.approx(0.8 + 0.02 + 8.0 + 0.2)


def test_a_step_of_one_second_with_half_a_second_of_communication_is_half_as_long_again() -> None:
    """The slow-down is a ratio."""
    assert slow_down(1.0, 0.5) == 1.5


def test_a_shape_has_the_most_members_of_each_height() -> None:
    """Three and one GPUs on two nodes of rack x, two on one node of rack y."""
    placed: dict[tuple[Hashable, ...], int] = {("x", "n0"): 3, ("x", "n1"): 1, ("y", "n2"): 2}

    assert shape_of(placed) == Shape(ranks=6, fanouts=(3, 2, 2))


def test_links_come_from_settings_by_label_key_and_else_from_the_defaults() -> None:
    """Inside a node, inside a rack (set), inside a zone, between zones: each half as fast as the one before."""
    rack = Link(bytes_per_s=5.0)

    node, inside_rack, inside_zone, outside = links_of(("zone", "rack"), {"rack": rack})

    assert (node, inside_rack) == (NODE_LINK, rack)
    assert inside_zone.bytes_per_s == SWITCH_LINK.bytes_per_s / 2
    assert outside.bytes_per_s == SWITCH_LINK.bytes_per_s / 4


@given(st.integers(1, 8), st.integers(1, 8), st.floats(1.0, 1e9))
def test_the_cheaper_is_chosen_and_further_nodes_never_help(ranks: int, nodes: int, num_bytes: float) -> None:
    """With as many GPUs on each node, another node makes it dearer; one rank communicates with nobody."""
    links = links_of((), {})
    shape, wider = (Shape(ranks=ranks * count, fanouts=(ranks, count)) for count in (nodes, nodes + 1))

    cost = all_reduce_s(num_bytes, shape, links)

    assert cost == min(ring_s(num_bytes, shape, links), hierarchical_s(num_bytes, shape, links))
    assert cost < all_reduce_s(num_bytes, wider, links)
    assert all_reduce_s(num_bytes, Shape(ranks=1, fanouts=(1, 1)), links) == 0.0
