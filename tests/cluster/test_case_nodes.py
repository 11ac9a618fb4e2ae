"""Nodes that people take out of service: nothing new goes there, and a drain moves jobs on without losing a step."""

from __future__ import annotations

import pytest

from tests.cluster.cases import LIFE, SAMPLES, closed, holders, kubectl, queued_again, root, strangers, trains
from tests.cluster.installed import LIMIT_S, Installation
from tests.e2e.job_record import epochs, loss
from voda_flows.objects import phase_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
#: As an administrator does it; pods that go in good order have a minute.
DRAIN = ("--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={LIMIT_S:.0f}s", "--pod-selector=voda.dev/role")


def test_a_closed_node_is_not_decided_on_until_it_opens(installed: Installation) -> None:
    """Cordoned or tainted: a job that needs its GPUs waits, and is granted when the node takes pods again."""
    installed.reset()
    with strangers(installed, n0=2, n1=1):
        with closed(installed, "n1"), closed(installed, "n2", by_taint=True):
            name = installed.job("outside", LIFE, epochs="1", min_gpus="3", max_gpus="3")
            queued_again(installed, name, segment=0)
            other = installed.job("inside", LIFE, epochs="1", min_gpus="1", max_gpus="1")
            queued_again(installed, other, segment=0)
            assert holders(installed, name) == holders(installed, other) == []
        ended = installed.wait_ended(name)

    life = installed.life(name)
    assert phase_of(ended) == "Succeeded", installed.story(name)
    assert life is not None
    assert sorted(held.node for held in life.segments[0].holdings) == ["n1", "n2", "n2"]


def test_a_drain_ends_and_costs_no_step(installed: Installation) -> None:
    """The scheduler's own node too: the drain returns, another scheduler decides, the job goes on elsewhere."""
    installed.reset()
    before = installed.holder()
    assert before is not None
    node = str(before["spec"]["nodeName"])
    others = [each for each in ("n0", "n1", "n2") if each != node]
    with strangers(installed, **{others[0]: 2, others[1]: 1}):
        name = installed.job("moved", LIFE, epochs="6", min_gpus="1", max_gpus="3")
        trains(installed, name, size=3)

        kubectl(installed, "drain", node, *DRAIN)
        try:
            installed.wait_for_scheduler()
            after = installed.holder()
            here = [pod for pod in installed.pods(name) if pod["spec"].get("nodeName") == node]
            ended = installed.wait_ended(name)
        finally:
            kubectl(installed, "uncordon", node)

    assert after is not None
    assert (after["metadata"]["uid"] != before["metadata"]["uid"], after["spec"]["nodeName"] != node) == (True, True)
    assert [phase_of(pod) for pod in here if phase_of(pod) not in ("Succeeded", "Failed")] == []
    assert (phase_of(ended), epochs(root(installed, name), SAMPLES)) == ("Succeeded", [0, 1, 2, 3, 4, 5])
    lost = loss(root(installed, name))
    assert (lost.in_place, lost.between) == (0, 0)
