"""Decisions made where they are asked for, for as long as they take: for the simulator, replay and tests."""

from __future__ import annotations

from collections.abc import Callable

from scheduler_core.model.decision import Decision
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.target import Target


class Inline:
    """See ``scheduler_core.model.ports.Decider``.

    Args:
        attempt: Decides once.
    """

    def __init__(self, attempt: Callable[[Observation, Target, Params], Decision]) -> None:
        self._attempt = attempt

    def attempt(self, observation: Observation, target: Target, params: Params) -> Decision:
        """Steps two to four, once."""
        return self._attempt(observation, target, params)

    def has_time(self) -> bool:
        """Always."""
        return True
