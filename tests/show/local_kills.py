"""Area local, kill -9 at random points: of training ranks, drivers, agents, pods, the engine, the scheduler.

A run is three elastic jobs in a world of four slots; several processes are killed in each, some at nearly the same
time, and a killed engine is brought up again as a person would. Then every job must have succeeded, once, with each
epoch done once; what is lost must be within the design's bounds; nothing of what ended may be left. The seed of each
run is printed: the same seed makes the same choices, though not at the same steps.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.job_record import Loss, epochs, loss, verdicts
from tests.e2e.local_world import KINDS, LIFE, LocalWorld, local_world, of_home
from tests.e2e.progress_watch import ProgressWatch
from tests.show.registry import Row, at_most, exactly, figure, information

KILLS, KILLS_QUICK = 20, 1
RUNS = 5
SEED = 20260131
SAMPLES, STEP_S = 1200, 0.03
EPOCHS, EPOCHS_QUICK = 30, 8
COMMIT_STEPS, CHECKPOINT_STEPS = 1, 20
JOBS = {"one": ("1", "4"), "two": ("1", "2"), "pair": ("2", "3")}
#: Chance hits one job several times in a row: limits that would end it with good reason are not what is tried here.
LIMITS = {"retry-limit": "100", "restart-limit": "100"}
SETTLE_S, LEAVE_S = 600.0, 60.0


@dataclass(kw_only=True)
class Outcome:
    """What came of a run, or of all."""

    seed: list[int] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    succeeded: int = 0
    once: int = 0
    loss: Loss = Loss(in_place=0, between=0)
    left: int = 0
    held: int = 0
    back: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Take in another run."""
        self.seed += other.seed
        self.kills += other.kills
        self.accepted += other.accepted
        self.succeeded += other.succeeded
        self.once += other.once
        self.loss = Loss(
            in_place=max(self.loss.in_place, other.loss.in_place), between=max(self.loss.between, other.loss.between)
        )
        self.left += other.left
        self.held += other.held
        self.back += other.back


@figure(area="local")
def kills(quick: bool) -> Iterator[Row]:
    """SIGKILL at random points of three-job runs."""
    quota = Counter(dict.fromkeys(KINDS, KILLS_QUICK if quick else KILLS))
    each = KILLS_QUICK if quick else -(-KILLS // RUNS)
    total, seed = Outcome(), SEED
    while quota.total():
        share = Counter({kind: min(each, count) for kind, count in quota.items()})
        made = run(seed, share, EPOCHS_QUICK if quick else EPOCHS)
        quota -= made.kills
        total.add(made)
        seed += 1
        if not made.kills:
            break  # nothing was there to be killed: the rows below say so
    yield from _rows(total, KILLS_QUICK if quick else KILLS)


def _rows(total: Outcome, wanted: int) -> Iterator[Row]:
    yield information("kills: seeds of the runs", ", ".join(map(str, total.seed)))
    for kind in KINDS:
        yield exactly(f"kills: SIGKILL of {kind}", total.kills[kind], wanted)
    yield exactly("kills: jobs succeeded, of those accepted", f"{total.succeeded}/{total.accepted}", _all(total))
    yield exactly("kills: jobs whose epochs were done once each", f"{total.once}/{total.accepted}", _all(total))
    yield at_most("kills: steps lost where a rank survived, most", total.loss.in_place, COMMIT_STEPS, "steps")
    yield at_most("kills: steps lost where none did, most", total.loss.between, CHECKPOINT_STEPS, "steps")
    yield exactly("kills: processes of ended pods left", total.left, 0)
    yield exactly("kills: slots held by ended jobs", total.held, 0)
    yield exactly("kills: times that voda's progress of a job went back", len(total.back), 0)


def _all(total: Outcome) -> str:
    return f"{total.accepted}/{total.accepted}"


def run(seed: int, share: Counter[str], num_epochs: int) -> Outcome:
    """One run: three jobs, some kills, and what is there afterwards; its folder stays when something is wrong."""
    home = Path(tempfile.mkdtemp(prefix="voda-kills-"))
    with local_world(home) as world:
        uids = [
            world.submit(name, {**_inputs(num_epochs), "min-gpus": least, "max-gpus": most})
            for name, (least, most) in JOBS.items()
        ]
        with ProgressWatch(world) as seen:
            made = Outcome(seed=[seed], accepted=len(uids), kills=_strike(world, random.Random(seed), share))
            world.until(world.have_ended, SETTLE_S)
        made.back = seen.back
        world.until(lambda: not world.orphans() and not world.slots_of_the_dead(), LEAVE_S)
        _judge(world, uids, num_epochs, made)
    made.left += len(of_home(home))
    if made.succeeded == made.once == made.accepted and not (made.left or made.held or made.back):
        shutil.rmtree(home)
    else:
        sys.stderr.write(f"seed {seed}: kept {home} {' '.join(made.back)}\n")
    return made


def _inputs(num_epochs: int) -> dict[str, str]:
    command, every = f"{LIFE} {SAMPLES} {STEP_S}", str(CHECKPOINT_STEPS)
    return {"command": command, "epochs": str(num_epochs), "checkpoint-steps": every, **LIMITS}


def _strike(world: LocalWorld, chance: random.Random, share: Counter[str]) -> Counter[str]:
    """Kill until the share is used up or all jobs have ended."""
    done: Counter[str] = Counter()
    pause = threading.Event()
    while (left := share - done) and not world.have_ended():
        close = chance.random() < 0.25
        pause.wait(chance.uniform(0.05, 0.5) if close else chance.uniform(2.0, 7.0))
        kind = chance.choice(sorted(left))
        pids = world.processes(kind)
        if not pids:
            continue
        victim = pids[chance.randrange(len(pids))]
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
        done[kind] += 1
        sys.stderr.write(f"kill {kind} pid={victim} ({done.total()} of {share.total()})\n")
        if kind == "engine":
            pause.wait(chance.uniform(0.0, 2.0))
            world.up()
    return done


def _judge(world: LocalWorld, uids: list[str], num_epochs: int, made: Outcome) -> None:
    """Fill in what is there after a run."""
    phases = world.phases()
    made.succeeded = sum(phases.get(name) == "Succeeded" for name in JOBS) if len(phases) == len(JOBS) else 0
    roots = [world.root(uid) for uid in uids]
    made.once = sum(
        epochs(root, SAMPLES) == list(range(num_epochs)) and verdicts(root).count("done") == 1 for root in roots
    )
    losses = [loss(root) for root in roots]
    made.loss = Loss(in_place=max(row.in_place for row in losses), between=max(row.between for row in losses))
    made.left, made.held = len(world.orphans()), len(world.slots_of_the_dead())
