"""What the demo submits, and what it waits for before: events, never times. Pure.

Two nodes with two slots each. rigid takes two of the four, digits what is left; when rigid is done, digits grows; text
makes it shrink; pipeline makes text shrink; urgent, of a higher class, sends jobs back to their checkpoints; when it is
done they resume, and as the others end the last ones grow. A policy that resizes nobody gives each its minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from voda_flows.objects import WORKFLOW_ENDED
from voda_flows.report.lives import JobLife

Lives = Mapping[str, JobLife]


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One submission.

    Attributes:
        example: Name of the example, of its file and its Workflow.
        when: Whether its moment has come, from the jobs by the name of their Workflow.
        told: What the viewer is told then.
    """

    example: str
    when: Callable[[Lives], bool]
    told: str


def trains_on(lives: Lives, name: str, gpus: int) -> bool:
    """Whether a job trains on so many GPUs, or has ended."""
    life = lives.get(name)
    return life is not None and (
        life.phase in WORKFLOW_ENDED or (life.phase == "Running" and life.size == gpus and life.done > 0)
    )


def trains(lives: Lives, name: str) -> bool:
    """Whether a job has made its first steps, or has ended."""
    life = lives.get(name)
    return life is not None and (life.phase in WORKFLOW_ENDED or (life.phase == "Running" and life.done > 0))


ACTS: Final = (
    Act(example="rigid", when=lambda _: True, told="rigid needs exactly 2 of the 4 slots"),
    Act(
        example="digits",
        when=lambda lives: "rigid" in lives,
        told="digits may use 1 to 4: it gets what is left, and grows in place when rigid is done",
    ),
    Act(
        example="text",
        when=lambda lives: trains_on(lives, "digits", 4),
        told="text may use 1 to 2: digits makes room, in place",
    ),
    Act(
        example="pipeline",
        when=lambda lives: trains(lives, "text"),
        told="pipeline prepares, then waits for a GPU to train on: text makes room, in place",
    ),
    Act(
        example="urgent",
        when=lambda lives: "pipeline" in lives,
        told="urgent is of a higher class, needs 3: others shrink or stop at a checkpoint",
    ),
)


def acts(*, resizes: bool) -> tuple[Act, ...]:
    """The acts under a policy that resizes running jobs, or under one that does not: nobody waits for a growth then."""
    if resizes:
        return ACTS
    return tuple(
        replace(act, when=lambda lives: trains(lives, "digits")) if act.example == "text" else act for act in ACTS
    )
