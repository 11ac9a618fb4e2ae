"""Runs the demo on its stage: submissions when their moment comes, then the record, what it must show, and a page."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from scheduler_core.errors import Conflict, NotFound, VodaError
from voda_flows.demo.script import ACTS, Act
from voda_flows.demo.stage import Stage
from voda_flows.demo.verify import Check, checks
from voda_flows.objects import WORKFLOW_ENDED, phase_of
from voda_flows.report import jobs
from voda_flows.report.gather import gather
from voda_flows.report.lives import JobLife
from voda_flows.report.page import page
from voda_flows.report.record import Record, document
from voda_flows.submission import documents, prepare

_MADE: Final = frozenset({"home", "report.html", "record.json"})
#: An event that does not come in this time never will; the demo goes on, and its record will not hold.
PATIENCE_S: Final = 180.0
LIMIT_S: Final = 1500.0


@dataclass(slots=True, kw_only=True)
class Director:
    """Submits each act when its moment has come; asked after every change of the world.

    Attributes:
        stage: Where it plays.
        root: Folder of the checkout, which holds ``templates/examples``.
        clock: Seconds, monotonic.
        left: Acts to come.
        submitted: Workflows that were submitted.
        notes: What the viewer was told, newest last.
        since_s: When the last act was.
    """

    stage: Stage
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
        lives = {life.workflow: life for life in jobs_of_demo(self.stage)}
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
        stage = self.stage
        wishes = prepare.Wishes(parameters={}, namespace=stage.namespace)
        for ready in prepare.prepared(found, wishes, workdir=stage.workdir):
            prepare.apply(stage.world.store, stage.placed(ready.body))
        self.submitted.append(act.example)
        self.since_s = self.clock()
        self.notes.append(f"{act.told}{f' (not seen in {PATIENCE_S:g} s: submitted anyway)' if late else ''}")

    def _has_ended(self) -> bool:
        """Whether all Workflows have."""
        found = jobs.workflows(self.stage.world.store, self.stage.namespace)
        return all(phase_of(body) in WORKFLOW_ENDED for body in found if body["metadata"]["name"] in self.submitted)


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


def prepare_folder(folder: Path) -> None:
    """See that a folder is there that holds nothing but what an earlier demo has left.

    Raises:
        Conflict: It holds something else.
    """
    strange = sorted(path.name for path in folder.iterdir() if path.name not in _MADE) if folder.exists() else []
    if strange:
        raise Conflict(f"{folder}: expected an empty folder or an earlier demo's, found {strange[0]}")
    folder.mkdir(parents=True, exist_ok=True)


def conclude(stage: Stage, folder: Path, *, resizes: bool = True) -> Outcome:
    """Gather the record, hold it against what it must show, and write page and record into the folder.

    Args:
        stage: Where it played.
        folder: Where page and record go.
        resizes: Whether the policy resizes running jobs.
    """
    store = stage.world.store
    made = gather(store, stage.world.home, jobs_of_demo(stage))
    found = tuple(checks(made, len(ACTS), resizes=resizes))
    whole = {**document(made), "checks": [asdict(check) for check in found]}
    (folder / "record.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    written = folder / "report.html"
    written.write_text(page(made, "Voda demo"), encoding="utf-8")
    phases = {body["metadata"]["name"]: phase_of(body) for body in jobs.workflows(store, stage.namespace)}
    failed = [act.example for act in ACTS if phases.get(act.example) != "Succeeded"]
    return Outcome(record=made, checks=found, page=written, failed=tuple(failed))


def jobs_of_demo(stage: Stage) -> tuple[JobLife, ...]:
    """The demo's jobs, in order of submission; there may be others."""
    names = {act.example for act in ACTS}
    return tuple(life for life in jobs.everything(stage.world.store, stage.namespace) if life.workflow in names)


def root_folder() -> Path:
    """The folder that holds ``templates/examples``.

    Raises:
        NotFound: This is an installed package without them.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / "templates" / "examples" / f"{ACTS[0].example}.yaml").exists():
        raise NotFound(f"expected the examples in {root}/templates/examples, found none\nrun the demo from a checkout")
    return root
