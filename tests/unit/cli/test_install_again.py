"""``voda install`` on a cluster where Voda is: what the cluster has stays unless something else is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.install.server import Server
from voda_flows.cli.install import install
from voda_flows.install.applying import Manner
from voda_flows.install.overlays import CLUSTER, Wanted, documents

ARGO = "/apis/argoproj.io/v1alpha1/namespaces"
CRON = f"{ARGO}/voda/cronworkflows/voda-scheduler"
SHIPPED = {"voda": "voda:latest", "train": ["voda-train:latest", "voda-train:latest"]}
ASKED = {"voda": "r/voda:1", "train": ["r/train:1", "r/train:1"]}


def images(server: Server, namespace: str = "voda") -> dict[str, object]:
    """What the server's objects name: the scheduler's image, and both of jobs."""
    spec = server.objects[f"{ARGO}/{namespace}/workflowtemplates/voda-elastic-job"]["spec"]
    rows = [*spec["arguments"]["parameters"], *spec["templates"][0]["inputs"]["parameters"]]
    return {
        "voda": server.objects[CRON]["spec"]["workflowSpec"]["templates"][0]["container"]["image"],
        "train": [row.get("value", row.get("default")) for row in rows if row["name"] == "image"],
    }


def install_on(server: Server, wanted: Wanted, *, is_trial: bool = False) -> None:
    """As the command line does it."""
    install(server.api, documents(wanted), wanted.staying, Manner(is_trial=is_trial))


@pytest.fixture
def server() -> Server:
    """A cluster without Voda."""
    return Server()


def test_at_first_images_are_the_overlays_own(server: Server) -> None:
    """Nothing is there to be kept."""
    install_on(server, Wanted())

    assert images(server) == SHIPPED


def test_images_that_are_not_asked_for_stay(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Else repeating an installation would put a registry's image back to one that nobody can pull."""
    install_on(server, Wanted(image="r/voda:1", training_image="r/train:1"))
    capsys.readouterr()

    install_on(server, Wanted())

    assert images(server) == ASKED
    assert capsys.readouterr().err.splitlines()[:2] == [
        "WorkflowTemplate voda/voda-elastic-job keeps its image r/train:1; --training-image sets another",
        "CronWorkflow voda/voda-scheduler keeps its image r/voda:1; --image sets another",
    ]


def test_one_image_is_set_and_the_other_stays(server: Server) -> None:
    """Also where the one that is set is what the overlay has."""
    install_on(server, Wanted(image="r/voda:1", training_image="r/train:1"))

    install_on(server, Wanted(image="voda:latest"))

    assert images(server) == {**ASKED, "voda": "voda:latest"}


def test_each_namespace_keeps_its_own(server: Server) -> None:
    """A new one has the overlay's, and places that somebody set each for itself stay so."""
    for name in ("a", "b"):
        server.objects[f"/api/v1/namespaces/{name}"] = {"kind": "Namespace", "metadata": {"name": name}}
    install_on(server, Wanted(overlay=CLUSTER, namespaces=("a",), training_image="r/train:1"))
    template = server.objects[f"{ARGO}/a/workflowtemplates/voda-elastic-job"]
    template["spec"]["arguments"]["parameters"][1]["value"] = "r/train:2"

    install_on(server, Wanted(overlay=CLUSTER, namespaces=("a", "b")))

    assert images(server, "a")["train"] == ["r/train:2", "r/train:1"]
    assert images(server, "b")["train"] == SHIPPED["train"]


def test_a_dry_run_says_what_the_same_without_it_would_do(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """All unchanged, as images stay; nothing is changed."""
    install_on(server, Wanted(image="r/voda:1", training_image="r/train:1"))
    server.transport.asked.clear()
    capsys.readouterr()

    install_on(server, Wanted(), is_trial=True)

    said = capsys.readouterr()
    assert {line.split()[2] for line in said.out.splitlines()} == {"unchanged"}
    assert "keeps its image r/voda:1" in said.err
    assert server.changes() == []


def test_an_image_that_ones_own_kustomization_names_is_taken(server: Server, tmp_path: Path) -> None:
    """It was written down by who installs; what the cluster keeps are only images that nobody else has named."""
    (tmp_path / "cron.yaml").write_text(
        "{apiVersion: argoproj.io/v1alpha1, kind: CronWorkflow, metadata: {name: voda-scheduler, namespace: voda}, "
        "spec: {workflowSpec: {entrypoint: s, templates: [{name: s, container: {image: 'r/voda:2'}}]}}}"
    )
    (tmp_path / "kustomization.yaml").write_text("resources: [cron.yaml]")
    install_on(server, Wanted(image="r/voda:1"))

    install_on(server, Wanted(overlay=str(tmp_path)))

    (template,) = server.objects[CRON]["spec"]["workflowSpec"]["templates"]
    assert template["container"]["image"] == "r/voda:2"


def test_a_newer_version_is_at_work_at_once_and_that_is_said(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run has its own copy of the pod, and would go on with the old version for most of an hour."""
    said = []
    for image in ("r/voda:1", "r/voda:1", "r/voda:2"):
        install_on(server, Wanted(image=image))
        said += [line for line in capsys.readouterr().err.splitlines() if line.startswith("scheduler: ")]

    (run,) = [path.rpartition("/")[2] for path in server.objects if path.startswith(f"{ARGO}/voda/workflows/")]
    first = said[0].split()[1]
    assert said == [
        f"scheduler: {first} started",
        "scheduler: runs already",
        f"scheduler: restarted, its version or settings of the pod have changed: {first} ended, {run} started",
    ]
