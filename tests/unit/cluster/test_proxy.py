"""The hostile proxy passes on what it does not spoil, and shows pods late, neither lost nor twice."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.cluster.proxy import FAULTS, Manner, Proxy
from voda_flows.objects import Object, format_time


@pytest.fixture
def proxy() -> Proxy:
    """One that shows pods ten seconds late and spoils one request in five; nobody listens."""
    return Proxy("https://10.0.0.1:6443", None, Manner(share=0.2, pods_late_s=10.0))


def pod(uid: str, age_s: float) -> Object:
    """A pod that was made so long ago."""
    created = format_time(datetime.now(UTC) - timedelta(seconds=age_s))
    return {"metadata": {"uid": uid, "creationTimestamp": created}}


def test_the_share_of_spoilt_requests_is_as_asked(proxy: Proxy) -> None:
    """Every kind of fault is among them; a read never meets with a conflict."""
    writes = [proxy.fate("PATCH") for _ in range(2000)]
    reads = [proxy.fate("GET") for _ in range(2000)]

    assert 300 < sum(map(bool, writes)) < 500
    assert (set(writes), set(reads)) == ({"", *FAULTS}, {"", *FAULTS[1:]})


def test_a_young_pod_is_shown_when_it_is_old_enough(proxy: Proxy) -> None:
    """Once, with its latest state, though it was left out of a list and of a watch."""
    listed = {"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": [pod("old", 60), pod("young", 1)]}
    shown = json.loads(proxy.hide(json.dumps(listed).encode()))
    passed = [
        proxy.is_shown({"type": "MODIFIED", "object": pod("old", 60)}),
        proxy.is_shown({"type": "ADDED", "object": pod("younger", 1)}),
        proxy.is_shown({"type": "BOOKMARK", "object": {"metadata": {}}}),
    ]
    before = proxy.due()
    late = {**pod("young", 11), "status": {"phase": "Running"}}
    passed.append(proxy.is_shown({"type": "MODIFIED", "object": late}))

    assert [item["metadata"]["uid"] for item in shown["items"]] == ["old"]
    assert (passed, before) == ([True, False, True, False], [])
    assert [(event["type"], event["object"]["metadata"]["uid"]) for event in proxy.due()] == [("ADDED", "young")]
    assert proxy.due() == []


def test_a_pod_that_is_gone_before_it_was_shown_is_never_shown(proxy: Proxy) -> None:
    """Nor is its end."""
    passed = [proxy.is_shown({"type": kind, "object": pod("a", 1)}) for kind in ("ADDED", "DELETED", "DELETED")]

    assert (passed, proxy.due()) == ([False, False, True], [])
