"""The authenticated conversation of driver and agent, without any I/O: bytes in, messages out.

Both ends hold the job's key. Each draws a nonce and proves the key over both nonces, the job, the segment and the
driver's uid; from the same a key for this conversation is derived, and every message carries its number and a code
over direction, number and content. So a message that was altered, left out, repeated, sent back to its sender, or
taken from another conversation, segment or job is refused. Content is not secret, only authentic.

::

    agent  -> {"type": "hello", "voda": 1, "nonce"}
    driver -> {"type": "prove", "job", "segment", "driver_uid", "nonce", "proof"}
    agent  -> {"type": "proved", "worker", "proof"}
    both   -> <number> <code> <message>
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path

from voda_flows.runtime.errors import BadEnvironment, BadMessage, Refused
from voda_flows.runtime.lines import ENVELOPE_BYTES, MAX_LINE_BYTES, Message, decode, encode

VERSION = 1
MIN_KEY_BYTES = 16
NONCE_BYTES = 16
SEALED_LINE_BYTES = MAX_LINE_BYTES + 2 * ENVELOPE_BYTES


@dataclass(frozen=True)
class Party:
    """What a conversation is about; both ends must agree in all of it.

    Attributes:
        job: ``<workflow uid>/<job-name>``.
        segment: The segment's number.
        driver_uid: Uid of the driver's pod.
    """

    job: str
    segment: int
    driver_uid: str


def read_key(path: Path) -> bytes:
    """The job's key.

    Raises:
        BadEnvironment: No such file, or it holds too little to be a key.
    """
    try:
        key = path.read_bytes().strip()
    except OSError as fault:
        raise BadEnvironment(f"VODA_KEY_FILE: expected the job's key in {path}, got {fault.strerror}") from fault
    if len(key) < MIN_KEY_BYTES:
        raise BadEnvironment(f"VODA_KEY_FILE: expected at least {MIN_KEY_BYTES} bytes in {path}, got {len(key)}")
    return key


class Channel:
    """An established conversation: seals what is sent, opens what is received."""

    def __init__(self, key: bytes, *, sends: str, receives: str) -> None:
        self._key = key
        self._sends, self._receives = sends, receives
        self._sent = self._received = 0

    def seal(self, message: Message) -> bytes:
        """The line to send for a message.

        Raises:
            BadMessage: The message is too long.
        """
        body = encode(message)
        line = b"%d %s %s" % (self._sent, self._code(self._sends, self._sent, body[:-1]), body)
        self._sent += 1
        return line

    def open(self, line: bytes) -> Message:
        """The message of a received line.

        Raises:
            Refused: Its number is not the next one, or its code is not ours.
            BadMessage: Its content is no message.
        """
        number, _, rest = line.partition(b" ")
        code, _, body = rest.partition(b" ")
        if number != b"%d" % self._received:
            raise Refused(f"expected message number {self._received}, got {number[:20]!r}: replayed, lost or foreign")
        if not hmac.compare_digest(code, self._code(self._receives, self._received, body)):
            raise Refused(f"message {self._received}: its code does not fit its content")
        self._received += 1
        return decode(body)

    def _code(self, direction: str, number: int, body: bytes) -> bytes:
        return _mac(self._key, direction.encode(), b"%d" % number, body).hex().encode()


class AgentHandshake:
    """The agent's half: says hello, checks the driver's proof, answers with its own."""

    def __init__(self, key: bytes, *, job: str, segment: int, worker: str) -> None:
        self._key, self._job, self._segment, self._worker = key, job, segment, worker
        self._nonce = secrets.token_hex(NONCE_BYTES)

    def hello(self) -> bytes:
        """The first line of the conversation."""
        return encode({"type": "hello", "voda": VERSION, "nonce": self._nonce})

    def accept(self, line: bytes) -> tuple[Party, bytes, Channel]:
        """Check the driver's proof.

        Returns:
            Who it is, the line that proves the agent to it, and the channel.

        Raises:
            Refused: Another job, segment or key, or no proof at all.
        """
        found = _handshake_message(line, "prove")
        party = _party(found)
        if (party.job, party.segment) != (self._job, self._segment):
            raise Refused(
                f"expected a driver of job {self._job!r} segment {self._segment}, "
                f"got {party.job[:100]!r} segment {party.segment}"
            )
        shared = _shared(party, self._nonce, _text(found, "nonce"))
        if not hmac.compare_digest(_text(found, "proof"), _mac(self._key, b"driver", *shared).hex()):
            raise Refused(f"driver {party.driver_uid[:100]!r}: its proof is not made with this job's key")
        proof = _mac(self._key, b"agent", self._worker.encode(), *shared).hex()
        channel = Channel(_mac(self._key, b"talk", *shared), sends="agent", receives="driver")
        return party, encode({"type": "proved", "worker": self._worker, "proof": proof}), channel


class DriverHandshake:
    """The driver's half: answers the agent's hello with a proof, checks the agent's."""

    def __init__(self, key: bytes, party: Party, *, worker: str) -> None:
        self._key, self._party, self._worker = key, party, worker
        self._nonce = secrets.token_hex(NONCE_BYTES)
        self._shared: tuple[bytes, ...] = ()

    def answer(self, line: bytes) -> bytes:
        """The line that proves this driver, for the agent's hello.

        Raises:
            Refused: No hello of this version.
        """
        found = _handshake_message(line, "hello")
        if found.get("voda") != VERSION:
            raise Refused(f"expected an agent of version {VERSION}, got {found.get('voda')!r}")
        self._shared = _shared(self._party, _text(found, "nonce"), self._nonce)
        return encode(
            {
                "type": "prove",
                "job": self._party.job,
                "segment": self._party.segment,
                "driver_uid": self._party.driver_uid,
                "nonce": self._nonce,
                "proof": _mac(self._key, b"driver", *self._shared).hex(),
            }
        )

    def finish(self, line: bytes) -> Channel:
        """Check the agent's proof; the channel when it holds.

        Raises:
            Refused: Another worker than expected, or not this job's key.
        """
        found = _handshake_message(line, "proved")
        worker = _text(found, "worker")
        proof = _mac(self._key, b"agent", worker.encode(), *self._shared).hex()
        if not hmac.compare_digest(_text(found, "proof"), proof):
            raise Refused("the agent's proof is not made with this job's key")
        if worker != self._worker:
            raise Refused(f"expected the agent of worker {self._worker!r}, got {worker!r}")
        return Channel(_mac(self._key, b"talk", *self._shared), sends="driver", receives="agent")


def _mac(key: bytes, *parts: bytes) -> bytes:
    """HMAC-SHA256 over parts; each with its length before it, so that no two lists of parts look alike."""
    code = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        code.update(len(part).to_bytes(8, "big"))
        code.update(part)
    return code.digest()


def _shared(party: Party, agent_nonce: str, driver_nonce: str) -> tuple[bytes, ...]:
    parts = (party.job, str(party.segment), party.driver_uid, agent_nonce, driver_nonce)
    return tuple(part.encode() for part in parts)


def _handshake_message(line: bytes, expected: str) -> Message:
    try:
        found = decode(line)
    except BadMessage as fault:
        raise Refused(f"expected {expected!r}: {fault}") from fault
    if found["type"] != expected:
        raise Refused(f"expected {expected!r}, got {found['type'][:60]!r}")
    return found


def _party(found: Message) -> Party:
    segment = found.get("segment")
    if not isinstance(segment, int) or isinstance(segment, bool):
        raise Refused(f"expected a segment's number, got {str(segment)[:60]!r}")
    return Party(job=_text(found, "job"), segment=segment, driver_uid=_text(found, "driver_uid"))


def _text(found: Message, name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value.isascii():
        raise Refused(f"expected {name!r} to be plain text, got {str(value)[:60]!r}")
    return value
