"""What can go wrong inside a job's pods, as one tree (pods know nothing of the scheduler's own tree).

::

    RuntimeFault
    ├── BadEnvironment    a variable that a pod's template sets is missing or wrong
    ├── BadDocument       an allocation document breaks its schema
    ├── BadMessage        what came over a connection is no message (too long, no JSON, no object)
    ├── Refused           the other end could not prove who it is, or a message was forged, replayed or foreign
    └── Fenced            a newer segment of the same job exists: this process is late and must not write
"""

from __future__ import annotations


class RuntimeFault(Exception):
    """Base of every error of the runtime."""


class BadEnvironment(RuntimeFault):
    """A variable that a pod's template sets is missing or wrong."""


class BadDocument(RuntimeFault):
    """An allocation document breaks its schema."""


class BadMessage(RuntimeFault):
    """What came over a connection is no message."""


class Refused(RuntimeFault):
    """The other end could not prove who it is, or a message was forged, replayed or foreign."""


class Fenced(RuntimeFault):
    """A newer segment of the same job exists: this process is late and must not write."""
