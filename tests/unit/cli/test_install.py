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
