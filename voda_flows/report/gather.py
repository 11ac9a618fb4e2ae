"""Reads a world for the report: the one place where a store and what segments left come together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from scheduler_core.errors import Forbidden
from voda_flows.config import scheduler_namespace
from voda_flows.objects import Object
from voda_flows.report.history import history
from voda_flows.report.lives import JobLife
from voda_flows.report.record import Record, Sources, record
from voda_flows.report.sources import Source, source_of
from voda_flows.report.span import EVERYTHING, Span
from voda_flows.store import ObjectStore
from voda_flows.world import NotGiven


def gather(store: ObjectStore, home: Path | None, lives: Sequence[JobLife], span: Span = EVERYTHING) -> Record:
    """The record of some jobs of a world, now or over a span of its past; nothing needs to run there.

    Args:
        store: Where nodes are.
        home: Folder of the local state, in which the volumes are; None on a cluster.
        lives: The jobs, in order of submission.
        span: What of their time is meant.

    Returns:
        The record.
    """
    now_s = time.time()
    meant, source = [life for life in lives if span.has(life, now_s)], source_of(store, home)
    sources = Sources(
        now_s=now_s,
        nodes=_nodes(store),
        files=source.files(meant),
        rounds=_rounds(store, source, meant),
    )
    return record(meant, sources, span)


def _nodes(store: ObjectStore) -> tuple[Object, ...]:
    """The nodes; where one may not see them, those that jobs held are known from the jobs."""
    try:
        return tuple(store.list("Node"))
    except (Forbidden, NotGiven):
        return ()


def _rounds(store: ObjectStore, source: Source, lives: Sequence[JobLife]) -> tuple[Object, ...]:
    """The scheduler's rounds while these jobs lived: its history, and where that begins later, its records before."""
    rows = history(store, scheduler_namespace())
    begins_s = rows[0].get("time_s", 0.0) if rows else float("inf")
    if not any(life.submitted_s < begins_s for life in lives):
        return rows
    return (*source.rounds_before(begins_s, lives), *rows)
