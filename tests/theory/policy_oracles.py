"""Oracles for two policies, written from their papers and slow on purpose; and random questions small enough."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import product

from scheduler_core.allocate.order import by_arrival
from scheduler_core.allocate.rungs import speedups, useful_rungs
from scheduler_core.allocate.walk import walk
from scheduler_core.model.job import JobSpec
from scheduler_core.model.ports import PolicyInput
from tests.unit.core.builders import asked, spec


def best_total(given: PolicyInput) -> float:
    """FfDL by trying everything: the greatest sum of speed-ups of any allowed sizes of the jobs that are kept."""
    kept = walk(given, by_arrival(given.specs))
    ladders = [_ladder(given, one) for one in given.specs if one.id in kept]
    totals = (
        sum(worth for _, worth in choice)
        for choice in product(*ladders)
        if sum(gpus for gpus, _ in choice) <= given.capacity_gpus
    )
    return max(totals, default=0.0)


def total(given: PolicyInput, gpus_by_job: dict[str, int]) -> float:
    """The sum of speed-ups of an allocation."""
    worth = {one.id: dict(_ladder(given, one)) for one in given.specs}
    return sum(worth[job_id][gpus] for job_id, gpus in gpus_by_job.items())


def _ladder(given: PolicyInput, one: JobSpec) -> list[tuple[int, float]]:
    speed = given.speed_by_job.get(one.id, ())
    sizes = useful_rungs(one, speed)
    return list(zip(sizes, speedups(sizes, speed), strict=True))


class _Player:
    """A job in AFS-L's contest: its ladder, and how far up it is."""

    def __init__(self, given: PolicyInput, one: JobSpec) -> None:
        self.id, self.ladder, self.step = one.id, _ladder(given, one), -1
        self.priority, self.left_s = one.priority, given.remaining_s_by_job.get(one.id, math.inf)

    def gpus(self, step: int) -> int:
        return self.ladder[step][0] if step >= 0 else 0

    @property
    def cost(self) -> int:
        return self.gpus(self.step + 1) - self.gpus(self.step)

    @property
    def length_s(self) -> float:
        return self.left_s / self.ladder[self.step][1] if self.step >= 0 else math.inf

    def gain(self, *, by_new: bool) -> float:
        """Relative gain of the next step, by the speed after it or before it; per GPU above the first step."""
        now = self.ladder[self.step][1] if self.step >= 0 else 0.0
        then = self.ladder[self.step + 1][1]
        base = then if by_new else now
        return (then - now) / base / (self.cost if self.step >= 0 else 1) if base else math.inf


def _wins(late: _Player, early: _Player) -> bool:
    """Whether the later job in the pass beats the earlier one."""
    if late.step < 0 and early.step < 0:
        return late.left_s < early.left_s
    if early.length_s <= late.length_s:
        return late.gain(by_new=True) > early.gain(by_new=False)
    return not early.gain(by_new=True) > late.gain(by_new=False)


def afs_l_pairwise(given: PolicyInput) -> dict[str, int]:
    """AFS-L with one pass over all pairs for each step, as its paper has it (NSDI'21, algorithm 1)."""
    players, free = [_Player(given, one) for one in by_arrival(given.specs)], given.capacity_gpus
    alive = [player for player in players if player.ladder]
    while free and alive:
        top = max((player.priority for player in alive if player.step < 0), default=-math.inf)
        taking_part = [player for player in alive if player.priority >= top]
        champion = taking_part[0]
        for challenger in taking_part[1:]:
            champion = challenger if _wins(challenger, champion) else champion
        if champion.cost <= free:
            free -= champion.cost
            champion.step += 1
            if champion.step + 1 == len(champion.ladder):
                alive.remove(champion)
        else:
            alive.remove(champion)
    return {player.id: player.gpus(player.step) for player in players if player.step >= 0}


def random_questions(
    number: int, *, seed: int, most_jobs: int, most_gpus: int, has_classes: bool = False
) -> Iterator[PolicyInput]:
    """Questions with minima above one, workers of several GPUs, lists of sizes, dips, short tables and unknown jobs."""
    rng = random.Random(seed)
    for _ in range(number):
        specs = [_random_spec(rng, f"j{index}", has_classes=has_classes) for index in range(rng.randint(1, most_jobs))]
        known = [one for one in specs if rng.random() < 0.9]
        timed = [one for one in specs if rng.random() < 0.9]
        yield asked(
            specs,
            rng.randint(1, most_gpus),
            speed_by_job={one.id: _random_speed(rng, one.max_gpus) for one in known},
            remaining_s_by_job={one.id: float(rng.choice((60, 600, rng.randint(1, 9000)))) for one in timed},
        )


def _random_spec(rng: random.Random, job_id: str, *, has_classes: bool) -> JobSpec:
    step = rng.choice((1, 1, 1, 2))
    least = rng.choice((1, 1, 2, 3)) * step
    sizes = rng.choice(((), (), (1, 2, 4, 8)))
    return spec(
        job_id,
        (least, least + step * rng.randint(0, 5)),
        gpus_per_worker=step,
        gpu_sizes=sizes,
        submitted_s=float(rng.randint(0, 3)),
        priority=rng.choice((0, 0, 100)) if has_classes else 0,
    )


def _random_speed(rng: random.Random, most: int) -> tuple[float, ...]:
    """Linear, concave, or any; sometimes shorter than the job's maximum."""
    length = rng.choice((most, most, rng.randint(1, most)))
    power = rng.choice((1.0, rng.uniform(0.3, 1.0)))
    noise = rng.choice((0.0, 0.0, 0.3))
    base = rng.uniform(5, 200)
    return (0.0, *(base * gpus**power * (1 + noise * rng.random()) for gpus in range(1, length + 1)))
