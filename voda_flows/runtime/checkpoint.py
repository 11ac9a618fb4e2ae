"""The checkpoint step (`python -m voda_flows.runtime.checkpoint`): verifies what a segment left, decides what is next.

    what is there (driver's status, its end.json, newest good checkpoint, earlier verdicts) -> judge -> verdict

The verdict is `done`, `resize` (stopped as asked: wait at the gate and go on) or `lost` (it broke: go on from the
newest good checkpoint), the step's output `state`; or the step fails with the reason, when too many segments in a
row failed without getting further. Each verdict is left as `segment-<k>/verdict.json`, because the checkpoints that
would tell how far earlier segments got are dropped in time. What people want to know of the segment, without access
to the volume, goes into further outputs (`checkpoint_outputs.py`).
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from voda_flows.runtime import checkpoint_outputs, checkpoints
from voda_flows.runtime.errors import BadEnvironment
from voda_flows.runtime.segment_folder import DONE, STOPPED, End, write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERDICT = "verdict.json"
RESIZE = "resize"
END = "end.json"
# What Argo calls a driver whose pod was deleted or whose node went: nobody's fault, so it counts against nobody.
NODE_LOST = ("Error", "")
# A driver that ends well without leaving a word was stopped before it had a document, and so a folder.
SUCCEEDED = "Succeeded"


@dataclass(frozen=True)
class Verdict:
    """What comes next.

    Attributes:
        state: `done`, `resize`, `lost`, or `failed` (the step fails).
        step: step of the newest good checkpoint, -1 where there is none.
        counted: whether the segment counts as a failure without progress.
        message: why, for people.
        failures: for how many failures it counts: one, or each start that failed before anybody came to the door, so
            that a command that never works is not tried for long; but one segment alone never uses up the retry limit.
    """

    state: str
    step: int
    counted: bool
    message: str
    failures: int = 0


@dataclass(frozen=True)
class Segment:
    """What a segment left.

    Attributes:
        number: its number.
        driver_status: Argo's word for the driver's end (`Succeeded`, `Failed`, `Error`, ...).
        end: the driver's own word; None when it could not say.
        step: step of the job's newest good checkpoint, -1 where there is none.
        done: whether that checkpoint is of a training that had ended.
    """

    number: int
    driver_status: str
    end: End | None
    step: int
    done: bool


def judge(segment: Segment, earlier: Sequence[Verdict], retry_limit: int) -> Verdict:
    """Decide what comes after `segment`.

    Args:
        segment: what it left.
        earlier: verdicts of the segments before, oldest first.
        retry_limit: how many segments in a row may fail without a new checkpoint, at least 0.

    Returns:
        The verdict; `failed` when one more did than may.
    """
    outcome = segment.end.outcome if segment.end is not None else ""
    where = _where(segment.step)
    if segment.done or outcome == DONE:
        return Verdict("done", segment.step, False, f"training has ended; {where}")
    if segment.end is not None and outcome == STOPPED and (segment.step >= segment.end.step or segment.end.step <= 0):
        return Verdict(RESIZE, segment.step, False, f"stopped as asked; goes on from there: {where}")
    if segment.end is None and segment.driver_status == SUCCEEDED:
        return Verdict(RESIZE, segment.step, False, f"stopped before it began; {where}")
    reason = _reason(segment)
    progressed = segment.step > (earlier[-1].step if earlier else -1)
    node_lost = segment.end is None and segment.driver_status in NODE_LOST
    if progressed or node_lost:
        return Verdict("lost", segment.step, False, f"{reason}; {where}")
    own = _failures_of(segment, retry_limit)
    failures = _failures_in_a_row(earlier) + own
    if failures > retry_limit:
        message = (
            f"expected to get further than step {max(segment.step, 0)}, but failed {failures} times in a row without a"
            f" new checkpoint (retry-limit is {retry_limit}); {where}; the last time: {reason}"
        )
        return Verdict("failed", segment.step, True, message, own)
    return Verdict("lost", segment.step, True, f"{reason}; {where}", own)


def _failures_of(segment: Segment, retry_limit: int) -> int:
    """For how many failures a segment counts that got no further."""
    starts = segment.end.failed_starts if segment.end is not None else 0
    return max(1, min(starts, retry_limit))


def _failures_in_a_row(earlier: Sequence[Verdict]) -> int:
    """Counted failures since the last segment that got further; segments that lost their node are passed over."""
    failures = 0
    for index in range(len(earlier) - 1, -1, -1):
        verdict = earlier[index]
        before = earlier[index - 1].step if index else -1
        if verdict.step > before or verdict.state == RESIZE:
            break
        failures += verdict.failures
    return failures


def _where(step: int) -> str:
    return "no checkpoint yet" if step < 0 else f"newest good checkpoint at step {step}"


def _reason(segment: Segment) -> str:
    end = segment.end
    if end is None:
        return f"the driver ended without a word (Argo: {segment.driver_status or 'no status'})"
    if end.outcome == STOPPED:
        return f"it was stopped at step {end.step}, but no checkpoint of that step verifies"
    return f"the driver says {end.outcome} at step {end.step}: {end.message}"


def read_segment(root: Path, job: str, number: int, driver_status: str) -> Segment:
    """What segment `number` of `job` left under `root`; every checkpoint that counts is verified."""
    newest = checkpoints.newest_good(root, job)
    return Segment(
        number=number,
        driver_status=driver_status,
        end=_read_end(checkpoints.segment_folder(root, number) / END),
        step=newest.manifest.step if newest else -1,
        done=newest.manifest.done if newest else False,
    )


def read_verdicts(root: Path, before: int) -> list[Verdict]:
    """The verdicts on the segments before segment `before`, oldest first; one that is missing is passed over."""
    verdicts = []
    for number in checkpoints.segments(root):
        body = _read_json(checkpoints.segment_folder(root, number) / VERDICT) if number < before else None
        if body is not None:
            counted = bool(body["counted"])
            failures = max(_int(body.get("failures")), 1) if counted else 0
            verdicts.append(Verdict(str(body["state"]), _int(body["step"]), counted, "", failures))
    return verdicts


def _read_end(path: Path) -> End | None:
    body = _read_json(path)
    if body is None or not isinstance(body.get("outcome"), str):
        return None
    return End(
        outcome=str(body["outcome"]),
        step=_int(body.get("step")),
        epoch=_int(body.get("epoch")),
        message=str(body.get("message") or ""),
        failed_starts=max(_int(body.get("failed_starts")), 0),
    )


def _read_json(path: Path) -> dict[str, object] | None:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # not there, or torn when the node went: the same as nothing said
    return body if isinstance(body, dict) else None


def _int(value: object) -> int:
    return value if isinstance(value, int) else -1


def run(environment: Mapping[str, str]) -> Verdict:
    """Judge the segment that `environment` names, leave the verdict on the volume, say the state to the template.

    Raises:
        BadEnvironment: a variable is missing or wrong.
    """
    try:
        root = Path(environment["VODA_CHECKPOINT_ROOT"])
        job = environment["VODA_JOB"]
        number = int(environment["VODA_SEGMENT"])
        retry_limit = int(environment.get("VODA_RETRY_LIMIT") or 3)
        files = checkpoint_outputs.files(environment)
    except (KeyError, ValueError) as fault:
        message = (
            "checkpoint step: expected VODA_CHECKPOINT_ROOT, VODA_JOB, VODA_OUTPUTS with a file for 'state', and"
            f" numbers in VODA_SEGMENT and VODA_RETRY_LIMIT, found a fault at {fault}; run the step from the"
            " template, which sets them"
        )
        raise BadEnvironment(message) from fault
    segment = read_segment(root, job, number, environment.get("VODA_DRIVER_STATUS", ""))
    verdict = judge(segment, read_verdicts(root, number), retry_limit)
    folder = checkpoints.segment_folder(root, number)
    folder.mkdir(parents=True, exist_ok=True)  # a driver that never ran has left none
    write_atomically(folder / VERDICT, json.dumps(asdict(verdict)) + "\n")
    if verdict.state != "failed":
        files["state"].write_text(verdict.state, encoding="utf-8")
    checkpoint_outputs.leave(files, root, number, asdict(verdict))
    return verdict


def main() -> int:
    """The step.

    Returns:
        0, or 1 when the job has failed.
    """
    try:
        verdict = run(os.environ)
    except BadEnvironment as fault:
        sys.stderr.write(f"Error: {fault}\n")
        return 1
    line = (
        f"job={os.environ['VODA_JOB']} segment={os.environ['VODA_SEGMENT']} state={verdict.state} {verdict.message}\n"
    )
    sys.stderr.write(line)
    return 1 if verdict.state == "failed" else 0


if __name__ == "__main__":
    sys.exit(main())
