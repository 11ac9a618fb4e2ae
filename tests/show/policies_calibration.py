"""Area policies, the model of communication against steps that others measured on one node and on several.

Fitted for each application are only what its bytes cost over the links; the form is that of ``hierarchical_s``.
"""

from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar, nnls

from scheduler_core.model.communication import Link, Shape, hierarchical_s, slow_down
from tests.quality.shape import ROOT
from tests.show.registry import Row, figure, information

DATA = ROOT.parent / "shared" / "data"
APPLICATIONS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")


@figure(area="policies")
def calibration_pollux(quick: bool) -> Iterator[Row]:
    """Synchronisation on 4-GPU nodes (AWS g4dn): seconds of bytes inside a node, between nodes, and latencies."""
    for application in APPLICATIONS:
        with Path(DATA, "pollux", application, "placements.csv").open(encoding="utf-8") as lines:
            rows = [row for row in csv.DictReader(lines) if row["placement"] != "1"]
        placed = [[int(gpus) for gpus in row["placement"]] for row in rows]
        stages = np.array([_stages(gpus) for gpus in placed])  # (num_rows, 4)
        measured_s = np.array([float(row["sync_time"]) for row in rows])
        step_s = np.array([float(row["step_time"]) for row in rows])
        weights, _ = nnls(stages, measured_s)
        error_s = np.abs(stages @ weights - measured_s)
        of_it, of_step = 100 * np.median(error_s / measured_s), 100 * np.median(error_s / step_s)
        yield information(
            f"{application}: error of communication time, {len(rows)} measured rows",
            f"median {of_it:.0f} % of it, {of_step:.1f} % of a step",
        )


def _stages(gpus: list[int]) -> tuple[float, float, float, float]:
    """What one byte-second and one latency count inside a node and between nodes."""
    inside, between = max(gpus), len(gpus)
    return 2 * (inside - 1) / inside, 2 * (between - 1) / between, 2.0 * (inside - 1), 2.0 * (between - 1)


def _relative(network_s: float, gpus: int, nodes: int) -> float:
    """Speed on several nodes over that on one, with so many seconds of bytes between nodes for a step of one second."""
    links = (Link(bytes_per_s=1e9), Link(bytes_per_s=1.0))
    return 1 / slow_down(1.0, hierarchical_s(network_s, Shape(ranks=gpus, fanouts=(-(-gpus // nodes), nodes)), links))


def _errors(measured: list[tuple[int, int, float]]) -> Iterable[float]:
    """Errors of relative speed after one number was fitted: (GPUs, nodes, speed over that on one node)."""

    def squares(network_s: float) -> float:
        return sum((_relative(network_s, gpus, nodes) - speed) ** 2 for gpus, nodes, speed in measured)

    fitted = float(minimize_scalar(squares, bounds=(0.0, 50.0), method="bounded").x)
    return [abs(_relative(fitted, gpus, nodes) - speed) for gpus, nodes, speed in measured]


@figure(area="policies")
def calibration_chronus(quick: bool) -> Iterator[Row]:
    """Speed on 2 and 4 nodes relative to one."""
    models = json.loads(Path(DATA, "chronus", "model_info.json").read_text(encoding="utf-8"))
    for model, by_gpus in models.items():
        measured = [
            (int(gpus), int(nodes), float(speed))
            for gpus, by_nodes in by_gpus.items()
            for nodes, speed in by_nodes.items()
            if int(nodes) > 1
        ]
        errors = list(_errors(measured))
        yield information(
            f"{model}: error of relative speed, {len(errors)} measured placements",
            f"mean {statistics.mean(errors):.3f}, most {max(errors):.3f} (1 = speed on one node)",
        )


@figure(area="policies")
def calibration_gavel(quick: bool) -> Iterator[Row]:
    """Speed with every GPU on a node of its own relative to all on one, by GPU type; one number fitted a model."""
    table = json.loads(Path(DATA, "gavel", "simulation_throughputs.json").read_text(encoding="utf-8"))
    for kind in ("k80", "p100", "v100"):
        by_model: dict[str, list[tuple[int, int, float]]] = {}
        for key, alone in table[f"{kind}_unconsolidated"].items():
            model, gpus = key.strip("()").rsplit(", ", 1)
            near = table[kind].get(key, {}).get("null", 0.0)
            if int(gpus) > 1 and near and alone.get("null"):
                by_model.setdefault(model, []).append((int(gpus), int(gpus), alone["null"] / near))
        errors = [error for measured in by_model.values() for error in _errors(measured)]
        yield information(
            f"{kind}, {len(by_model)} models: error of relative speed, {len(errors)} measured placements",
            f"median {statistics.median(errors):.3f}, mean {statistics.mean(errors):.3f} (1 = speed on one node)",
        )
