"""``voda install`` and ``uninstall`` without a cluster: documents that are printed, and what is said of faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.unit.cli.world import World
from voda_flows.install.applying import ordered
from voda_flows.install.overlays import CLUSTER, Wanted, documents


def test_the_documents_are_printed_as_they_would_be_applied(world: World) -> None:
    """In YAML one after another, in JSON as a List; no cluster is asked."""
    wanted = ordered(documents(Wanted(overlay=CLUSTER, namespaces=("a", "b"))))
    asked = ("install", "--overlay", "cluster", "-n", "a", "-n", "b", "-n", "a", "--kubeconfig", "/none")

    as_yaml, as_json = (world.voda(*asked, "-o", form) for form in ("yaml", "json"))

    assert (as_yaml.code, as_yaml.err, as_json.code, as_json.err) == (0, "", 0, "")
    assert list(yaml.safe_load_all(as_yaml.out)) == wanted
    assert json.loads(as_json.out) == {"apiVersion": "v1", "kind": "List", "items": wanted}


def test_the_image_of_the_scheduler_is_a_word(world: World) -> None:
    """Nobody needs an overlay of his own for it."""
    said = world.voda("install", "--image", "registry/voda:2", "-o", "yaml")

    (cron,) = [body for body in yaml.safe_load_all(said.out) if body["kind"] == "CronWorkflow"]
    assert cron["spec"]["workflowSpec"]["templates"][0]["container"]["image"] == "registry/voda:2"


def training_images(text: str) -> list[tuple[str, str, list[str]]]:
    """By namespace: a job's default image for who submits the template, and for who calls its template ``job``."""
    templates = [body for body in yaml.safe_load_all(text) if body["kind"] == "WorkflowTemplate"]
    return [
        (
            body["metadata"]["namespace"],
            *(row["value"] for row in body["spec"]["arguments"]["parameters"] if row["name"] == "image"),
            [
                row["default"]
                for template in body["spec"]["templates"]
                for row in template.get("inputs", {}).get("parameters", ())
                if row["name"] == "image" and "default" in row
            ],
        )
        for body in templates
    ]


def test_the_image_of_jobs_is_a_word(world: World) -> None:
    """However a job is submitted and in whatever namespace; the scheduler's is another."""
    asked = ("install", "--overlay", "cluster", "-n", "a", "-n", "b", "-o", "yaml")

    said = world.voda(*asked, "--training-image", "registry/train:2")

    assert training_images(said.out) == [(name, "registry/train:2", ["registry/train:2"]) for name in ("a", "b")]
    assert said.out.replace("registry/train:2", "voda-train:latest") == world.voda(*asked).out


@pytest.mark.parametrize(
    ("option", "lacks"),
    [("--image", "CronWorkflow voda-scheduler"), ("--training-image", "WorkflowTemplate voda-elastic-job")],
)
def test_an_image_for_what_is_not_installed_is_refused(world: World, tmp_path: Path, option: str, lacks: str) -> None:
    """It would have no effect."""
    (tmp_path / "kustomization.yaml").write_text("resources: [a.yaml]")
    (tmp_path / "a.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")

    said = world.voda("install", "--overlay", str(tmp_path), option, "registry/image:2", "-o", "yaml")

    assert (said.code, said.out) == (2, "")
    assert f"{option}: expected {lacks} among the documents of overlay {str(tmp_path)!r}, found none" in said.err


def test_a_kustomization_of_ones_own_is_an_overlay_too(world: World, tmp_path: Path) -> None:
    """Its paths are its own."""
    (tmp_path / "kustomization.yaml").write_text("namespace: x\nresources: [a.yaml]")
    (tmp_path / "a.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")

    said = world.voda("install", "--overlay", str(tmp_path), "-o", "json")

    assert [body["metadata"] for body in json.loads(said.out)["items"]] == [{"name": "a", "namespace": "x"}]


@pytest.mark.parametrize("word", ["install", "uninstall"])
@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--overlay", "clutser"), 2, "got 'clutser'; did you mean 'cluster'?"),
        (("-n", "a", "-n", "b"), 2, "expected one namespace for overlay 'one-namespace', got a, b; jobs in several"),
        (("--overlay", "test", "-n", "a"), 2, "-n: expected none for overlay 'test'"),
        (("--kubeconfig", "/none"), 3, "expected a kubeconfig at /none, there is no such file"),
    ],
)
def test_what_is_wrong_is_said(world: World, word: str, options: tuple[str, ...], code: int, said: str) -> None:
    """What was expected, what was found, what to do; whoever takes it away says the same as who installs it."""
    found = world.voda(word, *options)

    assert (found.code, found.out) == (code, "")
    assert said in found.err
