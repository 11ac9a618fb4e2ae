"""The demo, with real processes: it ends, shows what it must, and leaves nothing running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    """The demo as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "voda_flows.cli", "demo", "--folder", str(folder), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def left_of(folder: Path) -> list[str]:
    """Processes that still work for a demo: they have its folder in their environment or command."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            told = (path / "environ").read_bytes() + (path / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in told and int(path.name) != os.getpid():
            found.append(path.name)
    return found


@pytest.mark.timeout(1600)
def test_the_demo_shows_what_it_must_and_leaves_nothing_running(tmp_path: Path) -> None:
    """Exit 0, every figure holds, report and record are there, state and processes are gone."""
    folder = tmp_path / "demo"
    demo = start(folder)
    said, _ = demo.communicate()
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))

    assert demo.returncode == 0, said[-4000:]
    assert [check["figure"] for check in record["checks"] if not check["holds"]] == []
    assert (folder / "report.html").read_text(encoding="utf-8").endswith("</html>\n")
    assert not (folder / "home").exists()
    assert left_of(folder) == []


@pytest.mark.timeout(300)
def test_a_demo_that_is_interrupted_cleans_up(tmp_path: Path) -> None:
    """Ctrl-C while the first job trains: exit 130, no process stays, what was logged is kept."""
    folder = tmp_path / "demo"
    demo = start(folder)
    assert demo.stdout is not None
    for line in demo.stdout:
        if "digits Running" in line:
            break
    demo.send_signal(signal.SIGINT)
    demo.communicate()

    assert demo.returncode == 130
    assert left_of(folder) == []
    assert (folder / "home" / "pods").is_dir()
