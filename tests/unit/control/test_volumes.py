"""A job's claim is looked at before the job waits at its gate: a volume that one node mounts alone is refused."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.errors import Forbidden, InvalidValue, NotFound
from tests.unit.control.test_request import LIMITS, asked
from voda_flows.control.request import Limits, read_request
from voda_flows.control.volumes import Claims
from voda_flows.objects import Object


class Cluster:
    """Claims by name with their access modes; None for one that may not be read. Counts what it is asked."""

    def __init__(self, **modes: list[str] | None) -> None:
        self.modes = modes
        self.asked = 0

    def get(self, kind: str, namespace: str, name: str) -> Object:
        """See ``ObjectStore.get``."""
        self.asked += 1
        if name not in self.modes:
            raise NotFound(f"{kind} {namespace}/{name}: expected it to be there, it is not")
        if self.modes[name] is None:
            raise Forbidden(f"expected the right to get {kind}")
        return {"kind": kind, "spec": {"accessModes": self.modes[name]}}


def fault(modes: list[str] | None, num_nodes: int = 3) -> str:
    """What is wrong with a claim of these access modes."""
    store: Any = Cluster(voda=modes)
    return Claims(store).fault("default", "voda", num_nodes)


@pytest.mark.parametrize(
    ("modes", "num_nodes", "said"),
    [
        (["ReadWriteMany"], 3, ""),
        (["ReadWriteOnce", "ReadWriteMany"], 3, ""),
        (["ReadWriteOnce"], 1, ""),
        (None, 3, ""),
        (["ReadWriteOnce"], 3, "its claim has ReadWriteOnce"),
        (["ReadWriteOncePod"], 1, "its claim has ReadWriteOncePod"),
        ([], 2, "its claim has no access mode"),
    ],
)
def test_a_claim_has_to_be_mountable_wherever_pods_may_be(modes: list[str] | None, num_nodes: int, said: str) -> None:
    """On one node that is no question; what may not be read is not judged."""
    wanted = f"expected volume 'voda' to be one that all nodes can mount (ReadWriteMany), {said}" if said else ""

    assert fault(modes, num_nodes) == wanted


def test_a_claim_is_asked_for_once_in_a_while_one_that_is_missing_each_time() -> None:
    """A thousand waiting jobs are one question a minute; a claim that somebody makes is seen at once."""
    store: Any = Cluster(voda=["ReadWriteMany"])
    now = [0.0]
    claims = Claims(store, clock=lambda: now[0])
    missing = "expected a claim 'gone' in namespace 'default' for its checkpoints, there is none: make it"

    assert [claims.fault("default", "voda", 3) for _ in range(3)] == ["", "", ""]
    assert store.asked == 1
    assert [claims.fault("default", "gone", 3) for _ in range(2)] == [missing, missing]
    assert store.asked == 3
    now[0] = 60.0
    assert (claims.fault("default", "voda", 3), store.asked) == ("", 4)


def test_the_gate_refuses_with_these_words_and_a_job_that_has_run_is_left_alone() -> None:
    """Only where nothing else is wrong: the question costs a request."""
    store: Any = Cluster(voda=["ReadWriteOnce"])
    claims = Claims(store)
    limits = Limits(settings=LIMITS.settings, claim_fault=lambda namespace, name: claims.fault(namespace, name, 2))

    with pytest.raises(InvalidValue, match=r"^job wf/train: expected volume 'voda' to be one that all nodes can mount"):
        read_request(asked(), limits)
    read_request(asked(started=True), limits)
    with pytest.raises(InvalidValue, match="expected command"):
        read_request(asked(command=" "), limits)
    assert store.asked == 1
