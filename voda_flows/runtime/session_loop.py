"""One training process from its first world to its end: the loop underneath `session`.

Joins the world, brings the ranks to one state, runs the script's training function, and on a resize or a crash does
so again in the same process. Between steps `commit` keeps the state, decides with the other ranks whether to leave,
writes checkpoints and rows. Every decision of `commit` is the same on all ranks, because it rests on the step, the
options and the exchanged flags only; where a clock decides, it is rank 0's.
"""

from __future__ import annotations

import os
import time
import traceback
from typing import TYPE_CHECKING

from voda_flows.runtime import reports
from voda_flows.runtime.session_clock import Clock
from voda_flows.runtime.session_exchange import Exchange
from voda_flows.runtime.session_store import Store
from voda_flows.runtime.session_sync import synchronise
from voda_flows.runtime.session_world import Stopped, WorldBroken, WorldChanged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypeVar

    from voda_flows.runtime.reports import Number
    from voda_flows.runtime.session_link import Link
    from voda_flows.runtime.session_options import Options
    from voda_flows.runtime.session_world import World
    from voda_flows.runtime.state import State

    Result = TypeVar("Result")

PROGRESS_S = 0.2
MESSAGE_CHARS = 4000  # the end of a traceback: a line to the agent is at most 64 KiB


class Session:
    """The session of this process.

    Attributes:
        state: the script's.
        world: the ranks; `rank` and `size` are those of the present world.
    """

    def __init__(self, state: State, options: Options, world: World, link: Link) -> None:
        self.state = state
        self.world = world
        self._options = options
        self._link = link
        link.on_broken = world.cut
        self._store = Store.from_environment()
        self._exchange = Exchange(world, link, options)
        for name, optimizer in state.optimizers().items():
            self._exchange.attach(optimizer, self._share, name)
        self._meters = _new_meters()
        self._clock = Clock()
        self._epochs = 0
        self._batch = 0
        self._told_s = 0.0
        self._checkpoint_s = time.monotonic()

    def run(self, train: Callable[[State], Result]) -> Result:
        """Train to the end, through all worlds.

        Returns:
            What `train` returns.

        Raises:
            SystemExit: with 0 when the job was stopped at a checkpoint; nothing after the training is to run then.
        """
        self._link.stop_on_sigterm()
        _step_once()
        if self.state.sampler is not None:
            self.state.sampler.prepare(int(os.environ.get("VODA_EPOCH") or 0))
        try:
            if not self._link.await_join():
                raise Stopped  # noqa: TRY301 - the one way to stop
            result = self._run_worlds(train)
        except Stopped:
            self._end("stopped")
            raise SystemExit(0) from None
        except BaseException:
            self._say_end("failed", traceback.format_exc()[-MESSAGE_CHARS:])
            raise
        finally:
            self._exchange.detach()
        self._end("done")
        return result

    def _run_worlds(self, train: Callable[[State], Result]) -> Result:
        while True:
            try:
                self._enter_world()
                result = train(self.state)
                self._checkpoint(done=True)
                return result
            except WorldChanged:
                self._clock.leave(self.world.size, self.state.step)
            except WorldBroken:
                # The step that was being made when the collective broke is lost too.
                self._clock.leave(self.world.size, self.state.step + self._exchange.inside)
                self.state.restore()
            self.world.leave()

    def _enter_world(self) -> None:
        self.world.join()
        synchronise(self.world, self.state, lambda: self._store.load(self.state), self._options.seed)
        if self.state.sampler is not None:
            self.state.sampler.place(self.world.rank, self.world.size)
        self.state.save()
        self._exchange.renew()
        self._meters = _new_meters()  # no row mixes world sizes
        self._link.reset.clear()  # whoever still wants one says it again (docs/contracts.md, section 12)
        self._told_s = 0.0
        self._link.send("joined", rank=self.world.rank, size=self.world.size, **_place(self.state))
        self._clock.enter(self.world.size, self.state.step)

    def epochs(self, count: int) -> Iterator[int]:
        """The epochs still to be trained, of `count`; the end of each is a commit."""
        self._epochs = count
        while self.state.epoch < count:
            yield self.state.epoch
            self.state.next_epoch()
            self.state.commits += 1
            self.state.save()
            if self.state.epoch < count and self._epoch_checkpoint_due():
                self._checkpoint(done=False)
            self._clock.skip()

    def average_gradients(self) -> None:
        """See `session.average_gradients`."""
        for name in self.state.optimizers():
            self._exchange.average(name)

    def commit(self, loss: Number | None) -> None:
        """The end of a step: see `session.commit`."""
        state = self.state
        duration_s = self._clock.end()
        self._count(loss, duration_s)
        flags = self._exchange.settle()
        if flags.stop or flags.reset or state.step % self._options.commit_every == 0:
            state.save()
        self._tell(duration_s)
        if _is_due(state.step, self._options.report_every):
            self.report("step", {})
        if flags.stop or _is_due(state.step, self._options.checkpoint_every):
            self._checkpoint(done=False)
        if flags.stop:
            raise Stopped
        if flags.reset:
            raise WorldChanged
        self._clock.begin()

    def report(self, kind: str, metrics: Mapping[str, float]) -> reports.Row:
        """Make the row for the steps since the last one; all ranks together."""
        state, world = self.state, self.world
        meter, self._meters[kind] = self._meters[kind], reports.Meter()
        sums = self.total(meter.sums())
        moment = reports.Moment(
            kind=kind,
            time_s=time.time(),
            segment=self._store.segment,
            epoch=state.epoch,
            step=state.step,
            samples=state.samples,
            world_size=world.size,
            learning_rate=float(state.optimizer.param_groups[0]["lr"]) * self._options.lr_factor(world.size),
            gradient_bytes=self._exchange.gradient_bytes(),
        )
        row = reports.make_row(moment, meter, sums, metrics)
        if world.rank == 0:
            if self._store.folder is not None:
                reports.append(self._store.folder / reports.REPORTS, row)
            self._link.send("row", row=row)
        return row

    def total(self, values: list[float]) -> list[float]:
        """Sums over the ranks."""
        import torch

        sums = torch.tensor(values, dtype=torch.float64)
        self.world.add_up(sums, f"voda.total.{len(values)}")
        return [float(value) for value in sums.tolist()]

    def _share(self) -> tuple[float, int]:
        sampler = self.state.sampler
        if sampler is None:
            return 1.0 / self.world.size, 0
        part = sampler.current()
        return part.weight, part.total

    def _count(self, loss: Number | None, duration_s: float) -> None:
        weight, _ = self._share()
        total = 0 if self.state.sampler is None else self.state.sampler.advance()
        self._batch = total
        self.state.step += 1
        self.state.samples += total
        self.state.commits += 1
        made = reports.Step(
            samples=total,
            own_samples=weight * (total or 1),
            loss=_detached(loss),
            wall_s=duration_s,
            communication_s=self._exchange.take_communication_s(),
            noise=self._exchange.take_noise(),
        )
        for meter in self._meters.values():
            meter.add(made)

    def _epoch_checkpoint_due(self) -> bool:
        if self._store.root is None or not self._options.checkpoint_epochs:
            return False
        age_s = time.monotonic() - self._checkpoint_s
        return self.world.collect([age_s])[0][0] >= self._options.checkpoint_min_s

    def _checkpoint(self, *, done: bool) -> None:
        if self._store.root is None:
            return
        self._store.write(self.state, self.world, done=done)
        self._checkpoint_s = time.monotonic()
        if self.world.rank == 0:
            self._link.send("checkpoint", step=self.state.step, epoch=self.state.epoch, done=done)

    def _tell(self, duration_s: float) -> None:
        change = self._clock.resized(duration_s)
        if change is not None:
            self._link.send("resized", **change)
        now_s = time.time()
        if self.world.rank != 0 or now_s < self._told_s + PROGRESS_S:
            return
        self._told_s = now_s
        state = self.state
        self._link.send(
            "progress",
            **_place(state),
            epochs=self._epochs,
            samples=state.samples,
            size=self.world.size,
            samples_per_s=self._clock.rate(self._batch),
            time_s=now_s,
        )

    def _end(self, outcome: str) -> None:
        self._say_end(outcome, "")
        self.world.leave()
        self._link.close()

    def _say_end(self, outcome: str, message: str) -> None:
        self._link.send("end", outcome=outcome, message=message, **_place(self.state))


def _step_once() -> None:
    """Make one step of nothing: what PyTorch sets up at the first one is then there before the others wait for it."""
    import torch

    weight = torch.ones(4, 4, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    (torch.ones(1, 4) @ weight).square().mean().backward()
    optimizer.step()


def _new_meters() -> dict[str, reports.Meter]:
    return {"step": reports.Meter(), "epoch": reports.Meter()}


def _place(state: State) -> dict[str, float]:
    """How far the training is: steps made, epochs done, and the part of the present one."""
    return {"step": state.step, "epoch": state.epoch, "part": _part_of_epoch(state)}


def _part_of_epoch(state: State) -> float:
    """How much of the present epoch is done, from 0 to 1; not known without a sampler."""
    sampler = state.sampler
    return 0.0 if sampler is None else sampler.position / max(sampler.num_samples, 1)


def _is_due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


def _detached(loss: Number | None) -> Number | None:
    """The loss without the graph that made it, which would keep every activation of the step alive."""
    return loss if loss is None or isinstance(loss, (int, float)) else loss.detach()
