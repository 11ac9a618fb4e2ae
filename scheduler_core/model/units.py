"""Quantities with a unit: what a pod asks for and what a node has left.

A bare GPU count is not enough for what the model must be able to say later (parameter servers ask for CPU and
memory only), so a request is always a ``Resources``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Resources:
    """An amount of each resource; also a difference, so values may be negative.

    Attributes:
        gpus: GPUs (slots of a node).
        cpu_milli: Thousandths of a CPU core.
        memory_bytes: Bytes of memory.
    """

    gpus: int = 0
    cpu_milli: int = 0
    memory_bytes: int = 0

    def __add__(self, other: Resources) -> Resources:
        """The sum, resource by resource."""
        return Resources(
            gpus=self.gpus + other.gpus,
            cpu_milli=self.cpu_milli + other.cpu_milli,
            memory_bytes=self.memory_bytes + other.memory_bytes,
        )

    def __sub__(self, other: Resources) -> Resources:
        """The difference, resource by resource."""
        return self + other * -1

    def __mul__(self, count: int) -> Resources:
        """``count`` times as much of everything."""
        return Resources(
            gpus=self.gpus * count, cpu_milli=self.cpu_milli * count, memory_bytes=self.memory_bytes * count
        )

    def fits_in(self, free: Resources) -> bool:
        """Whether ``free`` has at least this much of everything."""
        left = free - self
        return min(left.gpus, left.cpu_milli, left.memory_bytes) >= 0


def in_words(gpus: int) -> str:
    """A count of GPUs in words: ``1 GPU``, ``2 GPUs``."""
    return f"{gpus} GPU" if gpus == 1 else f"{gpus} GPUs"
