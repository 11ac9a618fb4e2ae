"""An installation on a real API server with Argo's full definitions: what kubectl reads, what the server takes."""

from __future__ import annotations

import importlib
import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_core.errors import Conflict
from tests.contract.conftest import KUBECONFIG, cluster, make_namespace
from voda_flows.install.applying import (
    MANAGER,
    Manner,
    apply,
    document_key,
    ordered,
    resource_for,
)
from voda_flows.install.images import with_image
from voda_flows.install.kustomize import placed
from voda_flows.install.overlays import CLUSTER, ONE_NAMESPACE, OVERLAYS, Wanted, documents, manifests
from voda_flows.install.removing import Removed, check_no_jobs, remove
from voda_flows.install.starting import start_scheduler
from voda_flows.kube.api import Api
from voda_flows.kube.cluster import Cluster
from voda_flows.kube.connection import HttpTransport, connect
from voda_flows.kube.resources import resource_of
from voda_flows.kube.store import KubeStore
from voda_flows.kube.transport import Request
from voda_flows.objects import Key, Object, key_of
from voda_flows.render import TEMPLATES

pytestmark = pytest.mark.cluster

RBAC = "/apis/rbac.authorization.k8s.io/v1"
#: What every account may ask about itself.
ABOUT_ITSELF = {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A namespace of a cluster.

    Attributes:
        admin: A connection that may do anything.
        name: Its name.
    """

    admin: HttpTransport
    name: str

    @property
    def api(self) -> Api:
        """Calls to the cluster."""
        return Api(self.admin)

    def installation(self) -> list[Object]:
        """All of Voda in this namespace; what is of the whole cluster has a name of its own here."""
        bodies = documents(Wanted(overlay=ONE_NAMESPACE, namespaces=(self.name,)))
        return [self._renamed(body) for body in bodies]

    def _renamed(self, body: Object) -> Object:
        made = json.loads(json.dumps(body))
        if body["kind"] in ("ClusterRole", "ClusterRoleBinding"):
            made["metadata"]["name"] += f"-{self.name}"
        if made.get("roleRef", {}).get("kind") == "ClusterRole":
            made["roleRef"]["name"] += f"-{self.name}"
        renamed: Object = made
        return renamed


@pytest.fixture
def site() -> Iterator[Site]:
    """An empty namespace."""
    made = Site(admin=cluster(), name=f"install-{secrets.token_hex(4)}")
    make_namespace(made.admin, made.name)
    try:
        yield made
    finally:
        made.admin.send(Request(method="DELETE", path=f"/api/v1/namespaces/{made.name}"))
        for body in made.installation():
            if body["kind"] in ("ClusterRole", "ClusterRoleBinding"):
                path = f"{RBAC}/{body['kind'].lower()}s/{body['metadata']['name']}"
                made.admin.send(Request(method="DELETE", path=path))


def kubectl() -> str:
    """The kubectl of the test cluster's programs, else the machine's own."""
    name = "tests.cluster.programs"
    programs: Any = importlib.import_module(name) if find_spec("tests.cluster") and find_spec(name) else None
    groups = [group for group in programs.GROUPS if "kubectl" in group.packages] if programs else []
    found = [folder / "bin/kubectl" for group in groups if (folder := programs.find_built(group))]
    path = str(found[0]) if found else shutil.which("kubectl")
    if path is None:
        pytest.fail("expected kubectl on the PATH or among the test cluster's programs, found none")
    return path


def account_kubeconfig(site: Site, account: str, path: Path) -> str:
    """The tests' own kubeconfig as an account of the namespace; its path."""
    tokens = f"/api/v1/namespaces/{site.name}/serviceaccounts/{account}/token"
    made = site.admin.send(Request(method="POST", path=tokens, body=json.dumps({"spec": {"expirationSeconds": 3600}})))
    assert made.status == HTTPStatus.CREATED, made.body
    found = yaml.safe_load(Path(os.environ[KUBECONFIG]).read_text())
    current = next(one for one in found["contexts"] if one["name"] == found["current-context"])
    current["context"]["user"] = account
    found["users"] = [{"name": account, "user": {"token": made.document()["status"]["token"]}}]
    path.write_text(yaml.safe_dump(found))
    return str(path)


def in_order(bodies: list[Object]) -> list[str]:
    """Documents as text, sorted: kustomize has an order of its own."""
    return sorted(json.dumps(body, sort_keys=True) for body in bodies)


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_is_read_as_kubectl_reads_it(name: str) -> None:
    """Document for document: `voda install` and `kubectl apply -k` install the same."""
    command = [kubectl(), "kustomize", str(manifests() / "overlays" / name)]
    rendered = subprocess.run(command, check=True, capture_output=True, text=True)

    assert in_order(list(yaml.safe_load_all(rendered.stdout))) == in_order(documents(Wanted(overlay=name)))


@pytest.mark.parametrize("name", [ONE_NAMESPACE, CLUSTER])
def test_another_namespace_is_read_as_kubectl_reads_it(tmp_path: Path, name: str) -> None:
    """`-n` is what a kustomization with that namespace would be."""
    root = tmp_path / "deploy/kustomize"
    shutil.copytree(manifests(), root)
    shutil.copytree(TEMPLATES, tmp_path / "templates")
    changed = root / "overlays" / (name if name == ONE_NAMESPACE else f"{name}/default") / "kustomization.yaml"
    changed.write_text(changed.read_text().replace("namespace: voda", "namespace: ml").replace(": default", ": ml"))
    command = [kubectl(), "kustomize", str(root / "overlays" / name)]
    rendered = subprocess.run(command, check=True, capture_output=True, text=True)

    ours = documents(Wanted(overlay=name, namespaces=("ml",)))
    assert in_order(list(yaml.safe_load_all(rendered.stdout))) == in_order(ours)


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_server_takes_every_document(site: Site, name: str) -> None:
    """Strictly, with all that the full definitions check; nothing is kept."""
    bodies = placed(documents(Wanted(overlay=name)), site.name)

    done = list(apply(site.api, bodies, Manner(is_trial=True, is_forced=True)))

    assert len(done) == len(bodies)
    assert {applied.what for applied in done} <= {"created", "changed", "unchanged"}


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.yaml")), ids=lambda path: path.stem)
def test_the_server_takes_every_rendered_document(site: Site, path: Path) -> None:
    """Templates and examples; nothing is kept."""
    for body in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        body["metadata"]["namespace"] = site.name
        key, query = key_of(body), {"fieldManager": MANAGER, "dryRun": "All"}

        assert site.api.apply(resource_of(key.kind), key, json.dumps(body), query).status == HTTPStatus.CREATED


def test_installing_again_changes_nothing_and_keeps_settings(site: Site) -> None:
    """What was set stays; the second time everything is unchanged and no second scheduler is started."""
    first = [applied.what for applied in apply(site.api, site.installation(), Manner())]
    started = start_scheduler(site.api, site.installation())
    store = KubeStore(site.api)
    store.merge_patch("ConfigMap", site.name, "voda-config", {"data": {"decide_interval_s": "60"}})
    again = [applied.what for applied in apply(site.api, site.installation(), Manner())]

    assert set(first) == {"created", "changed"}  # the namespace was there
    assert set(again) == {"unchanged"}
    assert started is not None
    assert start_scheduler(site.api, site.installation()) is None
    assert store.get("ConfigMap", site.name, "voda-config")["data"] == {"decide_interval_s": "60"}
    assert store.get("Workflow", site.name, started.run)["spec"]["serviceAccountName"] == "voda-scheduler"


def test_a_newer_version_takes_the_place_of_the_run_at_work(site: Site) -> None:
    """It would go on with its own copy of the pod; the server takes the words that end it."""
    bodies = site.installation()
    list(apply(site.api, bodies, Manner()))
    first = start_scheduler(site.api, bodies)
    assert first is not None
    newer = [with_image(body, "registry/voda:2") if body["kind"] == "CronWorkflow" else body for body in bodies]

    list(apply(site.api, newer, Manner()))
    second = start_scheduler(site.api, newer)

    assert second is not None
    assert second.ended == (first.run,)
    (template,) = KubeStore(site.api).get("Workflow", site.name, second.run)["spec"]["templates"]
    assert template["container"]["image"] == "registry/voda:2"


def test_taking_it_away_leaves_what_people_made(site: Site) -> None:
    """Nothing of the installation stays but the namespace; a trial and a second time change nothing."""
    bodies = site.installation()
    list(apply(site.api, bodies, Manner()))
    started = start_scheduler(site.api, bodies)
    assert started is not None
    store = KubeStore(site.api)
    store.create(_config_map(site, "voda-target"))
    store.create(_config_map(site, "mine"))
    there = {Removed(key=document_key(body), what="deleted") for body in bodies if body["kind"] != "Namespace"}
    written = [Key("ConfigMap", site.name, "voda-target"), Key("Workflow", site.name, started.run)]
    gone = there | {Removed(key=key, what="deleted") for key in written}
    stays = {Removed(key=Key("Namespace", "", site.name), what="stays")}

    trial = set(remove(site.api, bodies, is_trial=True))
    first, again = (set(remove(site.api, bodies, is_trial=False)) for _ in range(2))

    assert (trial, first, again) == (gone | stays, gone | stays, stays)
    assert "mine" in [body["metadata"]["name"] for body in store.list("ConfigMap", site.name)]


def test_its_runs_are_told_to_stop_even_where_their_cron_went_before(site: Site) -> None:
    """Argo would make the pod of a run anew that is only deleted; and who was cut off after the cron can go on."""
    bodies = site.installation()
    list(apply(site.api, bodies, Manner()))
    store = KubeStore(site.api)
    started = start_scheduler(site.api, bodies)
    assert started is not None
    run = Key("Workflow", site.name, started.run)
    store.merge_patch(*run, {"metadata": {"finalizers": ["voda.dev/held-by-a-test"]}})
    (cron,) = [body for body in bodies if body["kind"] == "CronWorkflow"]
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"}
    site.api.delete(key_of(cron), json.dumps(options), store.get(*key_of(cron))["metadata"]["uid"])

    removed = list(remove(site.api, bodies, is_trial=False))
    held = store.get(*run)
    store.merge_patch(*run, {"metadata": {"finalizers": None}})

    assert Removed(key=run, what="deleted") in removed
    assert held["spec"]["shutdown"] == "Terminate"
    assert "deletionTimestamp" in held["metadata"]


def test_what_is_on_its_way_out_is_not_taken_away_again(site: Site) -> None:
    """A deletion may take its time: by then it is no news."""
    bodies = site.installation()
    list(apply(site.api, bodies, Manner()))
    store = KubeStore(site.api)
    (cron,) = [document_key(body) for body in bodies if body["kind"] == "CronWorkflow"]
    store.merge_patch(*cron, {"metadata": {"finalizers": ["voda.dev/held-by-a-test"]}})

    first, again = (set(remove(site.api, bodies, is_trial=False)) for _ in range(2))
    store.merge_patch(*cron, {"metadata": {"finalizers": None}})

    assert Removed(key=cron, what="deleted") in first
    assert again == {Removed(key=Key("Namespace", "", site.name), what="stays")}


def test_it_is_not_taken_from_under_live_jobs(site: Site) -> None:
    """Without the rights of their account their pods would fail; one that has ended is in nobody's way."""
    bodies = site.installation()
    list(apply(site.api, bodies, Manner()))
    store = KubeStore(site.api)
    root = {"id": "digits", "name": "digits", "type": "Steps", "templateName": "job", "phase": "Running"}
    spec = {"workflowTemplateRef": {"name": "voda-elastic-job"}}
    made = store.create(
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"name": "digits", "namespace": site.name},
            "spec": spec,
            "status": {"phase": "Running", "nodes": {"digits": root}},
        }
    )

    with pytest.raises(Conflict, match=f"expected no live jobs, found {site.name}/digits\nend them first"):
        check_no_jobs(site.api, bodies, everywhere=False)
    store.merge_patch("Workflow", *key_of(made)[1:], {"status": {"phase": "Succeeded"}})
    check_no_jobs(site.api, bodies, everywhere=False)


def _config_map(site: Site, name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": site.name}}


def test_kubectl_can_go_on_where_voda_has_installed(site: Site) -> None:
    """Another manager that applies the same documents changes nothing, so nobody's field is fought over."""
    list(apply(site.api, site.installation(), Manner()))

    for body in ordered(site.installation()):
        query = {"fieldManager": "kubectl", "fieldValidation": "Strict"}
        key = Key(body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"])
        before = site.api.apply(resource_for(body["kind"]), key, json.dumps(body), {"fieldManager": MANAGER})
        after = site.api.apply(resource_for(body["kind"]), key, json.dumps(body), query)

        assert (before.status, after.status) == (HTTPStatus.OK, HTTPStatus.OK)


def rights(rules: list[Object]) -> set[tuple[str, str, str]]:
    """Rules as single rights: resource, name, verb; without what every account may ask about itself."""
    return {
        (f"{plural}.{group}" if group else plural, name, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for plural in rule["resources"]
        if plural not in ABOUT_ITSELF
        for name in rule.get("resourceNames") or [""]
        for verb in rule["verbs"]
    }


def shown_rights(site: Site, account: str, path: Path) -> set[tuple[str, str, str]]:
    """What `kubectl auth can-i --list` shows of an account in the namespace."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": site.name},
    }
    place = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    asked = Request(method="POST", path=place, body=json.dumps(review))
    answer = connect(Cluster(kubeconfig=account_kubeconfig(site, account, path))).send(asked)
    return rights(answer.document()["status"]["resourceRules"])


def test_the_account_of_a_jobs_pods_may_do_nothing_else(site: Site, tmp_path: Path) -> None:
    """Results of tasks, and what everybody may ask about himself."""
    list(apply(site.api, site.installation(), Manner()))

    shown = shown_rights(site, "voda-job", tmp_path / "config")

    assert shown == {("workflowtaskresults.argoproj.io", "", verb) for verb in ("create", "patch")}


def test_the_schedulers_account_may_do_what_its_roles_say(site: Site, tmp_path: Path) -> None:
    """All of them in a namespace that is its own and has jobs too, as the API server counts them; and no more."""
    list(apply(site.api, site.installation(), Manner()))
    roles = [body for body in site.installation() if "rules" in body and body["metadata"]["name"] != "voda-job"]

    shown = shown_rights(site, "voda-scheduler", tmp_path / "config")

    assert shown == rights([rule for role in roles for rule in role["rules"]])
