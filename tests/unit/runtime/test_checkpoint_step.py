"""What the checkpoint step decides, as a table, and what it leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from voda_flows.runtime import checkpoints
from voda_flows.runtime.checkpoint import Segment, Verdict, judge, run
from voda_flows.runtime.errors import BadEnvironment
from voda_flows.runtime.segment_folder import End
from voda_flows.runtime.segment_record import told_by
from voda_flows.workflows.told import CHECKPOINT_OUTPUTS

DONE = End("done", 90, 9, "")
STOPPED = End("stopped", 40, 4, "")
FAILED = End("failed", 40, 4, "worker w1: RuntimeError: shapes")


def verdict(state: str, step: int, *, counted: bool = False) -> Verdict:
    """A verdict on an earlier segment."""
    return Verdict(state, step, counted, "", int(counted))


def left(end: End | None, status: str, step: int, *, done: bool = False) -> Segment:
    """What a segment left."""
    return Segment(number=0, driver_status=status, end=end, step=step, done=done)


@pytest.mark.parametrize(
    ("segment", "earlier", "expected"),
    [
        (left(DONE, "Succeeded", 90, done=True), [], ("done", False)),
        (left(None, "Error", 90, done=True), [], ("done", False)),  # all was written before the node went
        (left(DONE, "Succeeded", -1), [], ("done", False)),  # a command that keeps no checkpoints
        (left(STOPPED, "Succeeded", 40), [], ("resize", False)),
        (left(End("stopped", 0, 0, ""), "Succeeded", -1), [], ("resize", False)),  # before its first step
        (left(None, "Succeeded", -1), [verdict("lost", -1, counted=True)] * 2, ("resize", False)),  # no document yet
        (left(STOPPED, "Succeeded", 30), [], ("lost", False)),  # its checkpoint is torn; it got to 30 all the same
        (left(FAILED, "Failed", 30), [], ("lost", False)),  # got further than nothing
        (left(FAILED, "Failed", -1), [], ("lost", True)),
        (left(None, "Failed", -1), [], ("lost", True)),  # the driver itself was killed
        (left(None, "Error", -1), [], ("lost", False)),  # its pod was deleted, its node lost
        (left(FAILED, "Failed", 30), [verdict("lost", 30)], ("lost", True)),
        (left(FAILED, "Failed", -1), [verdict("lost", -1, counted=True)] * 2, ("failed", True)),
        (left(None, "Error", -1), [verdict("lost", -1, counted=True)] * 2, ("lost", False)),
        (left(FAILED, "Failed", 30), [verdict("lost", -1, counted=True)] * 2, ("lost", False)),
        (left(FAILED, "Failed", 9), [verdict("lost", 9), *[verdict("lost", 9, counted=True)] * 2], ("failed", True)),
        # two failures, a segment whose node was lost, one more failure: three in a row
        (
            left(FAILED, "Failed", -1),
            [verdict("lost", -1, counted=True), verdict("lost", -1), verdict("lost", -1, counted=True)],
            ("failed", True),
        ),
        # a stop as asked between failures begins the count anew
        (
            left(FAILED, "Failed", 9),
            [verdict("lost", 9, counted=True), verdict("lost", 9, counted=True), verdict("resize", 9)],
            ("lost", True),
        ),
    ],
)
def test_verdicts(segment: Segment, earlier: list[Verdict], expected: tuple[str, bool]) -> None:
    """With a retry limit of 2: done, resize, lost, or failed at the third segment in a row that got no further."""
    found = judge(segment, earlier, 2)

    assert (found.state, found.counted, found.step) == (*expected, segment.step)


def test_a_failure_tells_why() -> None:
    """The message has the count, the limit, where one could go on, and the script's own error."""
    assert judge(left(FAILED, "Failed", -1), [verdict("lost", -1, counted=True)], 1).message == (
        "expected to get further than step 0, but failed 2 times in a row without a new checkpoint (retry-limit is 1);"
        " no checkpoint yet; the last time: the driver says failed at step 40: worker w1: RuntimeError: shapes"
    )


@pytest.mark.parametrize(
    ("retry_limit", "starts", "expected"),
    [
        (3, 4, [("lost", 3), ("failed", 3)]),  # tried in two places all the same
        (3, 2, [("lost", 2), ("failed", 2)]),
        (3, 0, [("lost", 1), ("lost", 1), ("lost", 1), ("failed", 1)]),
        (10, 4, [("lost", 4), ("lost", 4), ("failed", 4)]),
        (1, 4, [("lost", 1), ("failed", 1)]),
        (0, 4, [("failed", 1)]),
    ],
)
def test_each_start_that_failed_counts(retry_limit: int, starts: int, expected: list[tuple[str, int]]) -> None:
    """A command that never works ends its job soon, but one segment alone never uses up the retry limit."""
    earlier: list[Verdict] = []
    while not earlier or earlier[-1].state == "lost":
        end = End("failed", 0, 0, "w0.4's command ended with exit code 1", starts)
        earlier.append(judge(left(end, "Failed", -1), earlier, retry_limit))

    assert [(found.state, found.failures) for found in earlier] == expected


def environment(root: Path, segment: int, **others: str) -> dict[str, str]:
    """What the template gives the step."""
    return {
        "VODA_CHECKPOINT_ROOT": str(root / "job"),
        "VODA_JOB": "u/train",
        "VODA_SEGMENT": str(segment),
        "VODA_DRIVER_STATUS": "Failed",
        "VODA_RETRY_LIMIT": "1",
        "VODA_OUTPUTS": " ".join(f"{name}={root / name}" for name in CHECKPOINT_OUTPUTS),
        **others,
    }


def leave(root: Path, segment: int, step: int | None, outcome: str) -> None:
    """What a segment left: a checkpoint at `step` and the driver's word."""
    if step is not None:
        body = checkpoints.Manifest(job="u/train", segment=segment, step=step, epoch=0, world_size=1, time_s=0.0)
        checkpoints.write(root / "job", body, lambda path: path.write_text("state"))
    folder = root / "job" / f"segment-{segment}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "end.json").write_text(json.dumps({"outcome": outcome, "step": step or 0, "epoch": 0, "message": "why"}))


def test_a_life_in_segments(tmp_path: Path) -> None:
    """Verdicts of earlier segments are remembered on the volume: the second failure without progress ends the job."""
    found = []
    for segment, (step, outcome) in enumerate([(5, "stopped"), (7, "failed"), (None, "failed"), (None, "failed")]):
        leave(tmp_path, segment, step, outcome)
        (tmp_path / "state").unlink(missing_ok=True)
        said = run(environment(tmp_path, segment))
        state = (tmp_path / "state").read_text() if (tmp_path / "state").exists() else None
        found.append((said.state, said.step, state))

    assert found == [("resize", 5, "resize"), ("lost", 7, "lost"), ("lost", 7, "lost"), ("failed", 7, None)]


def test_a_segment_that_left_nothing_is_judged(tmp_path: Path) -> None:
    """Even where the driver never ran, there is a verdict."""
    assert run(environment(tmp_path, 0, VODA_DRIVER_STATUS="Error")).state == "lost"
    assert (tmp_path / "job/segment-0/verdict.json").exists()


def test_a_torn_end_is_no_word(tmp_path: Path) -> None:
    """A file that was cut when the node went says nothing."""
    leave(tmp_path, 0, None, "done")
    (tmp_path / "job/segment-0/end.json").write_text('{"outcome": "do')

    assert run(environment(tmp_path, 0)).state == "lost"


def test_a_missing_variable_is_named() -> None:
    """Outside of its template the step says what it needs."""
    with pytest.raises(BadEnvironment, match="found a fault at 'VODA_CHECKPOINT_ROOT'"):
        run({})


def test_a_segment_is_told_to_who_cannot_see_the_volume(tmp_path: Path) -> None:
    """Outputs for people sum up the job so far, the record has the segment; a failed step tells them too."""
    leave(tmp_path, 0, 5, "stopped")
    folder = tmp_path / "job/segment-0"
    resizes = [
        {"kind": "start", "from_size": 0, "to_size": 1, "document_s": 90.0, "first_step_s": 100.0},
        {"kind": "grow", "from_size": 1, "to_size": 3, "last_step_s": 109.0, "first_step_s": 110.0, "still_s": 0.25},
        {"kind": "stop", "from_size": 3, "to_size": 0, "document_s": 119.0, "last_step_s": 120.0},
    ]
    row = {"kind": "epoch", "time_s": 115.0, "epoch": 0, "step": 5, "loss": 0.5, "metrics": {"accuracy": 0.875}}
    (folder / "resizes.jsonl").write_text("".join(json.dumps(record) + "\n" for record in resizes))
    (folder / "reports.jsonl").write_text(json.dumps(row) + "\n")
    first = told_by(record_of(tmp_path, 0))
    leave(tmp_path, 1, None, "failed")
    run(environment(tmp_path, 1))
    leave(tmp_path, 2, None, "failed")
    said = run(environment(tmp_path, 2))
    told = told_by((tmp_path / "record").read_text())

    assert said.state == "failed"
    assert {name: (tmp_path / name).read_text() for name in ("metric", "resizes", "gpu-seconds")} == {
        "metric": "accuracy 0.875",
        "resizes": "1 grow, 1 preempt",
        "gpu-seconds": "40",
    }
    assert (tmp_path / "why").read_text() == said.message
    assert told is not None
    assert first is not None
    assert (told.segment, told.verdict["state"], told.end["outcome"], told.rows) == (2, "failed", "failed", ())
    assert (first.end["outcome"], first.verdict["step"], first.resizes, first.rows) == (
        "stopped",
        5,
        tuple({**dict.fromkeys(("document_s", "last_step_s", "first_step_s", "still_s")), **one} for one in resizes),
        ({**row, "segment": 0},),
    )


def record_of(root: Path, segment: int) -> str:
    """The record that the step leaves of a segment."""
    run(environment(root, segment))
    return (root / "record").read_text()


def test_what_cannot_be_told_changes_no_decision(tmp_path: Path) -> None:
    """A script may report anything; the step warns, decides, and leaves the outputs to their defaults."""
    leave(tmp_path, 0, 5, "stopped")
    (tmp_path / "job/segment-0/resizes.jsonl").write_text('{"kind": "grow", "to_size": [1], "first_step_s": 1}\n' * 2)

    assert run(environment(tmp_path, 0)).state == "resize"
    assert (tmp_path / "state").read_text() == "resize"
    assert not (tmp_path / "record").exists()
