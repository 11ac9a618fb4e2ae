"""The golden file of the original's answers, as its model and as our policies are asked; and why answers differ."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

from scheduler_core.allocate.registry import policy_named
from scheduler_core.model.ports import PolicyInput
from scheduler_core.model.service import Service
from tests.theory.voda_original import Fault, OriginalJob, Stopped, answer
from tests.unit.core.builders import asked, spec

#: More service than the first queue allows.
MUCH_GPU_S = 4000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One input with what the original answered: GPUs by job, or None where it stopped with an error."""

    gpus: int
    jobs: tuple[OriginalJob, ...]
    answers: dict[str, dict[str, int] | None]

    def asked(self) -> PolicyInput:
        """The same as our policies are asked."""
        return asked(
            [
                spec(job.name, (job.least, job.most), submitted_s=job.submitted_s, num_gpus=job.num_proc)
                for job in self.jobs
            ],
            self.gpus,
            speed_by_job={job.name: job.speedup for job in self.jobs},
            remaining_s_by_job={job.name: job.left_s for job in self.jobs},
            started_s_by_job={job.name: job.submitted_s for job in self.jobs},
            service_by_job={
                job.name: Service(since_start_gpu_s=job.queue * MUCH_GPU_S, running_s=MUCH_GPU_S) for job in self.jobs
            },
        )

    def ours(self, name: str) -> dict[str, int]:
        """Our answer, zeros included; it keeps the law of every allocation.

        Raises:
            LawBroken: It does not.
        """
        given = self.asked()
        found = policy_named(name)(given).check(given.specs, given.capacity_gpus, by=name)
        return {job.name: found.gpus(job.name) for job in self.jobs}

    def model(self, name: str, mended: tuple[Fault, ...] = ()) -> dict[str, int] | None:
        """What the model of the original answers, None where it stops."""
        try:
            return answer(name, self.jobs, self.gpus, mended)
        except Stopped:
            return None

    def total(self, gpus_by_job: dict[str, int]) -> float:
        """The sum of speed-ups, rounded against the order of addition."""
        return round(sum(job.speedup[gpus_by_job[job.name]] for job in self.jobs), 9)


@cache
def golden_cases() -> tuple[Case, ...]:
    """All cases of the golden file, which names source, commit and licence."""
    found = json.loads(Path(__file__).with_name("voda_golden.json").read_text(encoding="utf-8"))
    return tuple(_case(case) for case in found["cases"])


def _case(case: dict[str, Any]) -> Case:
    jobs = tuple(
        OriginalJob(
            name=name,
            submitted_s=float(submitted_s),
            least=least,
            most=most,
            num_proc=num_proc,
            queue=queue,
            left_s=left_s,
            speedup=tuple(speedup),
        )
        for name, submitted_s, least, most, num_proc, queue, left_s, speedup in case["jobs"]
    )
    names = [job.name for job in jobs]
    answers = {
        policy: None if isinstance(said, str) else dict(zip(names, said, strict=True))
        for policy, said in case["expected"].items()
    }
    return Case(gpus=case["gpus"], jobs=jobs, answers=answers)


def faults_behind(case: Case, name: str) -> tuple[Fault, ...] | None:
    """The fewest faults that must be mended in the model for it to answer as we do; None where no mending does it."""
    ours = case.ours(name)
    for number in range(len(Fault) + 1):
        for mended in combinations(Fault, number):
            if case.model(name, mended) == ours:
                return mended
    return None
