"""Everything that can go wrong in Voda, as one tree.

::

    VodaError
    ├── InvalidValue          a value from outside breaks a rule (exit 2)
    ├── LawBroken             a stage of a cycle gave a result that breaks its post-condition (a defect, fenced)
    ├── StageFailed           a stage of a cycle raised, ended its process or gave no answer in time (fenced)
    ├── NotFound              no object of that name (exit 3)
    ├── Conflict              the object changed since it was read, or exists already (exit 4)
    ├── Forbidden             the account may not do that (exit 1)
    └── Unreachable           nobody answers, or not in time (exit 5)

A message says what was expected, what was found, where, and what to do. What is merely infeasible is a value, never
an exception.
"""

from __future__ import annotations

from typing import ClassVar


class VodaError(Exception):
    """Base of every error of ours; ``exit_code`` is what the command line ends with."""

    exit_code: ClassVar[int] = 1


class InvalidValue(VodaError):
    """A value from outside breaks a rule.

    Attributes:
        path: Where in its document the value stands (``spec.templates[1].name``), empty where nobody knows.
    """

    exit_code = 2

    def __init__(self, message: str = "", *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class LawBroken(VodaError):
    """A stage's result breaks its post-condition: the cycle is fenced and the previous target stays."""


class StageFailed(VodaError):
    """A stage failed where it ran, in a process of its own; the text says how."""


class NotFound(VodaError):
    """No object of that name."""

    exit_code = 3


class Conflict(VodaError):
    """The object changed since it was read, or exists already."""

    exit_code = 4


class Forbidden(VodaError):
    """The account may not do that; the text names the right it lacks."""


class Unreachable(VodaError):
    """Nobody answers, or not in time."""

    exit_code = 5
