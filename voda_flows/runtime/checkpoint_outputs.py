"""What the checkpoint step says beside its decision: outputs that a Workflow shows to who cannot see the job's volume.

In: the job's folder and the verdict. Out: files that Argo reads as the step's outputs: `record` (the segment for
programs, `segment_record.py`), and for people `why`, `metric`, `resizes` and `gpu-seconds` (`job_totals.py`). Saying
is not deciding: whatever goes wrong here is told in the step's log, and the decision stands.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voda_flows.runtime import checkpoints
from voda_flows.runtime.job_totals import totals
from voda_flows.runtime.reports import REPORTS
from voda_flows.runtime.segment_record import Told, lines_of, record_text

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Pairs `<output>=<file>`, apart by spaces.
VARIABLE = "VODA_OUTPUTS"
STATE, RECORD, WHY, METRIC, RESIZES, GPU_SECONDS = "state", "record", "why", "metric", "resizes", "gpu-seconds"
_WHY_LENGTH = 300


def files(environment: Mapping[str, str]) -> dict[str, Path]:
    """The file of each output.

    Raises:
        KeyError: the variable, or `state` in it, is missing.
        ValueError: it is no list of pairs.
    """
    named = dict(pair.split("=", 1) for pair in environment[VARIABLE].split())
    found = {name: Path(path) for name, path in named.items()}
    return {STATE: found.pop(STATE), **found}


def leave(paths: Mapping[str, Path], root: Path, segment: int, verdict: Mapping[str, Any]) -> None:
    """Write every output but the decision.

    Args:
        paths: the files of the outputs; those that have none are not said.
        root: the job's folder.
        segment: the segment's number.
        verdict: what was decided.
    """
    try:
        for name, text in _said(root, segment, verdict).items():
            if name in paths:
                paths[name].write_text(text, encoding="utf-8")
    except (OSError, ValueError, TypeError, AttributeError, ArithmeticError) as fault:
        sys.stderr.write(f"Warning: the segment's record is not told: {type(fault).__name__}: {fault}\n")


def _said(root: Path, segment: int, verdict: Mapping[str, Any]) -> dict[str, str]:
    """The outputs by name."""
    folder, so_far = checkpoints.segment_folder(root, segment), totals(root)
    told = Told(
        segment=segment,
        end=_document(folder / "end.json"),
        verdict=verdict,
        progress=_document(folder / "progress.json"),
        resizes=lines_of(folder / "resizes.jsonl"),
        rows=lines_of(folder / REPORTS),
    )
    return {
        RECORD: record_text(told),
        WHY: str(verdict.get("message") or "")[:_WHY_LENGTH],
        METRIC: so_far.metric,
        RESIZES: so_far.resizes,
        GPU_SECONDS: f"{so_far.gpu_seconds:.0f}",
    }


def _document(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty where there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
