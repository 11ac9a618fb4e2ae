"""Measured applications of the artifact of Pollux (OSDI'21): step time by placement, efficiency by batch size.

In: the text of its tables. Out: how fast a job makes progress. Rules of the artifact's simulator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from math import ceil

import numpy as np
import numpy.typing as npt
from scipy.interpolate import LinearNDInterpolator

from scheduler_core.simulate.traces.table import numbers, rows

#: Epochs that each application trains in the artifact.
EPOCHS: Mapping[str, int] = {
    "bert": 2,
    "cifar10": 100,
    "deepspeech2": 80,
    "imagenet": 90,
    "ncf": 10,
    "yolov3": 50,
}
_MOST_LOCAL = {"yolov3": 8}
_MOST_NODES = 16
_PLACEMENTS = ("placement", "local_bsz", "step_time", "sync_time")
_SCALABILITY = ("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")
_VALIDATION = ("progress", "iteration", "metric", "grad_sqr", "grad_var")

Floats = npt.NDArray[np.float64]


class Application:
    """One application.

    Args:
        name: Its name in ``EPOCHS``.
        texts: Text of each of its tables, by file name.

    Attributes:
        batch_sizes: Batch sizes with a validation table, ascending, shape (num_batch_sizes,).
        boundaries: Progress at the end of each epoch, shape (epochs,).
    """

    def __init__(self, name: str, texts: Mapping[str, str]) -> None:
        self.name = name
        self.epochs = EPOCHS[name]
        self._placed: dict[str, list[tuple[float, ...]]] = defaultdict(list)
        for line, fields in rows(texts["placements.csv"], _PLACEMENTS, name=f"{name}/placements.csv"):
            self._placed[fields[0]].append(numbers(fields[1:], name=f"{name}/placements.csv", line=line))
        self._scaled = _table(texts["scalability.csv"], _SCALABILITY, f"{name}/scalability.csv")
        files = {int(file[11:-4]): file for file in texts if file.startswith("validation-")}
        self.batch_sizes = np.array(sorted(files), dtype=np.float64)
        tables = [_table(texts[files[size]], _VALIDATION, f"{name}/{files[size]}") for size in sorted(files)]
        kept = np.stack([table[: self.epochs] for table in tables])  # (num_batch_sizes, epochs, 5)
        self.boundaries: Floats = kept[:, :, 0].min(axis=0)
        self._iterations = kept[:, :, 1]
        self._sqr, self._var = kept[:, :, 3], kept[:, :, 4]
        local = [row[0] for placed in self._placed.values() for row in placed]
        self.min_local = int(min(local))
        self.max_local = _MOST_LOCAL.get(name, int(max(local)))
        self._times: dict[tuple[tuple[int, ...], int], tuple[float, float]] = {}

    def split(self, batch_size: int, gpus: int) -> tuple[int, int]:
        """How a batch is divided.

        Returns:
            Samples of one pass on one GPU, and passes without synchronisation before the one with.
        """
        return self._split(batch_size, gpus, accumulates=gpus == 1 and batch_size > self.batch_sizes[0])

    def foreseen_s(self, batch_size: int, gpus: int) -> float:
        """Seconds of an iteration on nodes filled by fours, as Optimus foresees them: one GPU always accumulates."""
        atomic, accumulation = self._split(batch_size, gpus, accumulates=gpus == 1)
        full, rest = divmod(gpus, 4)
        step_s, sync_s = self.times_s((4,) * full + (rest,) * bool(rest), atomic)
        return step_s + accumulation * (step_s - sync_s)

    def remaining_iterations(self, batch_size: int, epoch: int) -> float:
        """Iterations from the row of the current epoch to the last; 1 in the last epoch."""
        if epoch == self.epochs - 1:
            return 1.0
        left = self._iterations[:, -1] - self._iterations[:, epoch]
        return float(np.interp(batch_size, self.batch_sizes, left))

    def _split(self, batch_size: int, gpus: int, *, accumulates: bool) -> tuple[int, int]:
        local = ceil(batch_size / gpus)
        accumulation = max(int(accumulates), ceil(local / self.max_local) - 1)
        atomic = ceil(local / (accumulation + 1))
        return min(atomic, int(self.batch_sizes[-1]) // (gpus * (accumulation + 1))), accumulation

    def progress_per_s(self, placement: tuple[int, ...], split: tuple[int, int], epoch: int) -> float:
        """Progress in a second: steps at the smallest batch size that would do as much.

        Args:
            placement: Workers on each node.
            split: See ``split``.
            epoch: The current one, from 0.
        """
        atomic, accumulation = split
        batch_size = sum(placement) * atomic * (accumulation + 1)
        scale = batch_size / self.batch_sizes[0]
        sqr = float(np.interp(batch_size, self.batch_sizes, self._sqr[:, epoch]))
        var = float(np.interp(batch_size, self.batch_sizes, self._var[:, epoch]))
        gain = (var + sqr) / (var / scale + sqr)
        step_s, sync_s = self.times_s(placement, atomic)
        return float(gain / (step_s + accumulation * (step_s - sync_s)))

    def times_s(self, placement: tuple[int, ...], atomic: int) -> tuple[float, float]:
        """Seconds of a step, and of the synchronisation in it."""
        key = (min(placement[turn:] + placement[:turn] for turn in range(len(placement))), atomic)
        if key not in self._times:
            self._times[key] = self._measured(*key)
        return self._times[key]

    def _measured(self, placement: tuple[int, ...], atomic: int) -> tuple[float, float]:
        placed = self._placed.get("".join(map(str, placement)))
        if placed:
            local, step_s, sync_s = np.array(sorted(placed)).T
            return float(np.interp(atomic, local, step_s)), float(np.interp(atomic, local, sync_s))
        step_s, sync_s = self._between([min(len(placement), _MOST_NODES), sum(placement), atomic])[0]
        return float(step_s), float(sync_s)

    @cached_property
    def _between(self) -> LinearNDInterpolator:
        """Times by (nodes, replicas, local batch): placements averaged by these three, and scalability."""
        groups: dict[tuple[float, ...], list[tuple[float, ...]]] = defaultdict(list)
        for placement, placed in self._placed.items():
            for local, *times_s in placed:
                groups[len(placement), sum(map(int, placement)), local].append(tuple(times_s))
        means = np.array([[*key, *np.mean(groups[key], axis=0)] for key in sorted(groups)])
        points = np.concatenate([means, self._scaled])
        return LinearNDInterpolator(points[:, :3], points[:, 3:])


def _table(text: str, header: tuple[str, ...], name: str) -> Floats:
    """A table of numbers, shape (num_rows, num_columns)."""
    return np.array([numbers(fields, name=name, line=line) for line, fields in rows(text, header, name=name)])
