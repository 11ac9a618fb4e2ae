"""Who may import what, where import-linter's contracts cannot say it."""

import ast
import sys
from pathlib import Path

import pytest

from tests.quality.shape import ROOT, python_files

LAUNCHERS = {"torch", "horovod"}


def imported_modules(path: Path) -> set[str]:
    """Full names of the modules that a file imports, at its top or inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("path", python_files("voda_flows/runtime"), ids=lambda path: path.name)
def test_runtime_needs_the_standard_library_and_the_launcher_only(path: Path) -> None:
    """Training images bring Python, PyTorch and Horovod; the runtime asks for nothing else."""
    foreign = {
        name
        for name in imported_modules(path)
        if name.split(".")[0] not in sys.stdlib_module_names | LAUNCHERS
        and name != "voda_flows.runtime"
        and not name.startswith("voda_flows.runtime.")
    }

    assert foreign == set()


@pytest.mark.parametrize("path", python_files("voda_flows/runtime"), ids=lambda path: path.name)
def test_runtime_parses_on_python_3_9(path: Path) -> None:
    """Training images are old; no syntax newer than 3.9 in what runs there."""
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))


@pytest.mark.parametrize("path", python_files("workloads"), ids=lambda path: path.name)
def test_workloads_see_nothing_of_voda_but_the_session(path: Path) -> None:
    """A training program depends on one module of ours."""
    ours = {name for name in imported_modules(path) if name.split(".")[0] in {"voda_flows", "scheduler_core"}}

    assert ours <= {"voda_flows.runtime", "voda_flows.runtime.session"}


def test_core_reads_no_clock() -> None:
    """Time comes into the core as a value."""
    clocks = {
        str(path.relative_to(ROOT)): sorted(imported_modules(path) & {"time", "datetime"})
        for path in python_files("scheduler_core")
        if imported_modules(path) & {"time", "datetime"}
    }

    assert clocks == {}
