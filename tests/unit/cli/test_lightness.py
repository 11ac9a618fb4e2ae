"""Starting stays light: what a listing has no use for is not imported."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from voda_flows.cli.verbs import VERBS

#: Heavy, or for others: clusters, training, drawing, checking, web servers.
HEAVY = {
    "asyncio", "hera", "horovod", "jsonschema", "kubernetes", "multiprocessing", "numpy", "pkg_resources", "psutil",
    "pydantic", "requests", "rich", "scipy", "sklearn", "torch", "urllib3", "xml",
}  # fmt: skip


PROGRAM = """
import json, sys
steps, before = json.loads(sys.argv[1]), set()
for step in steps:
    exec(step)
    print(json.dumps(sorted(set(sys.modules) - before)))
    before = set(sys.modules)
"""


def imported(*steps: str) -> list[set[str]]:
    """The modules that a new interpreter imports with each of these steps, one after another."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(steps)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    return [set(json.loads(line)) for line in ended.stdout.splitlines() if line.startswith("[")]


def test_a_verb_imports_nothing_heavy() -> None:
    """Not even the verbs that draw, check or start something import, before they do, what only that needs."""
    found = imported(*(f"import voda_flows.cli.{verb}" for verb in VERBS))
    heavy = {verb: modules & HEAVY for verb, modules in zip(VERBS, found, strict=True) if modules & HEAVY}

    assert heavy == {}


def test_a_listing_of_local_mode_imports_nothing_of_a_clusters_store() -> None:
    """Whichever world it is in is known before."""
    (found,) = imported("import voda_flows.cli.list")

    assert {name for name in found if name.startswith("voda_flows.kube")} == set()


@pytest.mark.parametrize("arguments", [["--help"], ["sumbit"], ["--version"]])
def test_help_imports_no_verb(arguments: list[str]) -> None:
    """What is said of all verbs is made from the table alone."""
    (found,) = imported(f"from voda_flows.cli import run; run({arguments!r})")

    assert found & {*HEAVY, "yaml", "sqlite3", *(f"voda_flows.cli.{verb}" for verb in VERBS)} == set()


def test_a_listing_of_local_mode_imports_nothing_of_an_argo_server() -> None:
    """Its package takes seconds."""
    (found,) = imported("import voda_flows.cli.list, voda_flows.cli.submit, voda_flows.cli.logs")

    assert {name for name in found if name.startswith(("argo_workflows", "voda_flows.argo_server"))} == set()
