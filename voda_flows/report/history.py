"""The scheduler's own account of its rounds: where it is kept, and as words. ``story`` finds reasons in it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Final

from scheduler_core.errors import Forbidden, NotFound
from voda_flows.objects import Object
from voda_flows.store import ObjectStore
from voda_flows.world import NotGiven

HISTORY_MAP: Final = "voda-history"
ROWS: Final = "rows"


def history(store: ObjectStore, namespace: str) -> tuple[Object, ...]:
    """The rounds that are kept (``control/records.py`` writes them), oldest first.

    Args:
        store: Where the ConfigMap is.
        namespace: The scheduler's own.

    Returns:
        None before the scheduler has run, where one may not read it, or where somebody else wrote what cannot be read.
    """
    try:
        rows = json.loads((store.get("ConfigMap", namespace, HISTORY_MAP).get("data") or {}).get(ROWS) or "[]")
    except (NotFound, Forbidden, NotGiven, ValueError):
        return ()
    return tuple(row for row in rows if isinstance(row, dict)) if isinstance(rows, list) else ()


def decisions(rows: Sequence[Object], count: int) -> tuple[str, ...]:
    """The last rounds in one line each, newest last."""
    said = [f"{time.strftime('%H:%M:%S', time.localtime(row['time_s']))} {words(row)}" for row in rows]
    return tuple(said[-count:])


def words(row: Object) -> str:
    """A round in words.

    >>> words({"actions": [{"job": "a/train", "action": "Stop", "reason": "b goes first"}], "fault": ""})
    'a stops at a checkpoint (b goes first)'
    """
    actions = row.get("actions") or ()
    said = [f"{short_name(str(action.get('job', '')))} {done}" for action in actions if (done := deed(action))]
    said += [f"{short_name(job)} changed meanwhile, is looked at again" for job in row.get("conflicts") or ()]
    if row.get("fault"):
        said.append(f"fault: {row['fault']}")
    if not said:
        gpus = ", ".join(f"{short_name(job)} {count}" for job, count in sorted((row.get("gpus") or {}).items()))
        said.append(f"decision {row.get('decision', '')}: {gpus or 'nobody has GPUs'}")
    return "; ".join(said)


def deed(action: Object) -> str:
    """What an action of a round did to its job, as words to put behind the job's name; empty where nobody asks.

    >>> deed({"action": "Grow", "workers": [{"node": "n1", "gpus": 2}]})
    'gets 2 more on n1'
    """
    workers = ", ".join(_placed(action))
    said = {
        "Grant": f"starts on {workers}",
        "Grow": f"gets {workers.replace(' on ', ' more on ')}",
        "Publish": f"trains on {len(action.get('worker_ids') or ())}",
        "Stop": f"stops at a checkpoint ({action.get('reason', '')})",
        "Evict": f"loses {action.get('worker_id', '')} ({action.get('reason', '')})",
        "Abandon": f"gives up its {action.get('role', '')} ({action.get('reason', '')})",
        "Refuse": f"is refused: {action.get('reason', '')}",
    }
    return said.get(str(action.get("action")), "")


def short_name(job: str) -> str:
    """A job's name without the usual job-name."""
    return job.removesuffix("/train")


def _placed(action: Object) -> Iterator[str]:
    """GPUs by node: ``2 on n0``."""
    count: dict[str, int] = {}
    for worker in action.get("workers") or ():
        count[worker["node"]] = count.get(worker["node"], 0) + int(worker["gpus"])
    for node, gpus in sorted(count.items()):
        yield f"{gpus} on {node}"
