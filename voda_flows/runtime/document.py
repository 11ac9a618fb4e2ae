"""The allocation document: which workers the scheduler gave this driver.

In: the file that shows the driver pod's annotation. Out: an ``Allocation``, once for each new generation that is
meant for this very driver. First stop on the way document -> driver -> agents -> ranks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voda_flows.runtime.errors import BadDocument

VERSION = 1
STOP_CHECKPOINT = "checkpoint"
MAX_BYTES = 262_144  # an annotation's own limit in Kubernetes
MAX_COUNT = 2**31 - 1
MAX_SLOTS = 1024  # ranks of one worker: no machine has that many GPUs
SHOWN = 60
_WORD = re.compile(r"[!-~]{1,253}")  # ids and addresses end up in environment variables and in lines of text


@dataclass(frozen=True)
class Worker:
    """A granted worker whose agent is warm.

    Attributes:
        id: Worker id, unique among the live workers of the job.
        role: What it does; ``worker`` is the only role a training rank has.
        address: IP address of its agent.
        node: Node it runs on.
        slots: Ranks it runs, one per GPU.
    """

    id: str
    role: str
    address: str
    node: str
    slots: int


@dataclass(frozen=True)
class Allocation:
    """One generation of the document."""

    job: str
    driver_uid: str
    segment: int
    generation: int
    min_workers: int
    workers: tuple[Worker, ...]
    stop: str | None


@dataclass(frozen=True)
class Addressee:
    """Whom a driver takes a document from: one that names exactly this."""

    job: str
    driver_uid: str
    segment: int


def parse(text: str) -> Allocation:
    """Read a document.

    Raises:
        BadDocument: Not JSON, another version, or a value of the wrong kind; names the path of the fault.
    """
    if len(text) > MAX_BYTES:
        raise BadDocument(f"allocation document: expected at most {MAX_BYTES} characters, got more")
    try:
        body = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as fault:  # nested so deeply that Python's reader gives up
        raise BadDocument(f"allocation document: expected JSON, got {text[:SHOWN]!r} ({fault})") from fault
    if not isinstance(body, dict) or type(body.get("version")) is not int or body["version"] != VERSION:
        raise BadDocument(f"allocation document: expected version {VERSION}, got {text[:SHOWN]!r}")
    stop = body.get("stop")
    if stop is not None and stop != STOP_CHECKPOINT:
        raise BadDocument(f"allocation document at $.stop: expected null or {STOP_CHECKPOINT!r}, got {_shown(stop)}")
    return Allocation(
        job=_text(body, "job", "$"),
        driver_uid=_text(body, "driver_uid", "$"),
        segment=_count(body, "segment", "$", 0),
        generation=_count(body, "generation", "$", 0),
        min_workers=_count(body, "min_workers", "$", 1),
        workers=_workers(body.get("workers")),
        stop=stop,
    )


def why_ignored(allocation: Allocation, me: Addressee, seen_generation: int) -> str | None:
    """The reason why this driver must not act on a document, None when it must.

    Args:
        allocation: What was read.
        me: This driver.
        seen_generation: The highest generation it has taken so far, -1 for none.
    """
    for name in ("job", "driver_uid", "segment"):
        theirs, mine = getattr(allocation, name), getattr(me, name)
        if theirs != mine:
            return f"it is for {name} {theirs!r}, this is {mine!r}"
    if allocation.generation <= seen_generation:
        return f"generation {allocation.generation} is not above {seen_generation}"
    return None


class DocumentFile:
    """The file with the document; reads it again only when it changed.

    Kubernetes swaps a symbolic link when the annotation changes, local mode renames a file into place: both change
    inode and time stamp, so one ``stat`` tells whether there is anything to read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._signature: tuple[int, int, int] | None = None

    def changed(self) -> str | None:
        """The text when it is another than at the last call, else None (also when there is no file or no text)."""
        try:
            found = self._path.stat()
            signature = (found.st_ino, found.st_mtime_ns, found.st_size)
            if signature == self._signature:
                return None
            text = self._path.read_bytes()[: MAX_BYTES + 1].decode("utf-8", "replace")
        except OSError:
            return None
        self._signature = signature
        return text if text.strip() else None


def _workers(found: object) -> tuple[Worker, ...]:
    if not isinstance(found, list):
        raise BadDocument(f"allocation document at $.workers: expected a list, got {_shown(found)}")
    workers = tuple(_worker(item, f"$.workers[{index}]") for index, item in enumerate(found))
    ids = [worker.id for worker in workers]
    if len(set(ids)) != len(ids):
        raise BadDocument(f"allocation document at $.workers: expected ids to differ, got {_shown(ids)}")
    return workers


def _worker(found: object, path: str) -> Worker:
    if not isinstance(found, dict):
        raise BadDocument(f"allocation document at {path}: expected an object, got {_shown(found)}")
    return Worker(
        id=_text(found, "id", path),
        role=_text({"role": "worker", **found}, "role", path),
        address=_text(found, "address", path),
        node=_text({"node": "-", **found}, "node", path),
        slots=_count({"slots": 1, **found}, "slots", path, 1, most=MAX_SLOTS),
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys stand once: of two values nobody could say which one is meant."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _text(found: Mapping[str, Any], name: str, path: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value:
        raise BadDocument(f"allocation document at {path}.{name}: expected text, got {_shown(value)}")
    if not _WORD.fullmatch(value):
        raise BadDocument(
            f"allocation document at {path}.{name}: expected at most 253 visible ASCII characters, got {_shown(value)}"
        )
    return value


def _count(found: Mapping[str, Any], name: str, path: str, least: int, most: int = MAX_COUNT) -> int:
    value = found.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise BadDocument(
            f"allocation document at {path}.{name}: expected a whole number >= {least}, got {_shown(value)}"
        )
    if value > most:
        raise BadDocument(f"allocation document at {path}.{name}: expected at most {most}, got {_shown(value)}")
    return value


def _shown(value: object) -> str:
    """A value for a message, cut where it is long."""
    try:
        shown = repr(value)
    except (ValueError, RecursionError):  # a number of too many digits, a list nested too deeply
        return f"a {type(value).__name__}"
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
