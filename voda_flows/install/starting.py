"""The scheduler started: a run of its cron workflow, in the place of those that an installation has made old.

A run has a copy of the pod that was its cron's when it began, and its retries start that pod again. Where the cron has
another by now, the run is ended as ``removing.py`` ends it, and one is started at once: who holds the Lease is settled
between the schedulers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from voda_flows.install.applying import document_key
from voda_flows.install.images import SCHEDULER
from voda_flows.install.removing import delete, runs_of
from voda_flows.kube.api import Api
from voda_flows.kube.store import KubeStore, Scope
from voda_flows.kube.usage import amount
from voda_flows.local.cron import manual_workflow
from voda_flows.objects import WORKFLOW_ENDED, Object, phase_of

#: Fields with quantities: Argo writes those of a run in a form of its own, ``1`` for ``1000m``.
_AMOUNTS: Final = frozenset({"requests", "limits"})
_AMOUNT: Final = "sizeLimit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What was done for a scheduler to run.

    Attributes:
        run: The run that was started.
        ended: Those that had an earlier pod, and were ended before.
    """

    run: str
    ended: tuple[str, ...] = ()


def has_scheduler(documents: Iterable[Object]) -> bool:
    """Whether a scheduler is among documents: not where they are for further namespaces with jobs."""
    return any(map(SCHEDULER.is_part, documents))


def start_scheduler(api: Api, documents: Iterable[Object]) -> Started | None:
    """Start a run of the scheduler, as ``argo submit --from cronwf/voda-scheduler`` would, where one is missing.

    Args:
        api: The API server, after the documents were applied to it.
        documents: The installation's.

    Returns:
        What was done; None where a run of the present version goes on, or there is no scheduler among the documents.

    Raises:
        NotFound: The cron workflow is not there.
    """
    key = next((document_key(body) for body in documents if SCHEDULER.is_part(body)), None)
    if key is None:
        return None
    store = KubeStore(api, Scope(namespaces=(key.namespace,)))
    cron = store.get(*key)
    live = [run for run in runs_of(api, key) if phase_of(run) not in WORKFLOW_ENDED and not run["spec"].get("shutdown")]
    old = [run for run in live if not _is_current(run, cron)]
    if live and not old:
        return None
    ended = tuple(removed.key.name for removed in delete(api, old, is_trial=False))
    made = store.create(manual_workflow(cron, datetime.now(UTC)))
    return Started(run=str(made["metadata"]["name"]), ended=ended)


def _is_current(run: Object, cron: Object) -> bool:
    """Whether a run has all that its cron says now; what it has beyond that comes from its controller's defaults."""
    wanted, found = _plain(cron["spec"]["workflowSpec"]), _plain(run["spec"])
    return all(found.get(name) == value for name, value in wanted.items())


def _plain(value: Any, field: str = "") -> Any:  # noqa: ANN401 - any part of a document
    """A part of a document without what is empty: Argo leaves some of that out, and writes some more."""
    if isinstance(value, dict):
        rows = {name: _plain(part, _AMOUNT if field in _AMOUNTS else name) for name, part in value.items()}
        return {name: part for name, part in rows.items() if part}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return amount(str(value)) if field == _AMOUNT else value
