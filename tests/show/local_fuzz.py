"""Area local, the fuzzers: what users and the network may write is thrown at its readers, for minutes.

One process a target, all at once, each under a watchdog that ends it when one case takes too long.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.laws.fuzzing import TARGETS
from tests.show.fuzzer import COUNT
from tests.show.record import ROOT
from tests.show.registry import Row, at_least, exactly, figure, information

FULL_S, QUICK_S = 600.0, 20.0
HANG_S = 60.0
"""A case takes milliseconds; a process that has not gone on for so long hangs, however busy the machine is."""
LOOK_S = 0.5


@dataclass(kw_only=True)
class Thrower:
    """One fuzzer's process as its watchdog sees it.

    Attributes:
        target: What it throws at.
        process: The process.
        journal: Where it writes how many cases there were, and the last one.
        said: Its output.
        count: Cases when it was looked at last.
        moved_s: When that number last changed.
        hung: The case at which it was ended, empty where it was not.
    """

    target: str
    process: subprocess.Popen[bytes]
    journal: Path
    said: Path
    count: int = 0
    moved_s: float
    hung: str = ""

    def look(self) -> None:
        """Note how far it is; end it where one case takes too long."""
        content = self.journal.read_bytes() if self.journal.exists() else b""
        count = COUNT.unpack_from(content)[0] if len(content) > COUNT.size else 0
        if count != self.count:
            self.count, self.moved_s = count, time.monotonic()
        elif time.monotonic() > self.moved_s + HANG_S:
            self.hung = content[COUNT.size :].split(b"\n", 1)[0].decode(errors="replace") or "its start"
            self.process.kill()


@figure(area="local")
def fuzzers(quick: bool) -> Iterator[Row]:
    """YAML reader, template substitution and allocation document: no crash but the documented refusals, no hang."""
    first_seed = secrets.randbelow(1_000_000_000)
    seconds = QUICK_S if quick else FULL_S
    with tempfile.TemporaryDirectory(prefix="voda-fuzz-") as scratch:
        throwers = [_start(Path(scratch), target, seconds, first_seed) for target in TARGETS]
        while any(thrower.process.poll() is None for thrower in throwers):
            for thrower in throwers:
                thrower.look()
            time.sleep(LOOK_S)
        for thrower in throwers:
            thrower.look()
            yield from _rows(thrower, seconds)
    yield information("seed of the fuzzers", str(first_seed))


def _start(scratch: Path, target: str, seconds: float, first_seed: int) -> Thrower:
    name = target.replace(" ", "-")
    journal, said = scratch / f"{name}.case", scratch / f"{name}.out"
    command = [sys.executable, "-m", "tests.show.fuzzer", target, str(seconds), str(first_seed), str(journal)]
    with said.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    return Thrower(target=target, process=process, journal=journal, said=said, moved_s=time.monotonic())


def _rows(thrower: Thrower, seconds: float) -> Iterator[Row]:
    """What came of one fuzzer; what it found goes to stderr whole."""
    crashed = thrower.process.returncode != 0 and not thrower.hung
    if crashed:
        sys.stderr.write(f"{thrower.target}:\n{thrower.said.read_text(errors='replace')[-8000:]}\n")
    if thrower.hung:
        sys.stderr.write(f"{thrower.target} hung at {thrower.hung[:8000]}\n")
    yield at_least(f"{thrower.target}, thrown in {seconds:.0f} s", thrower.count, 1, "cases")
    yield exactly(f"{thrower.target}, crashes and hangs", int(crashed) + bool(thrower.hung), 0)
