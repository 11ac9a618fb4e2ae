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
    "pydantic", "requests", "rich", "scipy", "sklearn", "torch", "xml",
}  # fmt: skip


def imported(code: str) -> set[str]:
    """The modules that a new interpreter has imported after some code."""
    program = f"{code}; import json, sys; print(json.dumps(sorted(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(json.loads(ended.stdout.splitlines()[-1]))


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_imports_nothing_heavy(verb: str) -> None:
    """Not even the verbs that draw, check or start something import, before they do, what only that needs."""
    assert imported(f"import voda_flows.cli.{verb}") & HEAVY == set()


@pytest.mark.parametrize("arguments", [["--help"], ["sumbit"], ["--version"]])
def test_help_imports_no_verb(arguments: list[str]) -> None:
    """What is said of all verbs is made from the table alone."""
    found = imported(f"from voda_flows.cli import run; run({arguments!r})")

    assert found & {*HEAVY, "yaml", "sqlite3", *(f"voda_flows.cli.{verb}" for verb in VERBS)} == set()
