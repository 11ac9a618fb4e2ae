"""Checkpoints on the job's volume: written so that a torn one is never taken for a good one.

`<root>/segment-<k>/step-<12 digits>/{state.pt, manifest.json}` (docs/contracts.md, section 6). A checkpoint is built
in a folder of another name, flushed, and renamed into place; its manifest holds the size and SHA-256 of every file.
A reader takes the highest (segment, step) that verifies. A writer that sees a later segment is out of date and ends.

Only the standard library here: the checkpoint step and the driver read what training wrote without PyTorch.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from voda_flows.runtime.errors import Fenced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MANIFEST = "manifest.json"
STATE = "state.pt"
VERSION = 1
KEPT = 2  # the newest, and the one before in case the newest is torn later
READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Manifest:
    """What is known of a checkpoint.

    Attributes:
        job: `<workflow uid>/<job-name>`.
        segment: number of the segment that wrote it.
        step: steps of the job when it was made.
        epoch: epoch of the job when it was made.
        world_size: ranks that made it.
        time_s: when, in seconds since 1970.
        done: whether training had ended.
    """

    job: str
    segment: int
    step: int
    epoch: int
    world_size: int
    time_s: float
    done: bool = False


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was verified."""

    folder: Path
    manifest: Manifest

    @property
    def state(self) -> Path:
        """Its state file."""
        return self.folder / STATE


def segment_folder(root: Path, segment: int) -> Path:
    """Where a segment keeps everything."""
    return root / f"segment-{segment}"


def segments(root: Path) -> list[int]:
    """Numbers of the segments that exist, ascending."""
    numbers = [entry.name.removeprefix("segment-") for entry in root.glob("segment-*") if entry.is_dir()]
    return sorted(int(number) for number in numbers if number.isdecimal())


def write(root: Path, manifest: Manifest, write_state: Callable[[Path], object]) -> Checkpoint:
    """Write a checkpoint and drop all but the newest two.

    Args:
        root: the job's checkpoint root.
        manifest: says which segment it belongs to; the segment's folder is made where it is missing.
        write_state: writes the state to the path that it is given.

    Raises:
        Fenced: a later segment exists.
        OSError: the volume refuses.
    """
    check_fence(root, manifest.segment)
    home = segment_folder(root, manifest.segment)
    home.mkdir(parents=True, exist_ok=True)
    for left in home.glob(".tmp-*"):
        shutil.rmtree(left, ignore_errors=True)
    building = home / f".tmp-{manifest.step:012d}-{os.getpid()}"
    building.mkdir()
    write_state(building / STATE)
    body = {"version": VERSION, **asdict(manifest), "files": {STATE: _fingerprint(building / STATE)}}
    (building / MANIFEST).write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    for path in (building / STATE, building / MANIFEST, building):
        _flush(path)
    check_fence(root, manifest.segment)
    final = home / f"step-{manifest.step:012d}"
    _replace_folder(building, final)
    _flush(home)
    _prune(root, final)
    return Checkpoint(final, manifest)


def check_fence(root: Path, segment: int) -> None:
    """Make sure that `segment` is the job's latest.

    Raises:
        Fenced: it is not.
    """
    latest = max(segments(root), default=segment)
    if latest > segment:
        message = (
            f"checkpoint {root}: this process belongs to segment {segment}, but segment {latest} has begun;"
            " it ends here so that it does not write over what is newer"
        )
        raise Fenced(message)


def newest_good(root: Path, job: str | None = None) -> Checkpoint | None:
    """The highest (segment, step) that verifies, of `job` where one is named; None where there is none."""
    for folder in _newest_first(root):
        found = verify(folder)
        if found is not None and job in (None, found.manifest.job):
            return found
    return None


def verify(folder: Path) -> Checkpoint | None:
    """The checkpoint in `folder` when every file is there with the size and the SHA-256 of its manifest."""
    try:
        body = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        fields = {name: body[name] for name in Manifest.__dataclass_fields__}
        files = dict(body["files"])
        good = body["version"] == VERSION and STATE in files
        good = good and all(_fingerprint(folder / name) == files[name] for name in files)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # torn or foreign: the reader goes on to the one before
    return Checkpoint(folder, Manifest(**fields)) if good else None


def _newest_first(root: Path) -> Iterator[Path]:
    for segment in reversed(segments(root)):
        steps = [path for path in segment_folder(root, segment).glob("step-*") if path.is_dir()]
        yield from sorted(steps, key=lambda path: path.name, reverse=True)


def _prune(root: Path, newest: Path) -> None:
    """Keep `newest`, just written, and the newest good one before it; drop what is older."""
    kept = 1
    for folder in list(_newest_first(root)):
        if folder == newest:
            continue
        if kept < KEPT and verify(folder) is not None:
            kept += 1
        elif kept >= KEPT:
            shutil.rmtree(folder, ignore_errors=True)


def _replace_folder(source: Path, target: Path) -> None:
    """Rename over a checkpoint of the same step, if there is one (made again after a crash)."""
    if target.exists():
        aside = target.with_name(f".tmp-old-{target.name}")
        shutil.rmtree(aside, ignore_errors=True)
        target.rename(aside)
        source.rename(target)
        shutil.rmtree(aside, ignore_errors=True)
    else:
        source.rename(target)


def _fingerprint(path: Path) -> dict[str, object]:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(READ_BYTES), b""):
            digest.update(block)
    return {"sha256": digest.hexdigest(), "bytes": path.stat().st_size}


def _flush(path: Path) -> None:
    """Force a file or a folder to the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(PermissionError):  # some network file systems refuse it for folders
            os.fsync(number)
    finally:
        os.close(number)
