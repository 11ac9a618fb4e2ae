"""What the driver tells the world outside: status, report rows, metrics; written by its loop, read by HTTP threads."""

from __future__ import annotations

import threading
from typing import Any

Row = dict[str, Any]

_GAUGES = (
    ("voda_job_step", "step", "Steps made."),
    ("voda_job_epoch", "epoch", "Epochs done."),
    ("voda_job_world_size", "world_size", "Ranks that train."),
    ("voda_job_samples_per_second", "samples_per_s", "Speed of training."),
    ("voda_job_generation", "generation", "Generation of the allocation document that is in effect."),
)


class Board:
    """The notice board; every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._status: dict[str, Any] = {}
        self._rows: list[Row] = []

    def publish(self, status: dict[str, Any]) -> None:
        """Replace the status; the caller does not change it any more."""
        with self._lock:
            self._status = status

    def add_row(self, row: Row) -> None:
        """Add a report row."""
        with self._lock:
            self._rows.append(row)

    def status(self) -> dict[str, Any]:
        """``GET /status``."""
        with self._lock:
            return {**self._status, "rows": len(self._rows)}

    def reports(self, since: int) -> dict[str, Any]:
        """``GET /reports``: rows from number ``since`` on, and the number to ask for next."""
        with self._lock:
            return {"next": len(self._rows), "rows": self._rows[max(since, 0) :]}

    def metrics(self) -> str:
        """``GET /metrics``: Prometheus text."""
        status = self.status()
        lines: list[str] = []
        for name, key, meaning in _GAUGES:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", f"{name} {status.get(key) or 0}"]
        restarts = sum(worker["restarts"] for worker in status.get("workers", {}).values())
        lines += _counter("voda_job_rank_restarts_total", "Ranks started again in place.", {"": restarts})
        resizes = status.get("resizes", [])
        by_kind = {f'{{kind="{kind}"}}': sum(resize["kind"] == kind for resize in resizes)
                   for kind in sorted({resize["kind"] for resize in resizes})}  # fmt: skip
        lines += _counter("voda_job_resizes_total", "Changes of the world.", by_kind)
        still_s = sum(resize["still_s"] or 0.0 for resize in resizes)
        lines += _counter("voda_job_standing_still_seconds_total", "Time lost to resizes.", {"": round(still_s, 6)})
        return "\n".join(lines) + "\n"


def _counter(name: str, meaning: str, value_by_labels: dict[str, float]) -> list[str]:
    values = [f"{name}{labels} {value}" for labels, value in value_by_labels.items()]
    return [f"# HELP {name} {meaning}", f"# TYPE {name} counter", *values]
