"""Whether a change of a running job is worth what it costs: a policy allocates from scratch, running jobs pay for it.

In: what the policy allocated, and what it was asked. Out: the allocation less the growths that are not worth it. Stands
between allocate and place.

A running job that is resized from a to b GPUs stands still for c seconds (``ResizeCosts``). Over T, the time until it
ends or, where that is sooner, the horizon, it makes ``(T - c) S(b)`` samples instead of ``T S(a)``. A *growth* is kept
where that is more. Where all that grows in a queue grows by what its own jobs give up, it is kept only where what it
gains is more than what growing and shrinking cost together, in seconds of one GPU: ``sum (T - c) s(b) - T s(a)`` over
those that grow, less ``sum c s(b)`` over those that shrink, with ``s = S / S(1)``. A growth that is not kept gives its
GPUs back to the jobs of its queue that were to shrink, and only to them, so

- a job that starts gets what the policy gave it: what a shrinking job gives to a start is not given back;
- no queue has more than the policy gave it, and the sum stays within the capacity;
- a job has what the policy gave it, or what it has now.

What shrinking does to the job itself is the policy's business: it may be what the policy is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import JobSpec
from scheduler_core.model.ports import PolicyInput
from scheduler_core.model.resizes import ResizeKind

#: The horizon is so many intervals between decisions: a size that was decided on usually stays for some of them.
_INTERVALS = 10.0
#: Where decisions may follow each other at once, the horizon is so long, seconds.
_LEAST_HORIZON_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A running job's change of size; gains and costs in samples, of those that it makes in a second at one GPU."""

    spec: JobSpec
    before: int
    after: int
    gain: float
    cost: float

    @property
    def grows(self) -> bool:
        return self.after > self.before


def steadied(allocation: Allocation, asked: PolicyInput) -> Allocation:
    """The allocation without growths that cost more than they gain.

    Args:
        allocation: What the policy made.
        asked: What it was asked.

    Returns:
        The allocation; the same one where every change is worth it.
    """
    changes = [_change(spec, allocation, asked) for spec in asked.specs if _is_resized(spec, allocation, asked)]
    if not any(change.grows for change in changes):
        return allocation
    kept_by_job: dict[str, int] = {}
    for queue in sorted({change.spec.queue for change in changes}):
        kept_by_job |= _of_queue([change for change in changes if change.spec.queue == queue], allocation, asked)
    if not kept_by_job:
        return allocation
    return Allocation(gpus_by_job={**allocation.gpus_by_job, **kept_by_job})


def _of_queue(changes: list[_Change], allocation: Allocation, asked: PolicyInput) -> dict[str, int]:
    """Sizes of the jobs of one queue that stay as they are."""
    stay = [change for change in changes if change.grows and change.gain <= 0.0]
    back = _given_back(changes, stay)
    grow = [change for change in changes if change.grows and change not in stay]
    shrink = [change for change in changes if not change.grows and change not in back]
    given = sum(change.before - change.after for change in shrink)
    taken = sum(change.after - change.before for change in grow)
    is_paid_by_own = grow and taken <= given and not _starts(changes, allocation, asked)
    if is_paid_by_own and sum(change.gain for change in grow) <= sum(change.cost for change in shrink):
        stay += grow
        back = _given_back(changes, stay)
    return {change.spec.id: change.before for change in (*stay, *back)}


def _given_back(changes: list[_Change], stay: list[_Change]) -> list[_Change]:
    """Those that need not shrink since others do not grow: first those that would lose most for each GPU."""
    free = sum(change.after - change.before for change in stay)
    back = []
    for change in sorted(changes, key=lambda one: (one.gain / max(1, one.before - one.after), one.spec.id)):
        if not change.grows and change.gain < 0.0 and change.before - change.after <= free:
            free -= change.before - change.after
            back.append(change)
    return back


def _starts(changes: list[_Change], allocation: Allocation, asked: PolicyInput) -> bool:
    """Whether a job of their queue starts."""
    queue = changes[0].spec.queue
    return any(
        spec.queue == queue and allocation.gpus(spec.id) and not asked.current.gpus(spec.id) for spec in asked.specs
    )


def _is_resized(spec: JobSpec, allocation: Allocation, asked: PolicyInput) -> bool:
    """Whether a running job goes on at another size, from one that it may have."""
    before, after = asked.current.gpus(spec.id), allocation.gpus(spec.id)
    is_legal = spec.min_gpus <= before <= spec.max_gpus and (not spec.gpu_sizes or before in spec.gpu_sizes)
    return after > 0 and before not in (0, after) and is_legal


def _change(spec: JobSpec, allocation: Allocation, asked: PolicyInput) -> _Change:
    before, after = asked.current.gpus(spec.id), allocation.gpus(spec.id)
    slow, fast = (_speed(spec, gpus, asked.speed_by_job) for gpus in (before, after))
    kind = ResizeKind.GROW if after > before else ResizeKind.SHRINK
    still_s = asked.costs.seconds(kind, after)
    horizon_s = max(_LEAST_HORIZON_S, _INTERVALS * asked.params.decide_interval_s)
    left_s = asked.remaining_s_by_job.get(spec.id)
    ends_s = horizon_s if left_s is None or slow <= 0 else min(horizon_s, left_s / slow)
    gain = max(0.0, ends_s - still_s) * fast - ends_s * slow
    return _Change(spec=spec, before=before, after=after, gain=gain, cost=still_s * fast)


def _speed(spec: JobSpec, gpus: int, speed_by_job: Mapping[str, tuple[float, ...]]) -> float:
    """Speed at a size, that at one GPU being one; in proportion to the size where nothing is known."""
    table = speed_by_job.get(spec.id, ())
    if len(table) < 2 or table[1] <= 0:
        return float(gpus)
    return table[min(gpus, len(table) - 1)] / table[1]
