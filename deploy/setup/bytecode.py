"""Last set-up step: what training processes import is read once, so that Python keeps its bytecode.

Usage: ``python -m deploy.setup.bytecode`` with the environment's Python, in the repository's root.

The packages are installed without bytecode, since most of PyTorch is never imported. Each worker's agent imports the
rest; where it has to compile it as well (12 seconds of processor time instead of 3) a job starts late, every time where
``PYTHONDONTWRITEBYTECODE`` is set, as it is in many images. So the variable does not count here.
"""

from __future__ import annotations

import os
import subprocess
import sys

from deploy.setup.progress import Progress, interrupted
from voda_flows.runtime.agent_warm import LAUNCHER_MODULES, OWN_MODULES

MODULES = (
    *LAUNCHER_MODULES,
    *OWN_MODULES,
    "workloads.digits",
    "workloads.chartransformer",
    "voda_flows.runtime.agent",
    "voda_flows.runtime.driver",
    "voda_flows.runtime.checkpoint",
    "voda_flows.local.engine",
    "voda_flows.control.scheduler",
    "voda_flows.control.decider_process",
    "voda_flows.demo.run",
    "voda_flows.cli.options",
)
OWN = ("voda_flows", "scheduler_core", "workloads")


def environment() -> dict[str, str]:
    """This process's environment, in which Python keeps bytecode."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def main() -> int:
    """Import everything once; 0 when that works."""
    imports = "; ".join(f"import {module}" for module in MODULES)
    code = f"{imports}; import compileall; [compileall.compile_dir(name, quiet=1) for name in {OWN}]"
    try:
        with Progress("bytecode of what training imports"):
            return subprocess.call([sys.executable, "-c", code], env=environment())
    except KeyboardInterrupt:
        return interrupted()


if __name__ == "__main__":
    sys.exit(main())
