"""Makes an ordinary optimizer train over all ranks: gradients are averaged just before each of its steps.

The gradients of a rank go out as one buffer per tensor type, weighted with the rank's share of the step's samples,
so their sum is the gradient of the mean loss over all samples of the step, however unevenly they were dealt
(loss must be a mean over the rank's own samples, PyTorch's default).
The same buffer carries the flags by which all ranks leave at one step: a rank that is told to stop, or that the
world changes, adds 1 to a field, and every rank reads the same sum. Stopping and resizing cost no message of theirs.

The learning rate is scaled with the world size only while the optimizer steps: schedules, commits and checkpoints
see the rate of one rank, so a resize changes nothing in them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch
    from torch.utils.hooks import RemovableHandle

    from voda_flows.runtime.session_link import Link
    from voda_flows.runtime.session_options import Options
    from voda_flows.runtime.session_world import World

# Fields behind the gradients in the first buffer.
STOP, RESET, SQUARE = range(3)
NUM_FIELDS = 3


@dataclass
class Flags:
    """What all ranks agreed on in the last exchange; stays until the world is left."""

    stop: bool = False
    reset: bool = False


def noise(big_square: float, small_square: float, samples: int, size: int) -> tuple[float, float]:
    """Unbiased estimates of the gradient's square and of its variance over samples, from one step.

    With |g_small|^2 the mean square over the ranks' own gradients (b samples each) and |g_big|^2 that of their mean
    (B samples): square = (B |g_big|^2 - b |g_small|^2) / (B - b), variance = (|g_small|^2 - |g_big|^2) / (1/b - 1/B)
    (McCandlish et al. 2018, arXiv:1812.06162, appendix A.1). Single values may be negative; their means count.

    Args:
        big_square: |g_big|^2.
        small_square: |g_small|^2.
        samples: B, dealt evenly to
        size: this many ranks, at least 2.
    """
    small = samples / size
    square = (samples * big_square - small * small_square) / (samples - small)
    return square, (small_square - big_square) / (1.0 / small - 1.0 / samples)


class Exchange:
    """The gradient exchange of one process.

    Attributes:
        flags: what the ranks agreed on.
        inside: whether a step of the optimizer is going on (a rank that fails in it loses that step).
    """

    def __init__(self, world: World, link: Link, options: Options) -> None:
        self.flags = Flags()
        self.inside = False
        self._communication_s = 0.0
        self._noise: tuple[float, float] | None = None
        self._world = world
        self._link = link
        self._options = options
        self._buffers: dict[str, torch.Tensor] = {}
        self._rates: list[float] = []
        self._hooks: list[RemovableHandle] = []
        self._averaged: set[str] = set()  # optimizers whose gradients are averaged already
        self._shares: dict[str, tuple[torch.optim.Optimizer, Callable[[], tuple[float, int]]]] = {}

    def attach(self, optimizer: torch.optim.Optimizer, share: Callable[[], tuple[float, int]], name: str) -> None:
        """Average gradients before every step of `optimizer` from now on.

        Args:
            optimizer: any; it stays the script's own.
            share: gives this rank's weight in the step, and the step's samples over all ranks (0: not known).
            name: distinguishes optimizers; the same in all ranks.
        """
        self._shares[name] = (optimizer, share)
        self._hooks.append(optimizer.register_step_pre_hook(lambda *_: self._before(name)))
        self._hooks.append(optimizer.register_step_post_hook(lambda *_: self._after(optimizer)))

    def detach(self) -> None:
        """Give all optimizers back as they were: a script may train again, in a session of its own."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def average(self, name: str) -> None:
        """Average the gradients of an optimizer now; its next step does not do so again."""
        self.inside = True
        if self._world.size > 1:
            optimizer, share = self._shares[name]
            start = time.perf_counter()
            self._average(_parameters(optimizer), share(), name)
            self._communication_s += time.perf_counter() - start
        self._averaged.add(name)

    def gradient_bytes(self) -> int:
        """Bytes that this rank gives to the exchange in one step, all optimizers together."""
        parameters = [p for optimizer, _ in self._shares.values() for p in _parameters(optimizer)]
        return sum(parameter.numel() * parameter.element_size() for parameter in parameters)

    def renew(self) -> None:
        """A new world begins: nothing of the old one is still agreed on or under way."""
        self.flags = Flags()
        self.inside = False
        self._averaged.clear()
        self._communication_s = 0.0

    def take_communication_s(self) -> float:
        """Seconds spent in exchanges since the last call, waiting for slower ranks included."""
        seconds, self._communication_s = self._communication_s, 0.0
        return seconds

    def take_noise(self) -> tuple[float, float] | None:
        """The gradient's square and variance in this step, where they were measured."""
        measured, self._noise = self._noise, None
        return measured

    def settle(self) -> Flags:
        """The flags that hold at this commit, which ends the step; in a world of one nobody needs to be asked."""
        self.inside = False  # a gradient scaler may have left the optimizer's step out
        if self._world.size == 1:
            self.flags.stop |= self._link.stop.is_set()
            self.flags.reset |= self._link.reset.is_set()
        return self.flags

    def _before(self, name: str) -> None:
        if name not in self._averaged:
            self.average(name)
        self._averaged.discard(name)
        optimizer = self._shares[name][0]
        factor = self._options.lr_factor(self._world.size)
        self._rates = [group["lr"] for group in optimizer.param_groups]
        if factor != 1.0:
            for group in optimizer.param_groups:
                group["lr"] = group["lr"] * factor

    def _after(self, optimizer: torch.optim.Optimizer) -> None:
        for group, rate in zip(optimizer.param_groups, self._rates):
            group["lr"] = rate
        self.inside = False

    def _average(self, parameters: Sequence[torch.nn.Parameter], part: tuple[float, int], name: str) -> None:
        import torch

        with torch.no_grad():
            by_type = _by_type(parameters)
            fields = [float(self._link.stop.is_set()), float(self._link.reset.is_set()), 0.0]
            for number, (key, group) in enumerate(sorted(by_type.items())):
                tail = fields if number == 0 else []
                buffer, views = self._buffer(f"{name}.{key}", group, len(tail))
                self._fill(buffer, views, group, part[0])
                if tail:
                    tail[SQUARE] = self._small_square(buffer, part)
                    buffer[-NUM_FIELDS:] = torch.tensor(tail, dtype=buffer.dtype)
                self._world.add_up(buffer, f"voda.{name}.{key}")
                for parameter, view in zip(group, views):
                    _gradient(parameter).copy_(view)
                if tail:
                    self._agree(buffer, part[1])

    def _buffer(
        self, key: str, parameters: Sequence[torch.nn.Parameter], tail: int
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        import torch

        sizes = [parameter.numel() for parameter in parameters]
        buffer = self._buffers.get(key)
        if buffer is None or buffer.numel() != sum(sizes) + tail:
            buffer = torch.empty(sum(sizes) + tail, dtype=parameters[0].dtype, device=parameters[0].device)
            self._buffers[key] = buffer
        pieces = buffer[: sum(sizes)].split(sizes)
        return buffer, [piece.view_as(parameter) for piece, parameter in zip(pieces, parameters)]

    @staticmethod
    def _fill(
        buffer: torch.Tensor, views: Sequence[torch.Tensor], parameters: Sequence[torch.nn.Parameter], weight: float
    ) -> None:
        if weight == 0.0:  # not a product: the stand-in's gradient may be infinite
            buffer.zero_()
            return
        for parameter, view in zip(parameters, views):
            view.copy_(_gradient(parameter))
        buffer.mul_(weight)

    def _small_square(self, buffer: torch.Tensor, part: tuple[float, int]) -> float:
        if not self._options.measure_gradient or part[0] == 0.0:
            return 0.0
        own = buffer[:-NUM_FIELDS]
        return float(own.dot(own)) / part[0] ** 2 / self._world.size

    def _agree(self, buffer: torch.Tensor, samples: int) -> None:
        fields = buffer[-NUM_FIELDS:].tolist()
        self.flags.stop |= fields[STOP] > 0
        self.flags.reset |= fields[RESET] > 0
        if self._options.measure_gradient and samples and samples % self._world.size == 0:
            mean = buffer[:-NUM_FIELDS]
            self._noise = noise(float(mean.dot(mean)), fields[SQUARE], samples, self._world.size)


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.nn.Parameter]:
    return [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]


def _by_type(parameters: Sequence[torch.nn.Parameter]) -> dict[str, list[torch.nn.Parameter]]:
    by_type: dict[str, list[torch.nn.Parameter]] = {}
    for parameter in parameters:
        by_type.setdefault(str(parameter.dtype), []).append(parameter)
    return by_type


def _gradient(parameter: torch.nn.Parameter) -> torch.Tensor:
    """The parameter's gradient, made where this rank has none: another one may have."""
    import torch

    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad
