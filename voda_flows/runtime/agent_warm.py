"""Warming up: every import that a rank will need, made once in the agent, before it says that it is ready.

Nothing here computes: a tensor operation would start threads and a CUDA call a context, and neither survives a fork.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from voda_flows.runtime.program import imports_of, parse_command, stand_in_place

if TYPE_CHECKING:
    import logging

    from voda_flows.runtime.environment import AgentEnvironment
    from voda_flows.runtime.program import Program

# Constructing an optimizer imports torch._dynamo (with sympy and triton), 3 s that all other ranks would wait for.
LAUNCHER_MODULES = ("torch", "torch._dynamo", "torch.utils.data", "horovod.torch", "horovod.torch.elastic")
OWN_MODULES = ("ctypes", "voda_flows.runtime.session")


@dataclass(frozen=True)
class Warmth:
    """What warming up came to.

    Attributes:
        program: The program that forks may run; None when ranks have to be exec'd.
        why_cold: The reason when ``program`` is None, else empty.
        took_s: Seconds that the imports took.
    """

    program: Program | None
    why_cold: str
    took_s: float


def prepare_threads(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables to set before torch is imported: one thread per rank unless the pod says otherwise.

    OpenMP reads its number of threads once, when it is loaded, which is here; ranks share a pod's cores.
    """
    return {} if "OMP_NUM_THREADS" in environ else {"OMP_NUM_THREADS": "1"}


def warm(environment: AgentEnvironment, log: logging.Logger) -> Warmth:
    """Import what ranks will import. A module that cannot be imported is left to the program, whose error it is."""
    began_s = time.monotonic()
    program = parse_command(environment.command)
    modules = [*LAUNCHER_MODULES, *OWN_MODULES, *environment.warm]
    if program is not None:
        stand_in_place(program)
        modules += imports_of(program)
    for name in dict.fromkeys(modules):
        try:
            importlib.import_module(name)
        except Exception as fault:  # noqa: BLE001 - a module of the user's may raise anything
            log.warning("warm module=%s skipped=%r", name, str(fault)[:200])
    why_cold = _why_cold(program)
    return Warmth(program=None if why_cold else program, why_cold=why_cold, took_s=time.monotonic() - began_s)


def _why_cold(program: Program | None) -> str:
    if program is None:
        return "the command is not `python FILE ...` or `python -m MODULE ...`"
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return "an imported module used CUDA, which does not survive a fork"
    if threading.active_count() > 1 or os_threads() > 1:
        return "an imported module started threads, which do not survive a fork"
    return ""


def os_threads() -> int:
    """Threads of this process that the system knows; 1 where it cannot be asked."""
    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return 1
