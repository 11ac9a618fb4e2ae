"""A segment's folder as the driver uses it: claimed when the segment begins, closed with ``end.json`` when it ends.

A newer segment's folder fences an older driver. A folder of the same segment is taken over only by a driver that has
a document of its own (its predecessor's pod is gone then, and the agents end its ranks).
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from voda_flows.runtime.errors import Fenced

DONE, STOPPED, FAILED = "done", "stopped", "failed"
_NAME = re.compile(r"segment-(\d+)$")


@dataclass(frozen=True)
class End:
    """How a segment ended.

    Attributes:
        outcome: ``done``, ``stopped`` or ``failed``.
        step: Steps made.
        epoch: Epochs done, of the present one its part.
        message: Why, for people.
        failed_starts: How often one worker's ranks failed before anybody came to the door; 0 when somebody did.
    """

    outcome: str
    step: int
    epoch: float
    message: str
    failed_starts: int = 0


def claim(root: Path, segment: int, driver_uid: str) -> bool:
    """Make the segment's folder this driver's; False when another driver of the same segment was there before.

    Raises:
        Fenced: A newer segment exists.
    """
    root.mkdir(parents=True, exist_ok=True)
    newest = max((int(found.group(1)) for name in root.iterdir() if (found := _NAME.match(name.name))), default=-1)
    if newest > segment:
        raise Fenced(f"segment {segment}: expected to be the newest in {root}, found segment {newest}: this is late")
    folder = root / f"segment-{segment}"
    try:
        folder.mkdir()
        fresh = True
    except FileExistsError:
        fresh = False
    (folder / "end.json").unlink(missing_ok=True)
    write_atomically(folder / "driver.json", json.dumps({"driver_uid": driver_uid}))
    return fresh


def write_end(folder: Path, driver_uid: str, end: End) -> bool:
    """Leave how it ended; whoever waits for this segment looks for it.

    Returns:
        False when the folder is not this driver's (any more): nothing is written then.
    """
    try:
        owner = json.loads((folder / "driver.json").read_text())["driver_uid"]
    except FileNotFoundError:
        return False
    if owner == driver_uid:
        write_atomically(folder / "end.json", json.dumps(asdict(end)))
    return bool(owner == driver_uid)


def append_line(path: Path, value: object) -> None:
    """Add one line of JSON to a record."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")


def write_atomically(path: Path, text: str) -> None:
    """Write a small file that is there as a whole or not at all, also after a crash of the machine."""
    beside = path.with_name(f".{path.name}.new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
