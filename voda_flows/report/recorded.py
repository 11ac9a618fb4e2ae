"""The scheduler's older rounds, from its records on disk: the history in the store holds only the newest.

In: the folder of records (``control/records.py`` writes it). Out: rounds in the history's form. Reads files only; a
record that cannot be read is passed over, the others still explain what they can.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from voda_flows.objects import Object


def recorded(folder: Path, names: Mapping[str, str], before_s: float) -> tuple[Object, ...]:
    """Rounds before the history begins, oldest first.

    Args:
        folder: Where records are, a folder each.
        names: ``<workflow>/<job-name>`` by job id; jobs without a name here are left out.
        before_s: Rounds from then on are known already, seconds since the epoch.

    Returns:
        The rounds; none where there are no records.
    """
    found = []
    for path in sorted(folder.glob("*/decision.json")):
        try:
            row = _row(json.loads(path.read_text(encoding="utf-8")), names)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if row["time_s"] >= before_s:
            break
        found.append(row)
    return tuple(found)


def _row(body: Object, names: Mapping[str, str]) -> Object:
    """A record as a row of the history."""
    target = body["decision"]["target"]
    done = [action for action in body["done"] if action["job_id"] in names]
    return {
        "time_s": float(body["time_s"]),
        "decision": target["decision"],
        "policy": target["policy"],
        "gpus": {names[job]: gpus for job, gpus in target["allocation"]["gpus_by_job"].items() if job in names},
        "actions": [{"job": names[one["job_id"]], **one} for one in done if one["action"] != "Announce"],
        "queued": {names[one["job_id"]]: one["message"] for one in done if one["action"] == "Announce"},
    }
