"""Which slots of its node each worker held, also where nobody wrote it down. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from voda_flows.report.lives import Holding, JobLife, Segment


def with_slots(lives: Sequence[JobLife], now_s: float) -> list[JobLife]:
    """Lives in which every hold has slots: those that were written down, else the lowest that nobody held then.

    Args:
        lives: Jobs.
        now_s: Until when holds last that have not ended.
    """
    by_node: dict[str, list[Holding]] = {}
    for one in (one for life in lives for segment in life.segments for one in segment.holdings):
        by_node.setdefault(one.node, []).append(one)
    given: dict[int, tuple[int, ...]] = {}
    for holds in by_node.values():
        given |= _given(holds, now_s)
    return [replace(life, segments=tuple(_filled(segment, given) for segment in life.segments)) for life in lives]


def _given(holds: Iterable[Holding], now_s: float) -> dict[int, tuple[int, ...]]:
    """Slots for those holds of one node that have none, by the hold's identity."""
    ordered = sorted(holds, key=lambda one: (one.start_s, one.worker))
    written = [one for one in ordered if one.slots]
    found: dict[int, tuple[int, ...]] = {}
    present: list[tuple[float, tuple[int, ...]]] = []
    for one in ordered:
        if one.slots:
            continue
        present = [(end_s, slots) for end_s, slots in present if end_s > one.start_s]
        busy = {slot for _, slots in present for slot in slots}
        busy |= {slot for other in written if _overlap(one, other, now_s) for slot in other.slots}
        free = (slot for slot in range(len(busy) + one.gpus) if slot not in busy)
        found[id(one)] = tuple(slot for slot, _ in zip(free, range(one.gpus), strict=False))
        present.append((_ends_s(one, now_s), found[id(one)]))
    return found


def _filled(segment: Segment, given: Mapping[int, tuple[int, ...]]) -> Segment:
    """A segment with the slots that were found for its holdings."""
    holdings = tuple(replace(held, slots=given.get(id(held), held.slots)) for held in segment.holdings)
    return replace(segment, holdings=holdings)


def _overlap(one: Holding, other: Holding, now_s: float) -> bool:
    """Whether two holdings were there at the same time."""
    return one.start_s < _ends_s(other, now_s) and other.start_s < _ends_s(one, now_s)


def _ends_s(one: Holding, now_s: float) -> float:
    """When a hold ended, or now."""
    return now_s if one.end_s is None else one.end_s
