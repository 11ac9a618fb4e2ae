"""How fast a job goes where it stands: the one thing in which simulated clusters differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Protocol

from scheduler_core.errors import InvalidValue
from scheduler_core.model.job import JobSpec


class Physics(Protocol):
    """A model of speed."""

    def samples_per_s(self, spec: JobSpec, gpus_by_node: Mapping[str, int]) -> float:
        """Speed of a job on these nodes, samples/s; 0 without GPUs."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Speed by number of GPUs, one curve for each category; where the GPUs are does not matter.

    Attributes:
        points_by_category: For each category, speeds in samples/s by GPUs, with one for 1 GPU. Between two points the
            curve is straight, behind the last it is flat.
    """

    points_by_category: Mapping[str, Mapping[int, float]]

    def __post_init__(self) -> None:
        """Check the curves once, here at the edge."""
        for category, points in self.points_by_category.items():
            if min(points, default=0) != 1 or not all(0 < speed < float("inf") for speed in points.values()):
                raise InvalidValue(f"curve {category!r}: expected speeds > 0 from 1 GPU on, got {dict(points)}")

    def samples_per_s(self, spec: JobSpec, gpus_by_node: Mapping[str, int]) -> float:
        """Speed, samples/s.

        Raises:
            InvalidValue: There is no curve for the job's category.
        """
        points = self.points_by_category.get(spec.category)
        if points is None:
            raise InvalidValue(
                f"job {spec.id!r}: expected a category of {sorted(self.points_by_category)}, got {spec.category!r}"
            )
        gpus = sum(gpus_by_node.values())
        if not gpus:
            return 0.0
        for low, high in pairwise(sorted(points)):
            if gpus <= high:
                return points[low] + (points[high] - points[low]) * (gpus - low) / (high - low)
        return points[max(points)]


#: Speedup over one GPU at 1 to 4 GPUs of Voda's four applications, as in the plots of its thesis.
VODA_SPEEDUPS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "InceptionV3": (1.0, 1.842, 2.692, 3.5),
        "ResNet50": (1.0, 1.857, 2.6, 3.25),
        "VGG16": (1.0, 1.785, 2.5, 3.125),
        "Transformer": (1.0, 1.657, 2.148, 2.521),
    }
)


def voda_curves() -> Curves:
    """Voda's four applications; a sample is a second's work of one GPU."""
    points = {category: dict(enumerate(speedups, start=1)) for category, speedups in VODA_SPEEDUPS.items()}
    return Curves(points_by_category=points)


def speed_table(physics: Physics, spec: JobSpec) -> tuple[float, ...]:
    """Speeds on one node that is large enough, shape (max_gpus + 1,), samples/s: what a scheduler would learn."""
    return (0.0, *(physics.samples_per_s(spec, {"": gpus}) for gpus in range(1, spec.max_gpus + 1)))
