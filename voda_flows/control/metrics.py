"""The scheduler's own metrics as a file in Prometheus' text format, as node_exporter's textfile collector reads it.

In: rounds. Out: ``$VODA_HOME/metrics/scheduler.prom``, replaced as a whole when something was counted and at least
every 15 seconds. Counters begin at 0 with each process. A disk that is full is logged once and stops nothing.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from scheduler_core.model.decision import CycleResult, DecisionKind
from scheduler_core.model.quarantine import quarantines
from scheduler_core.model.target import Target

log = logging.getLogger(__name__)

#: Where metrics go, if set; else ``metrics/scheduler.prom`` under VODA_HOME, else nowhere.
FILE_VARIABLE: Final = "VODA_METRICS"
#: Prometheus asks once in so long by default; what only times a round is not written more often.
_PERIOD_S: Final = 15.0


def metrics_file(environment: Mapping[str, str]) -> Path | None:
    """The file for metrics, None where none is configured."""
    if environment.get(FILE_VARIABLE):
        return Path(environment[FILE_VARIABLE])
    home = environment.get("VODA_HOME")
    return Path(home) / "metrics" / "scheduler.prom" if home else None


class Metrics:
    """Counts rounds and writes the numbers down; used by one thread.

    Args:
        file: Where to, None for nowhere.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, file: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._clock = clock
        self._decisions: Counter[str] = Counter({kind.value: 0 for kind in _DECIDING})
        self._plans_fenced = 0
        self._rounds = 0
        self._rounds_s = 0.0
        self._left_out: dict[str, int] = {}
        self._fenced_since_s = 0.0
        self._written: tuple[object, ...] = ()
        self._written_s = -math.inf
        self._failed = False

    def note(self, result: CycleResult, before: Target, took_s: float) -> None:
        """Count a round.

        Args:
            result: The round.
            before: The target that it started from.
            took_s: How long it took, seconds.
        """
        self._rounds += 1
        self._rounds_s += took_s
        target = result.decision.target
        waits = result.decision.kind is DecisionKind.FENCED and target == before
        if result.decision.kind is not DecisionKind.KEPT and not waits:
            self._decisions[result.decision.kind.value] += 1
        self._plans_fenced += bool(result.fault)
        stages = Counter(held.stage for held in quarantines(result.observation, target).values())
        self._left_out = {stage: stages[stage] for stage in ("decide", "plan")}
        self._fenced_since_s = target.fence.since_s if target.fence else 0.0
        counted = (dict(self._decisions), self._plans_fenced, self._left_out, self._fenced_since_s)
        if self._file is not None and (counted != self._written or self._clock() - self._written_s >= _PERIOD_S):
            self._written, self._written_s = counted, self._clock()
            self._write(self._file)

    def _write(self, file: Path) -> None:
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text("\n".join(self._lines()) + "\n", encoding="utf-8")
            beside.replace(file)
            self._failed = False
        except OSError as fault:
            if not self._failed:
                log.warning("metrics=lost file=%s fault=%r", file, str(fault))
            self._failed = True

    def _lines(self) -> Iterator[str]:
        yield from _head("voda_scheduler_decisions_total", "counter", "Decisions by kind; Fenced ones changed nothing.")
        for kind, count in sorted(self._decisions.items()):
            yield f'voda_scheduler_decisions_total{{kind="{kind}"}} {count}'
        yield from _head("voda_scheduler_plans_fenced_total", "counter", "Plans that broke a law.")
        yield f"voda_scheduler_plans_fenced_total {self._plans_fenced}"
        yield from _head("voda_scheduler_quarantined_jobs", "gauge", "Jobs left out because a stage fails with them.")
        for stage, count in sorted(self._left_out.items()):
            yield f'voda_scheduler_quarantined_jobs{{stage="{stage}"}} {count}'
        yield from _head(
            "voda_scheduler_fenced_since_seconds", "gauge", "Since when no decision succeeds, 0 if one does."
        )
        yield f"voda_scheduler_fenced_since_seconds {self._fenced_since_s:.3f}"
        yield from _head("voda_scheduler_round_seconds", "summary", "Time of the rounds.")
        yield f"voda_scheduler_round_seconds_sum {self._rounds_s:.6f}"
        yield f"voda_scheduler_round_seconds_count {self._rounds}"


_DECIDING: Final = (DecisionKind.FULL, DecisionKind.WAITING, DecisionKind.FENCED)


def _head(name: str, kind: str, words: str) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"
