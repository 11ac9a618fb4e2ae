"""Report rows: what a job says about its training, one row per epoch and per N steps.

`Meter` adds up on every rank between two rows; `make_row` turns the ranks' sums into the row (schema in
workloads/README.md); `append` writes it as a line of JSON. Rank 0 also sends it to the driver.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Union

    import torch

    Number = Union[float, torch.Tensor]

Row = dict[str, object]
REPORTS = "reports.jsonl"
#: Metrics of a row in the order in which they are worth showing.
METRICS = ("accuracy", "validation_loss", "loss")


@dataclass(frozen=True)
class Step:
    """One step, as one rank saw it.

    Attributes:
        samples: samples of all ranks.
        own_samples: samples of this rank.
        loss: mean over this rank's samples, as the script gave it; a tensor is not read before a row is made, so
            that the GPU need not be waited for.
        wall_s: from begin to end.
        communication_s: the part of it in gradient exchanges.
        noise: the gradient's square and variance, where they were measured.
    """

    samples: int
    own_samples: float
    loss: Number | None
    wall_s: float
    communication_s: float
    noise: tuple[float, float] | None


class Meter:
    """Sums over the steps of one rank since the last row of one kind."""

    def __init__(self) -> None:
        self.steps = 0
        self._samples = 0
        self._wall_s = 0.0
        self._communication_s = 0.0
        self._loss: Number = 0.0  # loss times samples; stays a tensor where the losses are
        self._counted = 0.0  # samples with a loss
        self._noises = 0
        self._square = 0.0
        self._variance = 0.0

    def add(self, step: Step) -> None:
        """Take one step."""
        self.steps += 1
        self._samples += step.samples
        self._wall_s += step.wall_s
        self._communication_s += step.communication_s
        if step.loss is not None and step.own_samples > 0:  # a stand-in's loss may not be finite
            self._loss = self._loss + step.loss * step.own_samples
            self._counted += step.own_samples
        if step.noise is not None:
            self._noises += 1
            self._square += step.noise[0]
            self._variance += step.noise[1]

    def sums(self) -> list[float]:
        """This rank's contribution: loss times samples, those samples, seconds of compute, of communication, and 1."""
        compute_s = max(0.0, self._wall_s - self._communication_s)
        return [float(self._loss), self._counted, compute_s, self._communication_s, 1.0]

    def batch(self) -> float | None:
        """Mean samples of a step, over all ranks."""
        return self._samples / self.steps if self.steps else None

    def noise(self) -> tuple[float | None, float | None]:
        """Mean square and variance of the gradient over the steps in which they were measured."""
        if self._noises == 0:
            return None, None
        return self._square / self._noises, self._variance / self._noises


@dataclass(frozen=True)
class Moment:
    """Where the job is when a row is made; the same on all ranks but for the time."""

    kind: str
    time_s: float
    segment: int
    epoch: int
    step: int
    samples: int
    world_size: int
    learning_rate: float
    gradient_bytes: int = 0


def make_row(moment: Moment, meter: Meter, sums: Sequence[float], metrics: Mapping[str, float]) -> Row:
    """The row for the steps since the last one.

    Args:
        moment: where the job is.
        meter: of any rank, for what is equal on all.
        sums: the ranks' `Meter.sums`, added up.
        metrics: the script's own figures; `validation_loss` gets a column of its own.

    Returns:
        Plain values, no number that JSON does not have.
    """
    weighted, samples, compute_s, communication_s, ranks = sums
    square, variance = meter.noise()
    others = {name: _number(value) for name, value in sorted(metrics.items()) if name != "validation_loss"}
    return {
        "kind": moment.kind,
        "time_s": moment.time_s,
        "segment": moment.segment,
        "epoch": moment.epoch,
        "step": moment.step,
        "samples": moment.samples,
        "world_size": moment.world_size,
        "steps": meter.steps,
        "batch": meter.batch(),
        "loss": _number(weighted / samples if samples else None),
        "validation_loss": _number(metrics.get("validation_loss")),
        "learning_rate": moment.learning_rate,
        "compute_s": compute_s / ranks,
        "communication_s": communication_s / ranks,
        "gradient_bytes": moment.gradient_bytes,
        "gradient_square": _number(square),
        "gradient_variance": _number(variance),
        "metrics": others,
    }


def last_metric(rows: Sequence[Mapping[str, Any]]) -> tuple[str, float | None]:
    """The most telling metric that was reported, and its last value; of no name where there is none."""
    for name in METRICS:
        for row in reversed(rows):
            value = figure(row, name)
            if value is not None:
                return name, value
    return "", None


def figure(row: Mapping[str, Any], name: str) -> float | None:
    """A finite number in a report row: one of its own columns, or one of the script's metrics.

    >>> figure({"loss": 0.5, "metrics": {"accuracy": 0.9}}, "accuracy")
    0.9
    """
    value = row.get(name, (row.get("metrics") or {}).get(name))
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def append(path: Path, row: Row) -> None:
    """Add `row` to a file of JSON lines, in one write, so that a reader never sees half of an earlier line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(row, separators=(",", ":"), allow_nan=False) + "\n"
    number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(number, line.encode())
    finally:
        os.close(number)


def _number(value: float | None) -> float | None:
    """JSON has neither NaN nor infinity: such a figure is reported as missing."""
    return float(value) if value is not None and math.isfinite(value) else None
