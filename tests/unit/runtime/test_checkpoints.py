"""A torn checkpoint is never taken for a good one, and a late writer never writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from voda_flows.runtime import checkpoints
from voda_flows.runtime.errors import Fenced


def manifest(segment: int, step: int, *, done: bool = False) -> checkpoints.Manifest:
    """A manifest of job `u/train`."""
    return checkpoints.Manifest(
        job="u/train", segment=segment, step=step, epoch=step // 10, world_size=2, time_s=1000.0 + step, done=done
    )


def write(root: Path, segment: int, step: int) -> checkpoints.Checkpoint:
    """A checkpoint whose state is its own step."""
    return checkpoints.write(root, manifest(segment, step), lambda path: path.write_text(f"state {step}"))


def steps(root: Path) -> list[str]:
    """All checkpoints that are there."""
    return sorted(str(path.relative_to(root)) for path in root.glob("*/*step*"))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """A reader gets the manifest and the state as they were written."""
    written = write(tmp_path, 0, 10)

    assert checkpoints.newest_good(tmp_path, "u/train") == written
    assert written.state.read_text() == "state 10"
    assert written.manifest == manifest(0, 10)


def test_the_two_newest_are_kept(tmp_path: Path) -> None:
    """Older ones go, across segments too; the segments' folders stay, for they fence."""
    for segment, step in [(0, 10), (0, 20), (0, 30), (1, 40)]:
        write(tmp_path, segment, step)

    assert steps(tmp_path) == ["segment-0/step-000000000030", "segment-1/step-000000000040"]
    assert checkpoints.segments(tmp_path) == [0, 1]


def test_the_higher_segment_wins_over_the_higher_step(tmp_path: Path) -> None:
    """A segment that went back to an earlier step is still the newer one."""
    write(tmp_path, 0, 50)
    newest = write(tmp_path, 1, 40)

    assert checkpoints.newest_good(tmp_path) == newest


@pytest.mark.parametrize("torn", ["state cut", "state changed", "state gone", "manifest cut", "manifest gone"])
def test_a_torn_newest_gives_the_last_good_one(tmp_path: Path, torn: str) -> None:
    """Whatever is wrong with the newest, the reader takes the one before."""
    good = write(tmp_path, 0, 10)
    bad = write(tmp_path, 0, 20)
    file = bad.folder / ("manifest.json" if torn.startswith("manifest") else "state.pt")
    content = file.read_bytes()
    if torn.endswith("gone"):
        file.unlink()
    else:
        file.write_bytes(content[:-3] if torn.endswith("cut") else content[:-1] + b"?")

    assert checkpoints.newest_good(tmp_path) == good


def test_torn_ones_do_not_push_out_the_good_one(tmp_path: Path) -> None:
    """The second that is kept is one that verifies."""
    good = write(tmp_path, 0, 10)
    torn = write(tmp_path, 0, 20)
    torn.state.write_text("torn")
    newest = write(tmp_path, 0, 30)
    newest.state.write_text("torn too")

    assert checkpoints.newest_good(tmp_path) == good


def test_an_unfinished_one_is_not_seen_and_is_cleaned_up(tmp_path: Path) -> None:
    """A writer that dies leaves only a folder of another name, which the next writer removes."""

    def die(path: Path) -> None:
        path.write_text("half")
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        checkpoints.write(tmp_path, manifest(0, 10), die)

    assert checkpoints.newest_good(tmp_path) is None
    write(tmp_path, 0, 11)
    assert [path.name for path in (tmp_path / "segment-0").iterdir()] == ["step-000000000011"]


def test_the_same_step_may_be_written_again(tmp_path: Path) -> None:
    """The end of training often is a step that was checkpointed already; the later manifest counts."""
    write(tmp_path, 0, 10)
    checkpoints.write(tmp_path, manifest(0, 10, done=True), lambda path: path.write_text("state 10"))
    newest = checkpoints.newest_good(tmp_path)

    assert newest is not None
    assert newest.manifest.done
    assert steps(tmp_path) == ["segment-0/step-000000000010"]


def test_a_late_writer_is_fenced(tmp_path: Path) -> None:
    """Of two writers the one of the earlier segment is refused and leaves nothing."""
    write(tmp_path, 0, 10)
    newest = write(tmp_path, 1, 11)

    with pytest.raises(Fenced, match="belongs to segment 0, but segment 1 has begun"):
        write(tmp_path, 0, 99)
    assert checkpoints.newest_good(tmp_path) == newest


def test_a_writer_is_fenced_while_it_writes(tmp_path: Path) -> None:
    """A segment that begins while the state is being written makes it too late."""

    def slow(path: Path) -> None:
        path.write_text("state")
        (tmp_path / "segment-1").mkdir()

    with pytest.raises(Fenced):
        checkpoints.write(tmp_path, manifest(0, 10), slow)
    assert checkpoints.newest_good(tmp_path) is None


def test_another_jobs_checkpoint_is_not_taken(tmp_path: Path) -> None:
    """The manifest names the job."""
    write(tmp_path, 0, 10)

    assert checkpoints.newest_good(tmp_path, "other/train") is None
