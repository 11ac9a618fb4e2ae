"""Nodes that are asked for: shapes, labels, names; and what their parts are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler_core.errors import InvalidValue
from tests.cluster.faults import ClusterError
from tests.cluster.nodes import Node, gpus_of, is_ready, parse
from voda_flows.objects import Object


def test_a_shape_gives_nodes_in_racks_of_two() -> None:
    """COUNTxGPUS; all in one zone."""
    found = parse("3x2")

    assert [(node.name, node.index, node.gpus) for node in found] == [("n0", 0, 2), ("n1", 1, 2), ("n2", 2, 2)]
    assert [node.labels["topology.kubernetes.io/rack"] for node in found] == ["r0", "r0", "r1"]
    assert {node.labels["topology.kubernetes.io/zone"] for node in found} == {"z0"}


def test_no_nodes_is_a_shape_too() -> None:
    """A control plane alone."""
    assert parse("0") == ()


def test_a_file_names_its_nodes_and_their_labels(tmp_path: Path) -> None:
    """The file that local mode reads; labels of its own win."""
    path = tmp_path / "nodes.yaml"
    path.write_text("[{name: a, gpus: 4, labels: {topology.kubernetes.io/rack: left}}]")

    (found,) = parse(str(path))

    labels = {"topology.kubernetes.io/zone": "z0", "topology.kubernetes.io/rack": "left"}
    assert found == Node(
        name="a", index=0, gpus=4, labels={**labels, "kubernetes.io/os": "linux", "kubernetes.io/hostname": "a"}
    )


@pytest.mark.parametrize("name", ["control", "much-too-long", "a.b"])
def test_a_name_that_cannot_be_a_machines_is_refused(tmp_path: Path, name: str) -> None:
    """Interfaces and files are named after it."""
    path = tmp_path / "nodes.yaml"
    path.write_text(f"[{{name: {name}, gpus: 1}}]")

    with pytest.raises(ClusterError, match=f"expected a name of at most 8 .*, got '{name}'"):
        parse(str(path))


def test_more_nodes_than_addresses_are_refused() -> None:
    """The network has room for a hundred."""
    with pytest.raises(ClusterError, match="expected at most 100 nodes, got 101"):
        parse("101x1")


def test_what_is_no_shape_is_refused() -> None:
    """The same text as `voda up` says."""
    with pytest.raises(InvalidValue, match="expected COUNTxGPUS such as 2x4"):
        parse("three")


def test_a_node_is_ready_when_its_kubelet_says_so() -> None:
    """Unknown is not ready, nothing is not ready."""
    said: Object = {
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"nvidia.com/gpu": "3"}}
    }
    silent: Object = {"status": {}}
    unknown: Object = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}

    assert [is_ready(node) for node in (said, unknown, silent)] == [True, False, False]
    assert [gpus_of(node) for node in (said, unknown)] == [3, 0]
