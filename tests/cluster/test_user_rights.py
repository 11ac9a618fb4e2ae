"""The guide's table of rights is enough for every subcommand, and what is missing is named."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.command_lines import CommandLine, on_cluster
from tests.cluster.places import REPOSITORY
from tests.cluster.test_command_line import prepare
from tests.cluster.test_ways import document
from voda_flows.local.up import shipped_templates
from voda_flows.objects import Object

pytestmark = pytest.mark.cluster

GUIDE = REPOSITORY / "docs/guides/command-line.md"
NAMESPACE, SCHEDULERS = "rights", "rights-scheduler"
ROLES = "rbac.authorization.k8s.io"
#: What is typed for each subcommand of the table; FILE is a Workflow's document.
LINES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "list": (("list",),),
    "get": (("get", "good"),),
    "events": (("events", "good"),),
    "report": (("report",),),
    "logs": (("logs", "good"), ("logs", "good", "-f")),
    "wait": (("wait", "good"),),
    "submit": (("submit", "FILE"),),
    "lint": (("lint", "FILE"),),
    "stop": (("stop", "a"),),
    "terminate": (("terminate", "b"),),
    "suspend": (("suspend", "queued"),),
    "resume": (("resume", "queued"),),
    "retry": (("retry", "bad"),),
    "resubmit": (("resubmit", "good"),),
    "delete": (("delete", "c"),),
    "policies": (("policies",),),
    "queue": (("queue",),),
    "nodes": (("nodes",),),
    "top": (("top", "--once", "--interval", "0s"),),
    "watch": (("watch", "--once"),),
    "explain": (("explain", "queued"),),
    "cron": (("cron", "list"), ("cron", "run", "nightly"), ("cron", "delete", "nightly")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the table: subcommands, and rules for the jobs' namespace, the scheduler's, and the whole cluster."""

    verbs: tuple[str, ...]
    rules: tuple[tuple[Object, ...], ...]


def rows() -> list[Row]:
    """The table."""
    text = GUIDE.read_text(encoding="utf-8").partition("## Rights on a cluster")[2].partition("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")
    ]
    return [
        Row(verbs=tuple(re.findall(r"`(\w+)`", verbs)), rules=tuple(map(rules, places))) for verbs, *places in cells
    ]


def rules(cell: str) -> tuple[Object, ...]:
    """``pods`` list watch; ... as rules of a role."""
    found = re.findall(r"`([\w./]+)` ([a-z ]+)", cell)
    return tuple({"apiGroups": [_group(name)], "resources": [name], "verbs": verbs.split()} for name, verbs in found)


def _group(resource: str) -> str:
    return "argoproj.io" if "workflow" in resource else ""


def test_the_table_has_every_subcommand() -> None:
    """That there is on a cluster."""
    assert {verb for row in rows() for verb in row.verbs} == LINES.keys()


@pytest.fixture(scope="module")
def line(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The administrator's, in a namespace with Workflows in several states."""
    prepare(cluster, NAMESPACE)
    cluster.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SCHEDULERS}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VODA_SCHEDULER_NAMESPACE", SCHEDULERS)
        made = on_cluster(cluster.kubeconfig, NAMESPACE, tmp_path_factory.mktemp("rights"))
        fill(made)
        yield made
    for name in (NAMESPACE, SCHEDULERS):
        cluster.api.delete(f"/api/v1/namespaces/{name}")


def fill(line: CommandLine) -> None:
    """One that succeeded, one that failed, three that are held, one in the queue, and a schedule."""
    line.submit("good", line.pod("say", "echo hello"))
    line.submit("bad", line.pod("say", "exit 1"))
    for name in ("a", "b", "c"):
        line.submit(name, line.pod("say", "true"), suspend=True)
    (template,) = (each for each in shipped_templates() if each["kind"] == "WorkflowTemplate")
    spec = {"entrypoint": "say", "templates": [line.pod("say", "true")], **line.spec}
    cron = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "CronWorkflow",
        "metadata": {"name": "nightly"},
        "spec": {"schedules": ["0 3 * * *"], "suspend": True, "workflowSpec": spec},
    }
    for body in ({**template, "metadata": {"name": template["metadata"]["name"]}}, document("queued"), cron):
        said = line.voda("submit", line.write_document(body))
        assert said.code == 0, said.err
    line.until(
        "queued", lambda body: any(node["type"] == "Suspend" for node in (body["status"].get("nodes") or {}).values())
    )
    assert [line.wait(name) for name in ("good", "bad")] == ["Succeeded", "Failed"]


def person(cluster: Cluster, line: CommandLine, name: str, row: Row) -> CommandLine:
    """The command line of an account with the rights of a row and no others."""
    account = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
    cluster.api.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}}
    )
    for place, allowed in zip((NAMESPACE, SCHEDULERS, ""), row.rules, strict=True):
        kind = "Role" if place else "ClusterRole"
        metadata = {"name": f"{NAMESPACE}-{name}", **({"namespace": place} if place else {})}
        about = {"apiVersion": f"{ROLES}/v1", "metadata": metadata}
        cluster.api.apply({**about, "kind": kind, "rules": list(allowed)})
        reference = {"apiGroup": ROLES, "kind": kind, "name": metadata["name"]}
        cluster.api.apply({**about, "kind": f"{kind}Binding", "roleRef": reference, "subjects": [account]})
    path = line.folder / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig(cluster, cluster.token(NAMESPACE, name))), encoding="utf-8")
    return replace(line, options=("--kubeconfig", str(path)))


def kubeconfig(cluster: Cluster, token: str) -> Object:
    """That of somebody with a token."""
    found: Object = yaml.safe_load(Path(cluster.kubeconfig).read_text(encoding="utf-8"))
    server = found["clusters"][0]["cluster"]
    ca = base64.b64encode((cluster.home.certificates / "ca.crt").read_bytes()).decode()
    return {
        **found,
        "clusters": [{"name": "c", "cluster": {"server": server["server"], "certificate-authority-data": ca}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


def test_the_rights_of_the_table_are_enough(cluster: Cluster, line: CommandLine) -> None:
    """For each subcommand, as an account that has those of its row only."""
    said = {}
    for number, row in enumerate(rows()):
        somebody = person(cluster, line, f"person-{number}", row)
        for verb in row.verbs:
            for words in LINES[verb]:
                path = line.write(f"{verb}-{number}", line.pod("say", "true"), suspend=True)
                typed = [path if word == "FILE" else word for word in words]
                said[" ".join(words)] = somebody.voda(*typed)

    assert {typed: each.err for typed, each in said.items() if each.code != 0} == {}


def test_a_right_that_is_missing_is_named(cluster: Cluster, line: CommandLine) -> None:
    """The verb, the resource, the namespace and the account."""
    (row,) = (each for each in rows() if "logs" in each.verbs)
    without = tuple(rule for rule in row.rules[0] if rule["resources"] != ["pods/log"])
    somebody = person(cluster, line, "somebody", replace(row, rules=(without, *row.rules[1:])))

    said = somebody.voda("logs", "good")

    assert said.code == 1, said.err
    assert f"expected the right to get pods/log in namespace '{NAMESPACE}'" in said.err
    assert f"system:serviceaccount:{NAMESPACE}:somebody" in said.err
