"""The manifests say what the code does: names, ports, labels, settings; and kustomizations name what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.unit.deploy import manifests as found
from voda_flows.config import CONFIG_MAP, NAMESPACE_VARIABLE, Settings
from voda_flows.install.applying import LABELS, ordered
from voda_flows.install.kustomize import find_file
from voda_flows.install.overlays import CLUSTER, ONE_NAMESPACE, OVERLAYS, Wanted, documents, manifests
from voda_flows.kube.opening import NAMESPACES_VARIABLE
from voda_flows.objects import Object
from voda_flows.render import TEMPLATES, rendered
from voda_flows.workflows.elastic_job import AGENT_PORT
from voda_flows.workflows.parameters import DRIVER_PORT, JOB_TEMPLATE, PARAMETERS
from voda_flows.worlds import WORLD_VARIABLE

SETTING = re.compile(r"^#  (?=\S)", re.MULTILINE)
#: Of the job's pods, by the place of their template.
POD_TEMPLATES = {"worker", "driver", "checkpoint"}


@pytest.mark.parametrize("folder", found.folders(), ids=lambda folder: str(folder.relative_to(manifests().parents[1])))
def test_a_kustomization_names_exactly_the_files_beside_it(folder: Path) -> None:
    """A file that nobody names is dead, and one that is named and not there fails only on the cluster."""
    named = {name for name in found.listed(folder) if name.endswith(".yaml")}
    beside = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}

    assert named == beside
    assert all(find_file(folder / name) for name in found.listed(folder) - named)


def test_every_folder_of_manifests_is_a_kustomization() -> None:
    """No file lies where no kustomization could name it."""
    homeless = [path for path in manifests().rglob("*.yaml") if find_file(path.parent) is None]

    assert homeless == []


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_holds_known_kinds_once_each_and_labelled(name: str) -> None:
    """By the label an installation finds what an earlier one made."""
    made = ordered(found.overlay(name))
    places = [(body["kind"], body["metadata"].get("namespace"), body["metadata"]["name"]) for body in made]

    assert len(places) == len(set(places))
    assert [
        place for place, body in zip(places, made, strict=True) if not _labels(body).items() >= LABELS.items()
    ] == []


def test_the_workflow_documents_are_the_rendered_ones() -> None:
    """Nothing of them is copied: whatever an overlay does not patch is what ``make render`` wrote."""
    template = found.one(ONE_NAMESPACE, "WorkflowTemplate", JOB_TEMPLATE)
    cron = found.one(ONE_NAMESPACE, "CronWorkflow", "voda-scheduler")
    source = {path: dict(document) for path, (_, document) in rendered().items()}
    wanted = source["voda-elastic-job.yaml"]["spec"]

    assert [each for each in template["spec"]["templates"] if each["name"] not in POD_TEMPLATES] == [
        each for each in wanted["templates"] if each["name"] not in POD_TEMPLATES
    ]
    assert template["spec"]["arguments"] == wanted["arguments"]
    assert {**cron["spec"], "workflowSpec": None} == {**source["voda-scheduler.yaml"]["spec"], "workflowSpec": None}


def test_every_setting_is_documented_with_its_default() -> None:
    """The lines of the ConfigMap's file that begin with ``#  `` are all settings, each at its default."""
    text = (manifests() / "base" / "config.yaml").read_text(encoding="utf-8")
    (config,) = yaml.safe_load_all(text)
    shown = "\n".join(SETTING.sub("", line) for line in text.splitlines() if SETTING.match(line))
    values: dict[str, str] = yaml.safe_load(shown)

    assert config["metadata"]["name"] == CONFIG_MAP
    assert "data" not in config  # what people set stays theirs
    assert sorted(values) == sorted(Settings.__dataclass_fields__)
    assert Settings.from_strings(values) == Settings()


def test_the_scheduler_knows_that_it_is_on_a_cluster_and_where() -> None:
    """Its namespace is that of its pod, so an overlay that moves it has nothing else to change."""
    here = {"fieldRef": {"fieldPath": "metadata.namespace"}}
    environment = _environment(found.one(ONE_NAMESPACE, "CronWorkflow", "voda-scheduler"))

    assert environment[NAMESPACE_VARIABLE] == here
    assert environment[WORLD_VARIABLE] == "cluster"
    assert environment[NAMESPACES_VARIABLE] == here
    assert NAMESPACES_VARIABLE not in _environment(found.one(CLUSTER, "CronWorkflow", "voda-scheduler"))


def test_the_scheduler_writes_only_where_a_volume_is() -> None:
    """Its root is read-only, and it is nobody's."""
    (template,) = found.one(CLUSTER, "CronWorkflow", "voda-scheduler")["spec"]["workflowSpec"]["templates"]
    container, mounts = template["container"], [row["mountPath"] for row in template["container"]["volumeMounts"]]
    environment = _environment(found.one(CLUSTER, "CronWorkflow", "voda-scheduler"))

    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert template["securityContext"]["runAsNonRoot"] is True
    assert mounts == ["/var/lib/voda", "/tmp"]
    assert all(str(environment[name]).startswith(f"{mounts[0]}/") for name in ("VODA_RECORDS", "VODA_METRICS"))


def test_accounts_that_are_named_are_there() -> None:
    """A pod with an account that does not exist is never made."""
    for name in OVERLAYS:
        accounts = {body["metadata"]["name"] for body in found.overlay(name) if body["kind"] == "ServiceAccount"}
        cron = found.one(name, "CronWorkflow", "voda-scheduler")
        (asked,) = [row.default for row in PARAMETERS if row.name == "service-account"]

        assert accounts == {cron["spec"]["workflowSpec"]["serviceAccountName"], asked}


@pytest.mark.parametrize(("name", "own"), [(ONE_NAMESPACE, "ml"), (CLUSTER, "voda")])
def test_another_namespace_is_all_that_there_is_to_say(name: str, own: str) -> None:
    """Nothing is left in the namespaces of the files, whether the scheduler's or the jobs'."""
    made = documents(Wanted(overlay=name, namespaces=("ml",)))
    jobs = [body for body in made if "voda-job" in body["metadata"]["name"] or body["kind"] == "WorkflowTemplate"]
    subjects = {
        (row["name"], row["namespace"]) for body in made for row in body.get("subjects", ()) if "namespace" in row
    }

    assert {body["metadata"].get("namespace") for body in jobs if body["kind"] != "ClusterRole"} == {"ml"}
    assert {body["metadata"]["name"] for body in made if body["kind"] == "Namespace"} == {own}
    assert subjects == {("voda-scheduler", own), ("voda-job", "ml")}


def test_policies_and_budget_choose_pods_that_there_are() -> None:
    """Their labels are those that the templates give, their ports those at which somebody listens."""
    policies = {
        body["metadata"]["name"]: body["spec"] for body in found.overlay(CLUSTER) if body["kind"] == "NetworkPolicy"
    }
    budget = found.one(CLUSTER, "PodDisruptionBudget", "voda-scheduler")["spec"]
    namespace = found.one(CLUSTER, "Namespace", "voda")
    ports = {name: [row.get("ports") for row in spec.get("ingress", ())] for name, spec in policies.items()}
    chosen = {name: spec["podSelector"]["matchLabels"]["voda.dev/role"] for name, spec in policies.items()}
    (_, asking) = [row["from"][0] for row in policies["voda-driver"]["ingress"]]

    assert chosen == {f"voda-{role}": role for role in (*_roles(), "scheduler")}
    assert budget["selector"]["matchLabels"] == policies["voda-scheduler"]["podSelector"]["matchLabels"]
    assert ports == {
        "voda-scheduler": [],
        "voda-checkpoint": [],
        "voda-worker": [[{"protocol": "TCP", "port": AGENT_PORT}], None],
        "voda-driver": [None, [{"protocol": "TCP", "port": DRIVER_PORT}]],
    }
    assert asking["namespaceSelector"]["matchLabels"].items() <= _labels(namespace).items()


def test_patches_of_the_controller_name_what_argo_installs() -> None:
    """They are merged into Argo's own objects by name."""
    folder = manifests() / "controller"
    component, names = yaml.safe_load((folder / "kustomization.yaml").read_text()), ("timing", "screens")
    timing, screens = (found.read_yaml(folder / f"{name}.patch.yaml")[0] for name in names)
    (container,) = timing["spec"]["template"]["spec"]["containers"]

    assert [patch["path"] for patch in component["patches"]] == [f"{name}.patch.yaml" for name in names]
    assert {path.name for path in folder.glob("*.patch.yaml")} == {f"{name}.patch.yaml" for name in names}
    assert (timing["kind"], timing["metadata"]["name"], container["name"]) == (
        "Deployment",
        *["workflow-controller"] * 2,
    )
    assert {row["name"] for row in container["env"]} == {
        "DEFAULT_REQUEUE_TIME",
        "ARGO_PROGRESS_PATCH_TICK_DURATION",
        "ARGO_PROGRESS_FILE_TICK_DURATION",
    }
    assert screens["metadata"]["name"] == "workflow-controller-configmap"
    columns, links = (yaml.safe_load(screens["data"][name]) for name in ("columns", "links"))
    assert {row["key"] for row in columns} == {"voda.dev/queue", "voda.dev/gpu-type", "voda.dev/category"}
    assert all(set(row) == {"name", "scope", "url"} for row in links)


def test_templates_are_a_kustomization_that_render_does_not_see() -> None:
    """Its name is one that kustomize knows and no ``*.yaml``, which local mode and render take for templates."""
    assert find_file(TEMPLATES) == TEMPLATES / "Kustomization"


def _labels(body: Object) -> dict[str, str]:
    found_labels: dict[str, str] = body["metadata"].get("labels") or {}
    return found_labels


def _roles() -> list[str]:
    templates = found.one(CLUSTER, "WorkflowTemplate", JOB_TEMPLATE)["spec"]["templates"]
    return [each["metadata"]["labels"]["voda.dev/role"] for each in templates if "container" in each]


def _environment(cron: Object) -> dict[str, object]:
    (template,) = cron["spec"]["workflowSpec"]["templates"]
    return {row["name"]: row.get("value", row.get("valueFrom")) for row in template["container"]["env"]}
