"""Area local, nonsense and haste: bad inputs are one clear fault each, and 200 submits in a minute are all there.

Through the command line as people run it, on a store of its own; nothing runs the jobs, so the store holds exactly
what was submitted.
"""

from __future__ import annotations

import io
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from multiprocessing.pool import ThreadPool
from pathlib import Path

from tests.show.record import ROOT
from tests.show.registry import Row, at_least, at_most, exactly, figure
from tests.unit.report.world import node
from tests.unit.submission.bad_inputs import BAD_INPUTS, GOOD, Bad, given, missing
from voda_flows.cli import run
from voda_flows.local.store import LocalStore
from voda_flows.local.up import shipped_templates

SUBMITS = 200
PEOPLE = 4
LEAST_BAD_INPUTS = 40
LIMIT_S = 60.0


@figure(area="local")
def bad_inputs(quick: bool) -> Iterator[Row]:
    """Every row of the table of bad inputs: exit code, place, path and words; the store is the same after."""
    with tempfile.TemporaryDirectory(prefix="voda-show-") as scratch, closing(_world(Path(scratch))) as store:
        before = store.revision()
        with ThreadPool(PEOPLE) as people:
            rows = [(bad, Path(scratch, f"bad-{number}.yaml")) for number, bad in enumerate(BAD_INPUTS)]
            wrong = [why for why in people.starmap(_not_as_told, rows) if why]
        for line in wrong:
            sys.stderr.write(f"{line}\n")
        yield at_least("bad inputs tried", len(BAD_INPUTS), LEAST_BAD_INPUTS, "files")
        yield exactly("bad inputs refused with one fault, at its place", len(BAD_INPUTS) - len(wrong), len(BAD_INPUTS))
        yield exactly("changes of the store by bad inputs", store.revision() - before, 0)


@figure(area="local")
def odd_but_right(quick: bool) -> Iterator[Row]:
    """What is accepted although it looks wrong: one file twice in a second, more GPUs than there are."""
    with tempfile.TemporaryDirectory(prefix="voda-show-") as scratch, closing(_world(Path(scratch))) as store:
        file = Path(scratch, "job.yaml")
        file.write_text(GOOD.replace("name: mine", "generateName: mine-"))
        both = [_start(Path(scratch), "submit", str(file), "-o", "name") for _ in range(2)]
        names = {process.communicate()[0].strip() for process in both}
        kept = {body["metadata"]["name"] for body in store.list("Workflow")}
        yield exactly("two submits of one file in one second, jobs", len(names & kept), 2)
        file.write_text(given("max-gpus", "9").replace("mine", "wide"))
        clipped = _voda(Path(scratch), "submit", str(file))
        yield exactly("max above the cluster, said", _warning(clipped.stderr), "it gets 4 at most")
        file.write_text(f"{given('min-gpus', '8')}      - {{name: max-gpus, value: '8'}}\n".replace("mine", "big"))
        waiting = _voda(Path(scratch), "submit", str(file))
        yield exactly("min above the cluster, said", _warning(waiting.stderr), "it waits until there are more")
        yield exactly("exit codes of both", (clipped.returncode, waiting.returncode), (0, 0))


@figure(area="local")
def many_submits(quick: bool) -> Iterator[Row]:
    """200 submits by several people at once: all there, each once, in the order in which each was answered."""
    with tempfile.TemporaryDirectory(prefix="voda-show-") as scratch, closing(_world(Path(scratch))) as store:
        start_s = time.monotonic()
        context = multiprocessing.get_context("spawn")
        with context.Pool(PEOPLE) as people:
            rows = [(scratch, number, SUBMITS // PEOPLE) for number in range(PEOPLE)]
            codes = people.starmap(submit_many, rows)
        took_s = time.monotonic() - start_s
        found = sorted(store.list("Workflow"), key=lambda body: int(body["metadata"]["resourceVersion"]))
        names = [body["metadata"]["name"] for body in found]
        created = [body["metadata"]["creationTimestamp"] for body in found]
    wanted = [[f"job-{number}-{index}" for index in range(SUBMITS // PEOPLE)] for number in range(PEOPLE)]
    yield exactly("submits that were answered with 0", sum(code == 0 for each in codes for code in each), SUBMITS)
    yield exactly("jobs that are there, each once", len(set(names)), SUBMITS)
    in_order = [[name for name in names if name.startswith(f"job-{number}-")] for number in range(PEOPLE)] == wanted
    yield exactly("everybody's in the order of their submits", in_order, expected=True)
    yield exactly("their times in the order of their versions", created == sorted(created), expected=True)
    yield at_most(f"{SUBMITS} submits by {PEOPLE} at once", took_s, LIMIT_S, "s")


def _not_as_told(bad: Bad, file: Path) -> str:
    """Submit one bad input; what of the answer is not as the table says."""
    file.write_bytes(bad.text if isinstance(bad.text, bytes) else bad.text.encode())
    ended = _voda(file.parent, "submit", str(file))
    why = missing(bad, str(file), ended.returncode, ended.stderr)
    return f"{bad.name}: {why}" if why else ""


def submit_many(scratch: str, number: int, count: int) -> list[int]:
    """Submit jobs one after the other, as one person; the exit codes."""
    file, codes = Path(scratch, f"job-{number}.yaml"), list[int]()
    for index in range(count):
        file.write_text(GOOD.replace("mine", f"job-{number}-{index}"))
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            codes.append(run(["submit", str(file), "--home", str(Path(scratch, "home"))]))
    return codes


def _world(scratch: Path) -> LocalStore:
    """A store with two nodes of two slots and the shipped templates."""
    store = LocalStore(scratch / "home")
    for body in (node("n0", 2), node("n1", 2), *shipped_templates()):
        store.create(body)
    return store


def _start(scratch: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "voda_flows.cli", *arguments, "--home", str(scratch / "home")]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _voda(scratch: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    process = _start(scratch, *arguments)
    out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _warning(said: str) -> str:
    """The end of the first warning about a job."""
    found = re.search(r"warning: job .*: ([^:\n]*)$", said, re.MULTILINE)
    return found[1] if found else ""
