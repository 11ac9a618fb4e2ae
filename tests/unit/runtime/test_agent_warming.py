"""An agent that nobody needs any more does not finish its imports first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PATIENCE_S = 60.0


def warming(folder: Path) -> subprocess.Popen[str]:
    """An agent whose imports would take for ever; it has said so in a file when they began.

    The endless one stands in for PyTorch, the first of them: what would take seconds is not waited for.
    """
    (folder / "torch.py").write_text(
        "import os, signal\nopen(os.environ['BEGUN'], 'w').close()\nwhile True: signal.pause()\n"
    )
    (folder / "key").write_text("00" * 32)
    os.mkfifo(folder / "begun")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(Path.cwd())]),
        "BEGUN": str(folder / "begun"),
        "VODA_JOB": "u/train",
        "VODA_SEGMENT": "0",
        "VODA_WORKER": "w0",
        "VODA_POD_IP": "127.0.0.1",
        "VODA_KEY_FILE": str(folder / "key"),
        "VODA_CHECKPOINT_ROOT": str(folder / "root"),
    }
    agent = subprocess.Popen([sys.executable, "-m", "voda_flows.runtime.agent"], env=environment, text=True)
    with (folder / "begun").open():  # opens when the endless import has begun
        return agent


@pytest.mark.parametrize("how", ["its segment ends", "it is told to go"])
def test_it_leaves_well_while_it_warms_up(tmp_path: Path, how: str) -> None:
    """The GPU it holds is wanted elsewhere, and its end is no failure."""
    agent = warming(tmp_path)
    if how == "its segment ends":
        (tmp_path / "root" / "segment-0").mkdir(parents=True)
        (tmp_path / "root" / "segment-0" / "end.json").write_text("{}")
    else:
        agent.send_signal(signal.SIGTERM)
    try:
        assert agent.wait(PATIENCE_S) == 0
    finally:
        agent.kill()
