"""Reads a world for the report: the one place where a store and the files beside the checkpoints come together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from voda_flows.config import DEFAULT_NAMESPACE
from voda_flows.report.files import job_folder, read_files
from voda_flows.report.history import history
from voda_flows.report.lives import JobLife
from voda_flows.report.record import Record, Sources, record
from voda_flows.report.span import EVERYTHING, Span
from voda_flows.store import ObjectStore


def gather(store: ObjectStore, home: Path, lives: Sequence[JobLife], span: Span = EVERYTHING) -> Record:
    """The record of some jobs of a world, now or over a span of its past; nothing needs to run there.

    Args:
        store: Where nodes are.
        home: Folder of the local state, in which the volumes are.
        lives: The jobs, in order of submission.
        span: What of their time is meant.

    Returns:
        The record.
    """
    now_s = time.time()
    meant = [life for life in lives if span.has(life, now_s)]
    sources = Sources(
        now_s=now_s,
        nodes=tuple(store.list("Node")),
        files={life.id: read_files(job_folder(home, life)) for life in meant},
        rounds=history(store, DEFAULT_NAMESPACE),
    )
    return record(meant, sources, span)
