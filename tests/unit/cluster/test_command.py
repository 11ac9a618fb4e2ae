"""The command: what it says and how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.places import HOME_VARIABLE, REPOSITORY


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command with an otherwise empty environment."""
    command = [sys.executable, "-m", "tests.cluster", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)


def test_where_it_cannot_run_check_says_why_in_one_line(tmp_path: Path) -> None:
    """Exit code 3; here nobody finds Go, nor programs that were built before."""
    done = run("check", PATH=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert done.stderr.startswith("expected ")


def test_up_does_not_begin_where_it_cannot_run(tmp_path: Path) -> None:
    """The same line, the same code, and no folder."""
    home = tmp_path / "cluster"

    done = run("up", PATH=str(tmp_path), XDG_CACHE_HOME=str(tmp_path), **{HOME_VARIABLE: str(home)})

    assert (done.returncode, done.stderr.count("\n"), home.exists()) == (3, 1, False)


@pytest.mark.parametrize("arguments", [("up", "--nodes", "three"), ("status",)])
def test_a_fault_of_the_user_is_told_in_a_line(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """What was expected, without a trace of where."""
    done = run(*arguments, PATH="/usr/bin:/bin", HOME=str(tmp_path), **{HOME_VARIABLE: str(tmp_path / "cluster")})

    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (1, "", False)
    assert "expected " in done.stderr


def test_help_needs_nothing() -> None:
    """It lists the verbs."""
    done = run("--help", PATH="/usr/bin:/bin")

    assert (
        done.returncode,
        [verb for verb in ("build", "check", "down", "status", "up") if verb not in done.stdout],
    ) == (0, [])
