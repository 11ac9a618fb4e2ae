"""What accounts may do is what the code does: roles, the guide's table and a life that uses them are the same."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.model.plan import Evict
from tests.contract import test_scheduler_on_a_cluster as on_a_cluster
from tests.unit.control.world import World
from tests.unit.deploy import manifests as found
from voda_flows.config import Settings
from voda_flows.control.enforce import StoreEnforcer
from voda_flows.control.kept import Kept, Learned
from voda_flows.control.observe import StoreObserver
from voda_flows.control.reports import Reports
from voda_flows.control.scheduler import Place, Scheduler
from voda_flows.control.volumes import CLAIM
from voda_flows.install.overlays import CLUSTER, ONE_NAMESPACE, OVERLAYS
from voda_flows.kube.resources import resource_of
from voda_flows.local.store import LocalStore
from voda_flows.objects import Object

GUIDE = Path(__file__).resolve().parents[3] / "docs/guides/install-on-a-cluster.md"
ROW = re.compile(
    r"^\| `(?P<who>voda-\w+)` \| (?P<where>[^|]+) \| `(?P<what>[^`]+)`(?P<names>[^|]*) \| (?P<verbs>[^|]+) \|",
    re.MULTILINE,
)
#: Where a right holds, as the guide says it, by the role that gives it.
PLACES = {
    ("ClusterRole", "voda-scheduler"): ("voda-scheduler", "cluster"),
    ("ClusterRole", "voda-scheduler-jobs"): ("voda-scheduler", "namespaces with jobs"),
    ("Role", "voda-scheduler"): ("voda-scheduler", "its own"),
    ("Role", "voda-job"): ("voda-job", "namespaces with jobs"),
}
#: Who, where, resource, names, verb.
Right = tuple[str, str, str, str, str]
#: What Argo's executor does beside every pod, and nobody here (Argo's documentation of WorkflowTaskResults).
EXECUTORS = "workflowtaskresults.argoproj.io"
#: What carrying out a call of the store takes: a write whose answer was lost looks whether it was done.
VERBS: Mapping[str, tuple[str, ...]] = {
    "get": ("get",),
    "list": ("list",),
    "snapshot": ("list", "watch"),
    "create": ("create", "get"),
    "merge_patch": ("patch", "get"),
    "replace": ("update", "get"),
    "delete": ("delete", "get"),
}


def granted(overlay: str) -> set[Right]:
    """The rights that an overlay's roles give."""
    rights = set()
    for body in found.overlay(overlay):
        if body["kind"] in ("Role", "ClusterRole"):
            who, where = PLACES[body["kind"], body["metadata"]["name"]]
            rights |= {(who, where, *row) for rule in body["rules"] for row in _of_rule(rule)}
    return rights


def told() -> set[Right]:
    """The rights that the guide's table names."""
    rows = ROW.finditer(GUIDE.read_text(encoding="utf-8"))
    return {
        (row["who"], row["where"], row["what"], name.strip(), verb.strip())
        for row in rows
        for name in row["names"].split(",")
        for verb in row["verbs"].split(",")
    }


def _of_rule(rule: Object) -> Iterable[tuple[str, str, str]]:
    for group in rule["apiGroups"]:
        for plural in rule["resources"]:
            for name in rule.get("resourceNames") or [""]:
                for verb in rule["verbs"]:
                    yield f"{plural}.{group}" if group else plural, name, verb


class Recording:
    """A store that notes what is asked of it: kind, namespace, name, verb."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self.used: set[tuple[str, str, str, str]] = set()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)
        if name not in VERBS:
            return call

        def noted(*arguments: Any, **more: Any) -> Any:
            kind, namespace, called = _meant(*arguments)
            self.used |= {(kind, namespace, called, verb) for verb in VERBS[name]}
            if kind == CLAIM:  # local mode has none
                return {"spec": {"accessModes": ["ReadWriteMany"]}}
            return call(*arguments, **more)

        return noted


def _meant(first: Object | str, namespace: str = "", name: object = "", *_rest: object) -> tuple[str, str, str]:
    """What a call of a store is about."""
    if isinstance(first, str):
        return first, namespace or "", name if isinstance(name, str) else ""
    return first["kind"], first["metadata"].get("namespace", ""), first["metadata"].get("name", "")


@pytest.fixture
def lived(tmp_path: Path) -> set[Right]:
    """The rights that a scheduler uses from a job's grant over its start and a takeover to the loss of a worker."""
    world = World(tmp_path / "home")
    world.submit("digits", min_gpus="2", max_gpus="2")
    store: Any = Recording(world.store)
    first = Scheduler(store, Place(namespace="voda", identity="pod/gone", has_claims=True))
    first.once()
    world.settle()
    world.run_pods()
    first.once()
    assert world.view().document is not None
    second = Scheduler(store, Place(namespace="voda", identity="pod/second"))
    second.once()
    observer = StoreObserver(store, Settings(), Reports())
    (job,) = observer.observe().jobs
    evict = Evict(job_id=job.id, segment=0, worker_id="w1", reason="a test")
    StoreEnforcer(store, observer).enforce(evict)
    for _ in range(2):
        Kept(store, "voda").save(Learned())
    second.close()
    first.close()
    return {_as_right(*row) for row in store.used}


def _as_right(kind: str, namespace: str, name: str, verb: str) -> Right:
    """A use as the right that it takes: what is watched is watched everywhere, and only creations have no name."""
    everywhere = kind in ("Node", "Pod") and verb in ("list", "watch")
    own = namespace == "voda" and not everywhere
    where = "cluster" if everywhere else "its own" if own else "namespaces with jobs"
    called = name if own and verb != "create" else ""
    return ("voda-scheduler", where, resource_of(kind).right, called, verb)


def test_the_scheduler_uses_each_of_its_rights_and_no_other(lived: set[Right]) -> None:
    """A right that nothing uses is too much, one that is used and not given fails on the cluster."""
    given = {row for row in granted(ONE_NAMESPACE) if row[0] == "voda-scheduler" and row[2] != EXECUTORS}

    assert lived == given


def test_the_whole_cluster_is_only_looked_at() -> None:
    """The overlay for it adds the right to find jobs everywhere, and nothing that changes or reads them."""
    more = granted(CLUSTER) - granted(ONE_NAMESPACE)

    assert more == {("voda-scheduler", "cluster", "workflows.argoproj.io", "", verb) for verb in ("list", "watch")}
    assert granted(ONE_NAMESPACE) <= granted(CLUSTER)


def test_the_guide_tells_all_rights() -> None:
    """Whoever has to allow an installation reads them there."""
    assert told() == granted(ONE_NAMESPACE)


def test_the_pods_of_a_job_may_only_say_how_they_ended() -> None:
    """Nothing else, in no overlay."""
    for name in OVERLAYS:
        assert {row[2:] for row in granted(name) if row[0] == "voda-job"} == {
            (EXECUTORS, "", "create"),
            (EXECUTORS, "", "patch"),
        }


@pytest.mark.parametrize(
    ("name", "body"),
    [row for row in found.everything() if "rules" in row[1]],
    ids=lambda row: row if isinstance(row, str) else "",
)
def test_no_rule_has_a_wildcard(name: str, body: Object) -> None:
    """A star gives what nobody has thought of."""
    assert [rule for rule in body["rules"] if "*" in str(rule)] == [], name


def test_every_role_is_given_to_an_account_and_every_binding_finds_its_role() -> None:
    """A role that is bound to nobody gives nothing, and a binding to no role neither."""
    for name in OVERLAYS:
        bodies = found.overlay(name)
        roles = {(body["kind"], body["metadata"]["name"]) for body in bodies if "rules" in body}
        bound = {(body["roleRef"]["kind"], body["roleRef"]["name"]) for body in bodies if "roleRef" in body}
        everywhere = {body["roleRef"]["name"] for body in bodies if body["kind"] == "ClusterRoleBinding"}

        assert roles == bound == set(PLACES)
        assert everywhere == {"voda-scheduler"}


def test_the_test_on_a_real_api_server_gives_the_same_rights() -> None:
    """What it proves to be enough is what is installed; it does not know of names."""
    tables = {
        "cluster": on_a_cluster.IN_THE_CLUSTER,
        "namespaces with jobs": on_a_cluster.WITH_JOBS,
        "its own": on_a_cluster.ITS_OWN,
    }
    installed: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for who, where, resource, _, verb in granted(ONE_NAMESPACE):
        if who == "voda-scheduler" and resource != EXECUTORS:
            installed[where].add((resource, verb))

    assert installed == {
        where: {
            (f"{plural}.{group}" if group else plural, verb)
            for (group, plural), verbs in table.items()
            for verb in verbs
        }
        for where, table in tables.items()
    }
