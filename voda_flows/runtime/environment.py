"""What driver and agent are told by their pod's environment (docs/contracts.md, section 3), read and checked once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from voda_flows.runtime.errors import BadEnvironment

AGENT_PORT = 7070
DRIVER_PORT = 7071
AGENT_TIMEOUT_S = 10.0
RESET_TIMEOUT_S = 60.0
SETUP_TIMEOUT_S = 600.0
STALL_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class AgentEnvironment:
    """Settings of a worker's agent.

    Attributes:
        job: ``<workflow uid>/<job-name>``.
        segment: The segment's number.
        worker: Worker id.
        pod_ip: Address to listen on.
        key_file: File with the job's key.
        command: The user's command; what it imports is imported beforehand.
        warm: Further modules to import beforehand.
        segment_folder: Where the driver leaves ``end.json``.
        timeout_s: How long to stay without a driver, in seconds.
    """

    job: str
    segment: int
    worker: str
    pod_ip: str
    key_file: Path
    command: str
    warm: tuple[str, ...]
    segment_folder: Path
    timeout_s: float


@dataclass(frozen=True)
class DriverEnvironment:
    """Settings of a job's driver.

    Attributes:
        job: ``<workflow uid>/<job-name>``.
        segment: The segment's number.
        pod_uid: Uid of this driver's pod; documents for any other are ignored.
        pod_ip: Address to serve on.
        key_file: File with the job's key.
        allocation_file: File with the allocation document.
        checkpoint_root: The job's folder, with one folder per segment.
        command: The user's command.
        epochs: Epochs to train, as the ranks are told.
        checkpoint_steps: Steps between checkpoints, as the ranks are told.
        launcher: Name of the launch adapter.
        restart_limit: How often one worker's ranks are started again.
        agent_timeout_s: After how many seconds of silence an agent is lost.
        reset_timeout_s: How long a reset may last, in seconds.
        setup_timeout_s: How long a rank may take from its start to the door, in seconds.
        stop_timeout_s: How long ranks may take to stop at a checkpoint, in seconds.
        stall_timeout_s: After how many seconds without a turn of its loop the driver is ended.
        progress_file: Where ``N/M`` goes, None for nowhere.
        progress_output: Where what was shown of it at the end goes, None for nowhere.
    """

    job: str
    segment: int
    pod_uid: str
    pod_ip: str
    key_file: Path
    allocation_file: Path
    checkpoint_root: Path
    command: str
    epochs: int
    checkpoint_steps: int
    launcher: str
    restart_limit: int
    agent_timeout_s: float
    reset_timeout_s: float
    setup_timeout_s: float
    stop_timeout_s: float
    stall_timeout_s: float
    progress_file: Path | None
    progress_output: Path | None

    @property
    def segment_folder(self) -> Path:
        """Where this segment's checkpoints and records go."""
        return self.checkpoint_root / f"segment-{self.segment}"


def read_agent(environ: Mapping[str, str]) -> AgentEnvironment:
    """An agent's settings.

    Raises:
        BadEnvironment: Names the variable.
    """
    segment = _count(environ, "VODA_SEGMENT", None)
    return AgentEnvironment(
        job=_text(environ, "VODA_JOB"),
        segment=segment,
        worker=_text(environ, "VODA_WORKER"),
        pod_ip=_text(environ, "VODA_POD_IP"),
        key_file=Path(_text(environ, "VODA_KEY_FILE")),
        command=environ.get("VODA_COMMAND", ""),
        warm=tuple(name.strip() for name in environ.get("VODA_WARM", "").split(",") if name.strip()),
        segment_folder=Path(_text(environ, "VODA_CHECKPOINT_ROOT")) / f"segment-{segment}",
        timeout_s=_seconds(environ, "VODA_AGENT_TIMEOUT", AGENT_TIMEOUT_S),
    )


def read_driver(environ: Mapping[str, str]) -> DriverEnvironment:
    """A driver's settings.

    Raises:
        BadEnvironment: Names the variable.
    """
    progress = environ.get("ARGO_PROGRESS_FILE", "")
    output = dict(pair.split("=", 1) for pair in environ.get("VODA_OUTPUTS", "").split() if "=" in pair).get("progress")
    return DriverEnvironment(
        job=_text(environ, "VODA_JOB"),
        segment=_count(environ, "VODA_SEGMENT", None),
        pod_uid=_text(environ, "VODA_POD_UID"),
        pod_ip=_text(environ, "VODA_POD_IP"),
        key_file=Path(_text(environ, "VODA_KEY_FILE")),
        allocation_file=Path(_text(environ, "VODA_ALLOCATION_FILE")),
        checkpoint_root=Path(_text(environ, "VODA_CHECKPOINT_ROOT")),
        command=_text(environ, "VODA_COMMAND"),
        epochs=_count(environ, "VODA_EPOCHS", 1),
        checkpoint_steps=_count(environ, "VODA_CHECKPOINT_STEPS", 0),
        launcher=environ.get("VODA_LAUNCHER") or "horovod",
        restart_limit=_count(environ, "VODA_RESTART_LIMIT", 3),
        agent_timeout_s=_seconds(environ, "VODA_AGENT_TIMEOUT", AGENT_TIMEOUT_S),
        reset_timeout_s=_seconds(environ, "VODA_RESET_TIMEOUT", RESET_TIMEOUT_S),
        setup_timeout_s=_seconds(environ, "VODA_SETUP_TIMEOUT", SETUP_TIMEOUT_S),
        stop_timeout_s=_seconds(environ, "VODA_STOP_TIMEOUT", STOP_TIMEOUT_S),
        stall_timeout_s=_seconds(environ, "VODA_STALL_TIMEOUT", STALL_TIMEOUT_S),
        progress_file=Path(progress) if progress else None,
        progress_output=Path(output) if output else None,
    )


def _text(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "")
    if not value:
        raise BadEnvironment(f"{name}: expected text, got nothing; the pod's template sets it")
    return value


def _count(environ: Mapping[str, str], name: str, default: int | None) -> int:
    value = environ.get(name, "")
    if not value and default is not None:
        return default
    if not value.isdecimal():
        raise BadEnvironment(f"{name}: expected a whole number, got {value!r}")
    return int(value)


def _seconds(environ: Mapping[str, str], name: str, default_s: float) -> float:
    value = environ.get(name, "") or str(default_s)
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise BadEnvironment(f"{name}: expected seconds above 0, got {value!r}")
    return seconds
