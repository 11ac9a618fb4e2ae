"""Everything of a training job that must survive: what commits copy, checkpoints store and newcomers receive.

A `State` names the script's own objects; it does not own them. Two laws hold it together (tests/unit/runtime):
applying what was captured changes nothing, and a restored state is the one of the last `save`.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Protocol, cast

from voda_flows.runtime import packing

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from voda_flows.runtime.sampler import Sampler

PLAIN = (bool, int, float, str, bytes, type(None))


class Stateful(Protocol):
    """A learning-rate schedule, a gradient scaler, a moving average, ..."""

    def state_dict(self) -> dict[str, object]:
        """What must be kept."""

    def load_state_dict(self, state: dict[str, object], /) -> object:
        """Go on from it."""


class State:
    """The state of an elastic training job.

    Attributes:
        model, optimizer, sampler, schedule: the script's own objects (the last two may be missing).
        extra: other things to keep, by name: objects with `state_dict` and `load_state_dict`, or plain values
            (numbers, strings, tensors, lists and dicts of them), which are read and set as `state.extra["best"]`.
        epoch: the epoch that is being trained, from 0.
        step: steps of the job so far.
        samples: samples of the job so far, over all ranks.
        commits: commits so far; -1 in a rank that has no state yet.
    """

    def __init__(
        self,
        *,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        sampler: Sampler | None = None,
        schedule: Stateful | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.sampler = sampler
        self.schedule = schedule
        self.extra: dict[str, object] = dict(extra or {})
        self.epoch = 0
        self.step = 0
        self.samples = 0
        self.commits = -1
        for name, value in self.extra.items():
            if not _is_stateful(value):
                _check_plain(f"extra[{name!r}]", value)
        self._saved: tuple[object, list[torch.Tensor]] | None = None
        self._saved_random: dict[str, object] = {}

    def capture(self) -> dict[str, object]:
        """The whole state as a tree of plain values and tensors; the tensors are the live ones."""
        values = {name: value for name, value in self.extra.items() if not _is_stateful(value)}
        return {
            "parts": {name: part.state_dict() for name, part in self._parts().items()},
            "values": values,
            "epoch": self.epoch,
            "step": self.step,
            "samples": self.samples,
            "commits": self.commits,
        }

    def apply(self, tree: Mapping[str, object]) -> None:
        """Become the state of `tree` (from `capture`, here or elsewhere).

        Raises:
            ValueError: it does not have the same parts.
        """
        stored = cast("dict[str, dict[str, object]]", tree["parts"])
        parts = self._parts()
        if stored.keys() != parts.keys():
            message = (
                f"state: the stored state has the parts {sorted(stored)}, the script's has {sorted(parts)};"
                " a job is resumed by the script that began it"
            )
            raise ValueError(message)
        for name, part in parts.items():
            part.load_state_dict(stored[name])
        self.extra.update(cast("dict[str, object]", tree["values"]))
        self.epoch, self.step, self.samples, self.commits = (
            int(cast("int", tree[name])) for name in ("epoch", "step", "samples", "commits")
        )

    def save(self) -> None:
        """Copy the state in memory, into buffers that are made once."""
        skeleton, tensors = packing.pack(self.capture())
        old = self._saved
        if old is not None and _same_shapes(old[1], tensors):
            for buffer, tensor in zip(old[1], tensors):
                buffer.copy_(tensor)
            self._saved = (skeleton, old[1])
        else:
            self._saved = (skeleton, [tensor.clone() for tensor in tensors])
        self._saved_random = capture_random()

    def restore(self) -> None:
        """Go back to the last `save`; what never was saved has no state from then on."""
        if self._saved is None:
            self.commits = -1
            return
        skeleton, buffers = self._saved
        # Clones: an optimizer keeps the very tensors that it is given, and the next save would write into its own.
        self.apply(cast("dict[str, object]", packing.unpack(skeleton, [buffer.clone() for buffer in buffers])))
        apply_random(self._saved_random)

    def next_epoch(self) -> None:
        """Go on to the first sample of the next epoch."""
        self.epoch += 1
        if self.sampler is not None:
            self.sampler.start(self.epoch)

    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """All optimizers of the state, those in `extra` too, by name."""
        import torch

        others = {name: value for name, value in self.extra.items() if isinstance(value, torch.optim.Optimizer)}
        return {"optimizer": self.optimizer, **others}

    def _parts(self) -> dict[str, Stateful]:
        parts: dict[str, object] = {"model": self.model, "optimizer": self.optimizer}
        if self.sampler is not None:
            parts["sampler"] = self.sampler
        if self.schedule is not None:
            parts["schedule"] = self.schedule
        parts.update({f"extra.{name}": value for name, value in self.extra.items() if _is_stateful(value)})
        return cast("dict[str, Stateful]", parts)


def capture_random() -> dict[str, object]:
    """The states of this process's random number generators: Python, torch (CPU, CUDA), NumPy where it is loaded."""
    import torch

    streams: dict[str, object] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if torch.cuda.is_initialized():
        streams["cuda"] = torch.cuda.get_rng_state()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        name, keys, *rest = numpy.random.get_state()  # the global stream is what scripts use
        streams["numpy"] = (name, keys.tolist(), *rest)
    return streams


def apply_random(streams: Mapping[str, object]) -> None:
    """Set the generators as `capture_random` found them; one that was not there is left alone."""
    import torch

    random.setstate(cast("tuple[object, ...]", streams["python"]))
    torch.set_rng_state(cast("torch.Tensor", streams["torch"]))
    if "cuda" in streams and torch.cuda.is_available():
        torch.cuda.set_rng_state(cast("torch.Tensor", streams["cuda"]))
    numpy = sys.modules.get("numpy")
    if "numpy" in streams and numpy is not None:
        numpy.random.set_state(streams["numpy"])


def seed_random(seed: int) -> None:
    """Start all generators anew from `seed` (taken modulo 2^32, which is all that NumPy's takes)."""
    import torch

    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


def _is_stateful(value: object) -> bool:
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


def _same_shapes(buffers: list[torch.Tensor], tensors: list[torch.Tensor]) -> bool:
    if len(buffers) != len(tensors):
        return False
    return all(b.shape == t.shape and b.dtype == t.dtype and b.device == t.device for b, t in zip(buffers, tensors))


def _check_plain(path: str, value: object) -> None:
    import torch

    if isinstance(value, (*PLAIN, torch.Tensor)):
        return
    children: list[tuple[object, object]] = []
    if type(value) is dict:
        children = list(value.items())
    elif type(value) in (list, tuple):
        children = list(enumerate(cast("list[object]", value)))
    else:
        message = (
            f"state {path}: expected a plain value or an object with state_dict and load_state_dict,"
            f" got {type(value).__name__}; give it those two methods, or keep what matters of it as plain values"
        )
        raise TypeError(message)
    for key, child in children:
        _check_plain(f"{path}[{key!r}]", child)
