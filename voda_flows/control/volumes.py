"""Whether a job's claim for checkpoints can be mounted wherever its pods may go: asked when its request is checked.

In: a claim's name. Out: what is wrong with it, in words, empty where nothing is. Access modes never change, so they are
asked for once in a while only; a claim that is not there is asked for each time, as somebody may make it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from scheduler_core.errors import Forbidden, NotFound
from voda_flows.store import ObjectStore

log = logging.getLogger(__name__)

CLAIM = "PersistentVolumeClaim"
_SHARED, _ONE_POD = "ReadWriteMany", "ReadWriteOncePod"
#: A claim may be deleted and made anew under its name.
_KNOWN_S = 60.0


class Claims:
    """The claims of a cluster; used by one thread.

    Args:
        store: Where they are; the account may read them.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, store: ObjectStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._modes: dict[tuple[str, str], tuple[float, tuple[str, ...]]] = {}

    def fault(self, namespace: str, name: str, num_nodes: int) -> str:
        """Why a job's pods cannot all mount a claim, empty where they can or nobody may say.

        Args:
            namespace: Of the job.
            name: Of the claim.
            num_nodes: Nodes on which its pods may be.
        """
        try:
            modes = self._modes_of(namespace, name)
        except NotFound:
            return f"expected a claim {name!r} in namespace {namespace!r} for its checkpoints, there is none: make it"
        except Forbidden as lacking:
            log.warning("claim=%s/%s unknown=%r", namespace, name, str(lacking))
            self._modes[namespace, name] = (self._clock(), (_SHARED,))
            return ""
        if _SHARED in modes or (num_nodes == 1 and modes != (_ONE_POD,)):
            return ""
        return (
            f"expected volume {name!r} to be one that all nodes can mount ({_SHARED}), its claim has "
            f"{', '.join(modes) or 'no access mode'}"
        )

    def _modes_of(self, namespace: str, name: str) -> tuple[str, ...]:
        now_s = self._clock()
        known = self._modes.get((namespace, name))
        if known is None or now_s - known[0] >= _KNOWN_S:
            claim = self._store.get(CLAIM, namespace, name)
            known = (now_s, tuple((claim.get("spec") or {}).get("accessModes") or ()))
            self._modes[namespace, name] = known
        return known[1]
