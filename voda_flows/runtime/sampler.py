"""Which samples each rank takes at each step, so that an epoch visits every sample once, whatever the resizes.

All ranks walk one permutation of the epoch together. The only state is the joint position: how many samples of it
the job has consumed, counted at commits. A step takes the next `batch * size` of them and deals them to the ranks,
so a new world size merely cuts what is left of the same permutation differently.

In: number of samples, batch per rank, seed. Out: lists of indices, the weight of this rank's share in the step.
`session_exchange` weighs gradients with it; `state` keeps the position in commits and checkpoints.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch


@dataclass(frozen=True)
class Share:
    """One rank's part of one step.

    Attributes:
        start: first place in the epoch's permutation.
        count: number of samples of this rank; 0 when fewer samples are left than there are ranks.
        total: number of samples of the step, over all ranks.
    """

    start: int
    count: int
    total: int

    @property
    def weight(self) -> float:
        """Fraction of the step's samples that are this rank's."""
        return self.count / self.total if self.total else 0.0


def share(position: int, num_samples: int, batch: int, rank: int, size: int) -> Share:
    """The samples of `rank` in the step that begins at `position`.

    A full step gives each rank `batch` samples. The last step of an epoch deals what is left as evenly as it goes,
    lower ranks first, so that all ranks make the same number of steps and nothing is padded or dropped.
    """
    total = max(0, min(batch * size, num_samples - position))
    each, over = divmod(total, size)
    return Share(position + rank * each + min(rank, over), each + (rank < over), total)


class Sampler:
    """Deals the samples of an epoch to the ranks: iterate over it for lists of indices, one list a step.

    Use it directly (`for indices in sampler`) or as `DataLoader(dataset, batch_sampler=sampler)`: the position moves
    at `session.commit`, not when a list is dealt, so a loader that reads ahead does no harm. One commit per list.

    A rank with no sample left in the last step gets one stand-in, so that its model sees a batch of the usual shape;
    its weight is 0 and its gradient is not used.
    """

    def __init__(self, num_samples: int, batch: int, *, seed: int = 0, shuffle: bool = True) -> None:
        """Describe the epoch.

        Args:
            num_samples: samples in an epoch, at least 1.
            batch: samples per rank and step, at least 1.
            seed: permutations are drawn from (seed, epoch) and nothing else.
            shuffle: False walks the samples in their own order.

        Raises:
            ValueError: an argument is out of range.
        """
        if num_samples < 1 or batch < 1:
            message = f"sampler: expected num_samples >= 1 and batch >= 1, got {num_samples} and {batch}"
            raise ValueError(message)
        self.num_samples = num_samples
        self.batch = batch
        self.seed = seed
        self.shuffle = shuffle
        self.epoch = 0
        self.position = 0
        self._rank = 0
        self._size = 1
        self._order: tuple[tuple[int, int], torch.Tensor] | None = None  # by (seed, epoch)

    def prepare(self, epoch: int) -> None:
        """Draw an epoch's permutation ahead: a rank that waits to join has the time, later all ranks wait for it."""
        if self.shuffle:
            self._order = (self.seed, epoch), _permutation(self.num_samples, self.seed, epoch)

    def place(self, rank: int, size: int) -> None:
        """Deal for this rank of a world of `size` from now on."""
        self._rank = rank
        self._size = size

    def start(self, epoch: int) -> None:
        """Begin `epoch` at its first sample."""
        self.epoch = epoch
        self.position = 0

    def advance(self) -> int:
        """Count the current step as consumed.

        Returns:
            The samples it took, over all ranks.
        """
        total = self.current().total
        self.position += total
        return total

    def current(self) -> Share:
        """This rank's share of the step that is being made (the first one not yet committed)."""
        return share(self.position, self.num_samples, self.batch, self._rank, self._size)

    def __iter__(self) -> Iterator[list[int]]:
        position = self.position
        while position < self.num_samples:
            part = share(position, self.num_samples, self.batch, self._rank, self._size)
            yield self._indices(part)
            position += part.total

    def __len__(self) -> int:
        """Steps left in the epoch at the present world size."""
        step = self.batch * self._size
        return (max(0, self.num_samples - self.position) + step - 1) // step

    def state_dict(self) -> dict[str, object]:
        """What a commit and a checkpoint keep."""
        return {"epoch": self.epoch, "position": self.position, "seed": self.seed, "num_samples": self.num_samples}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Go on from what `state_dict` gave.

        Raises:
            ValueError: it is of another data set; its position would mean other samples here.
        """
        if state["num_samples"] != self.num_samples:
            message = (
                f"sampler: the checkpoint is of {state['num_samples']} samples, this data set has {self.num_samples};"
                " resume with the data set it was made with, or start a new job"
            )
            raise ValueError(message)
        self.seed = int(str(state["seed"]))
        self.epoch = int(str(state["epoch"]))
        self.position = int(str(state["position"]))

    def _indices(self, part: Share) -> list[int]:
        places = slice(part.start, part.start + max(1, part.count))
        if part.count == 0:
            places = slice(part.start - 1, part.start)  # the stand-in; `total` is at least 1 here
        if not self.shuffle:
            return list(range(self.num_samples)[places])
        if self._order is None or self._order[0] != (self.seed, self.epoch):
            self.prepare(self.epoch)
        assert self._order is not None, "just prepared"
        indices: list[int] = self._order[1][places].tolist()
        return indices


def _permutation(num_samples: int, seed: int, epoch: int) -> torch.Tensor:
    import torch

    digest = hashlib.sha256(f"{seed}:{epoch}".encode()).digest()
    generator = torch.Generator()
    generator.manual_seed(int.from_bytes(digest[:8], "big") >> 1)  # it takes signed 64 bits
    return torch.randperm(num_samples, generator=generator)
