"""Runs the demo: a world of its own, submissions when their moment comes, a report at the end, nothing left running."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from scheduler_core.errors import Conflict, NotFound, VodaError
from voda_flows.control.settings import configure
from voda_flows.demo.script import ACTS, Act
from voda_flows.demo.verify import Check, checks
from voda_flows.local import up as local
from voda_flows.local.processes import is_running
from voda_flows.local.store import LocalStore
from voda_flows.objects import WORKFLOW_ENDED, phase_of
from voda_flows.report import jobs
from voda_flows.report.gather import gather
from voda_flows.report.page import page
from voda_flows.report.record import Record, document
from voda_flows.submission import documents, prepare
from voda_flows.worlds import open_local

NODES: Final = "2x2"
#: Quicker than in production, where a minute between two disturbances is nothing.
SETTINGS: Final = {"decide_interval_s": "5"}
#: An event that does not come in this time never will; the demo goes on, and its record will not hold.
PATIENCE_S: Final = 180.0
LIMIT_S: Final = 1500.0
#: A demo that is interrupted need not write checkpoints.
_DRAIN_S: Final = 2.0
NAMESPACE: Final = "default"


@dataclass(slots=True, kw_only=True)
class Director:
    """Submits each act when its moment has come; asked after every change of the world.

    Attributes:
        store: The world.
        root: Folder of the checkout, which holds ``templates/examples`` and is where training starts.
        clock: Seconds, monotonic.
        left: Acts to come.
        submitted: Workflows that were submitted.
        notes: What the viewer was told, newest last.
        since_s: When the last act was.
    """

    store: LocalStore
    root: Path
    clock: Callable[[], float] = time.monotonic
    left: list[Act] = field(default_factory=lambda: list(ACTS))
    submitted: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    began_s: float = 0.0
    since_s: float = 0.0

    def __post_init__(self) -> None:
        """The clock starts."""
        self.began_s = self.since_s = self.clock()

    def act(self) -> bool:
        """Submit what is due.

        Returns:
            Whether everything was submitted and has ended.

        Raises:
            VodaError: It takes far too long, or the engine has ended.
        """
        lives = {life.workflow: life for life in jobs.everything(self.store, NAMESPACE)}
        late = self.clock() - self.since_s > PATIENCE_S
        if self.left and (late or self.left[0].when(lives)):
            self._submit(self.left.pop(0), late=late)
        if self.clock() - self.began_s > LIMIT_S:
            raise VodaError(f"expected the demo to end within {LIMIT_S:g} s, it still goes on")
        return not self.left and self._has_ended()

    @property
    def note(self) -> str:
        """What is going on, in a line."""
        return self.notes[-1] if self.notes else ""

    def _submit(self, act: Act, *, late: bool) -> None:
        """Submit one act."""
        file = self.root / "templates" / "examples" / f"{act.example}.yaml"
        found, _ = documents.parse(file.read_text(encoding="utf-8"), source=file.name)
        for ready in prepare.prepared(found, prepare.Wishes(parameters={}), workdir=self.root):
            prepare.apply(self.store, ready.body)
        self.submitted.append(act.example)
        self.since_s = self.clock()
        self.notes.append(f"{act.told}{f' (not seen in {PATIENCE_S:g} s: submitted anyway)' if late else ''}")

    def _has_ended(self) -> bool:
        """Whether all Workflows have."""
        found = jobs.workflows(self.store, NAMESPACE)
        return all(phase_of(body) in WORKFLOW_ENDED for body in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it.

    Attributes:
        record: The record.
        checks: What it must show.
        page: The page for a browser.
        failed: Workflows that did not succeed.
    """

    record: Record
    checks: tuple[Check, ...]
    page: Path
    failed: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether everything succeeded and the record shows what it must."""
        return not self.failed and all(check.holds for check in self.checks)


def prepare_folder(folder: Path) -> Path:
    """An empty folder for the demo's state inside ``folder``; what an earlier demo left there is taken away.

    Returns:
        The home of local mode.

    Raises:
        Conflict: A demo still runs there, or the folder holds something else.
    """
    home = folder / "home"
    if home.exists() and is_running(home):
        raise Conflict(f"{folder}: expected no demo to run there, one does\nend it with `voda down --home {home}`")
    known = {"home", "report.html", "record.json"}
    strange = sorted(path.name for path in folder.iterdir() if path.name not in known) if folder.exists() else []
    if strange:
        raise Conflict(f"{folder}: expected an empty folder or an earlier demo's, found {strange[0]}")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    return home


def start(home: Path) -> LocalStore:
    """Bring up the demo's world."""
    store = open_local(home)
    configure(store, SETTINGS, where="the demo's settings")
    local.up(home, local.read_nodes(NODES))
    return store


def conclude(store: LocalStore, folder: Path) -> Outcome:
    """Gather the record, hold it against what it must show, and write page and record into the folder."""
    made = gather(store, folder / "home", jobs.everything(store, NAMESPACE))
    found = tuple(checks(made, len(ACTS)))
    whole = {**document(made), "checks": [asdict(check) for check in found]}
    (folder / "record.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    written = folder / "report.html"
    written.write_text(page(made, "Voda demo"), encoding="utf-8")
    phases = {body["metadata"]["name"]: phase_of(body) for body in jobs.workflows(store, NAMESPACE)}
    failed = [act.example for act in ACTS if phases.get(act.example) != "Succeeded"]
    return Outcome(record=made, checks=found, page=written, failed=tuple(failed))


def finish(home: Path, *, keep: bool) -> None:
    """End what still runs; unless it is kept, take the state away too."""
    local.down(home, drain_s=_DRAIN_S, purge=not keep)
    if not keep:
        shutil.rmtree(home, ignore_errors=True)


def root_folder() -> Path:
    """The folder that holds ``templates/examples``.

    Raises:
        NotFound: This is an installed package without them.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / "templates" / "examples" / f"{ACTS[0].example}.yaml").exists():
        raise NotFound(f"expected the examples in {root}/templates/examples, found none\nrun the demo from a checkout")
    return root
