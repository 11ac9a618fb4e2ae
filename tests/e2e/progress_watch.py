"""What people see of jobs' progress while they run, looked at after every change of the store.

In: a world that is up. Out: how often something that was shown went back, in ``voda`` and in Argo's own field.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.e2e.local_world import NAMESPACE, LocalWorld
from voda_flows.local.store import LocalStore
from voda_flows.report import jobs

if TYPE_CHECKING:
    from types import TracebackType

_LOOK_S = 0.5


@dataclass(kw_only=True)
class Shown:
    """The latest of a job.

    Attributes:
        fraction: part done as ``voda list`` shows it, 0 to 1.
        done: what Argo's own field counts as done.
    """

    fraction: float = 0.0
    done: int = 0


@dataclass(kw_only=True)
class Seen:
    """What was seen of all jobs.

    Attributes:
        looks: times that a job was looked at.
        back: times that ``voda``'s share of a job was smaller than before, each with the job and both values.
        argo_back: the same of what Argo's own field counts as done.
    """

    looks: int = 0
    back: list[str] = field(default_factory=list)
    argo_back: list[str] = field(default_factory=list)


class ProgressWatch:
    """Looks from its own thread, for as long as its block lasts."""

    def __init__(self, world: LocalWorld) -> None:
        self.seen = Seen()
        self._home = world.home
        self._shown: dict[str, Shown] = {}
        self._over = threading.Event()
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._live, name="progress-watch", daemon=True)

    def __enter__(self) -> Seen:
        """Begin to look."""
        self._thread.start()
        return self.seen

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Look once more, and no more.

        Raises:
            RuntimeError: The looking broke off, so what was seen says nothing.
        """
        self._over.set()
        self._thread.join()
        if self._fault is not None and error is None:
            raise RuntimeError("expected to see all progress, the looking broke off") from self._fault

    def _live(self) -> None:
        store = LocalStore(self._home)
        try:
            last = False
            while not last:
                last = self._over.is_set()
                revision = store.revision()
                self._look(store)
                if not last:
                    store.wait(revision, _LOOK_S)
        except BaseException as fault:  # noqa: BLE001 - told by the thread that asks for what was seen
            self._fault = fault
        finally:
            store.close()

    def _look(self, store: LocalStore) -> None:
        for one in jobs.every(store, NAMESPACE):
            name = one.workflow["metadata"]["name"]
            shown = self._shown.setdefault(name, Shown())
            done = _done(str((one.workflow.get("status") or {}).get("progress", "")))
            told = [life.fraction for life in one.lives if life.share != "-"]
            fraction = max(told, default=0.0 if not one.lives else shown.fraction)
            if fraction < shown.fraction:
                self.seen.back.append(f"{name}: {shown.fraction:.4f} -> {fraction:.4f}")
            if done < shown.done:
                self.seen.argo_back.append(f"{name}: {shown.done} -> {done}")
            shown.fraction, shown.done = fraction, done
            self.seen.looks += 1


def _done(progress: str) -> int:
    """What Argo counts as done; 0 before it counts.

    >>> _done("53/104"), _done("")
    (53, 0)
    """
    done = progress.partition("/")[0]
    return int(done) if done.isdigit() else 0
