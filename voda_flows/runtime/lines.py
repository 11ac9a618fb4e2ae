"""Messages as lines: one JSON object a line, UTF-8, of limited length.

Both connections of a job use it: rank to agent (a socket pair) and, inside the authenticated envelope of
``channel``, agent to driver.
"""

from __future__ import annotations

import json
from typing import Any

from voda_flows.runtime.errors import BadMessage

MAX_LINE_BYTES = 65_536
ENVELOPE_BYTES = 4_096  # room for what the agent and the channel put around a rank's line

Message = dict[str, Any]


class LineBuffer:
    """Bytes in, whole lines out; what is not yet a line waits inside."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._rest = b""

    def feed(self, received: bytes) -> list[bytes]:
        """The lines that ``received`` completes, without their ends.

        Raises:
            BadMessage: A line is longer than the limit.
        """
        *lines, self._rest = (self._rest + received).split(b"\n")
        longest = max((len(line) for line in (*lines, self._rest)), default=0)
        if longest > self._limit:
            raise BadMessage(f"expected lines of at most {self._limit} bytes, got {longest} and no end")
        return [line for line in lines if line]


def encode(message: Message) -> bytes:
    """One line with its end.

    Raises:
        BadMessage: The message is longer than a line may be.
    """
    line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise BadMessage(f"message {message.get('type')!r}: expected at most {MAX_LINE_BYTES} bytes, got {len(line)}")
    return line


def decode(line: bytes) -> Message:
    """The message of a line.

    Raises:
        BadMessage: No JSON object, or no ``type``.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as fault:
        raise BadMessage(f"expected a JSON object on a line, got {line[:60]!r}") from fault
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise BadMessage(f"expected a JSON object with a type, got {line[:60]!r}")
    return message
