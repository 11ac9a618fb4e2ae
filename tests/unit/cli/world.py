"""A store with hand-made objects, and the command line on it."""

from __future__ import annotations

import io
import json
import os
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.unit.report.world import Building, node
from voda_flows.cli import run
from voda_flows.local.pod import start_ticks, take_lock, write_whole
from voda_flows.local.processes import lock_path
from voda_flows.local.store import LocalStore
from voda_flows.local.up import shipped_templates
from voda_flows.objects import Object


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a command line came to: exit code, stdout, stderr."""

    code: int
    out: str
    err: str


@cache
def _first_state() -> bytes:
    """The state of a world in which nothing has happened yet; made once, since hundreds of tests begin with it."""
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder))
        for body in (node("n0", 2), node("n1", 2), *shipped_templates()):
            store.create(body)
        store.close()
        return (Path(folder) / "state.db").read_bytes()


class World:
    """A home with a store."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._lock: int | None = None
        home.mkdir(parents=True, exist_ok=True)
        (home / "state.db").write_bytes(_first_state())
        self.store = LocalStore(home)

    def start(self) -> None:
        """Stand in for the engine: what it writes and holds while it runs."""
        self._lock = take_lock(lock_path(self.home))
        write_whole(self.home / "engine.json", {"pid": os.getpid(), "ticks": start_ticks()})

    def stop(self) -> None:
        """No engine runs any more."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def add(self, job: Building) -> Object:
        """Put a hand-made job and its pods into the store; the store gives the uid."""
        made = self.store.create(job.workflow())
        for pod in job.pods.values():
            phase = pod["status"]["phase"]
            self.store.create({**pod, "status": {"phase": phase}})
        return made

    def log(self, pod: str, text: str) -> None:
        """Write a pod's log."""
        uid = self.store.get("Pod", "default", pod)["metadata"]["uid"]
        folder = self.home / "pods" / uid
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "main.log").write_text(text, encoding="utf-8")

    def end_pods(self, workflow: str, phase: str = "Succeeded") -> None:
        """All pods of a Workflow have ended."""
        for pod in self.store.list("Pod", "default", {"workflows.argoproj.io/workflow": workflow}):
            self.store.merge_patch("Pod", "default", pod["metadata"]["name"], {"status": {"phase": phase}})

    def voda(self, *arguments: str) -> Said:
        """Run a command line in this world."""
        out, err = io.StringIO(), io.StringIO()
        before = os.environ.get("VODA_HOME")
        os.environ["VODA_HOME"] = str(self.home)
        try:
            with redirect_stdout(out), redirect_stderr(err):
                code = run(arguments)
        finally:
            if before is None:
                del os.environ["VODA_HOME"]
            else:
                os.environ["VODA_HOME"] = before
        return Said(code=code, out=out.getvalue(), err=err.getvalue())

    def json(self, *arguments: str) -> Object:
        """A command line's result as JSON."""
        said = self.voda(*arguments, "-o", "json")
        assert said.code == 0, said.err
        found: Object = json.loads(said.out)
        return found
