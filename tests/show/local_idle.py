"""Area local, rest: what local mode costs with nothing to do, and with a thousand ended jobs in its state."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from scheduler_core.cycle import run_cycle
from scheduler_core.model.params import Params
from tests.e2e.local_world import of_home
from tests.show.commands import run
from tests.show.ended_world import ended_jobs
from tests.show.registry import Row, at_most, exactly, figure, information, median_and_p95, percentile
from voda_flows.config import Settings
from voda_flows.control.enforce import StoreEnforcer
from voda_flows.control.observe import StoreObserver
from voda_flows.control.reports import Reports
from voda_flows.control.targets import StoredTarget
from voda_flows.local import up as local
from voda_flows.local.clock import EvenClock
from voda_flows.local.engine import Engine
from voda_flows.local.nodes import nodes_of_shape
from voda_flows.local.store import LocalStore

JOBS = 1000
IDLE_S, IDLE_S_QUICK = 120.0, 20.0
SETTLE_S = 10.0
LOOK_S = 1.0
TICKS = os.sysconf("SC_CLK_TCK")


@figure(area="local")
def idle(quick: bool) -> Iterator[Row]:
    """`voda up` and nothing else: processor time and memory of all its processes together."""
    span_s = IDLE_S_QUICK if quick else IDLE_S
    with tempfile.TemporaryDirectory(prefix="voda-idle-") as scratch:
        home = Path(scratch)
        local.up(home)
        try:
            time.sleep(SETTLE_S)  # the engine starts the scheduler, which reads its settings and looks once
            before, began_s = _cpu_s(home), time.monotonic()
            spent: dict[int, float] = {}
            while (took_s := time.monotonic() - began_s) < span_s:
                time.sleep(LOOK_S)
                spent |= _cpu_s(home)  # one that ends in between counts with what it had at its last look
            memory_mb, names = _memory_mb(home)
        finally:
            local.down(home, drain_s=5)
    share = sum(now_s - before.get(pid, 0.0) for pid, now_s in spent.items()) / took_s
    yield at_most(f"idle: all processes together, over {took_s:.0f} s", 100 * share, 2, "% of a core")
    yield at_most("idle: their memory (shared pages counted once)", memory_mb, 300, "MB")
    yield information("idle: processes", names)


@figure(area="local")
def many_ended(quick: bool) -> Iterator[Row]:
    """A thousand ended jobs in the state: listing them, a decision, a round of the engine."""
    count = 5 if quick else 30
    with tempfile.TemporaryDirectory(prefix="voda-ended-") as scratch:
        home, one = Path(scratch, "home"), Path(scratch, "one")
        store = ended_jobs(home, JOBS, one)
        store.renew("Node", nodes_of_shape("2x2"))
        first_s, lines = _list(home)
        listed_s = [_list(home)[0] for _ in range(count)]
        began_ms, decided_ms = _decisions_ms(store, count)
        rounds_ms = _rounds_ms(store, count)
        store.close()
    yield exactly(f"{JOBS} ended jobs: lines of `voda list`", lines, JOBS + 1)
    yield from median_and_p95(f"{JOBS} ended jobs: `voda list`", listed_s, 0.5, "s")
    yield information(f"{JOBS} ended jobs that were never listed: the first `voda list`", f"{first_s:.2f} s")
    yield at_most(f"{JOBS} ended jobs: a decision, median of {count}", percentile(decided_ms, 0.5), 50, "ms")
    yield information(f"{JOBS} ended jobs: the first decision of a scheduler, which reads them", f"{began_ms:.0f} ms")
    yield information(f"{JOBS} ended jobs: a round of the engine, median", f"{percentile(rounds_ms, 0.5):.1f} ms")


def _cpu_s(home: Path) -> dict[int, float]:
    """Processor time that each process of a home has taken, with children it has waited for."""
    found = {}
    for pid in of_home(home):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[pid] = sum(map(int, fields[11:13])) / TICKS
    return found


def _memory_mb(home: Path) -> tuple[float, str]:
    """Memory of the processes of a home, and how many of each kind there are."""
    total_kb, names = 0, []
    for pid in of_home(home):
        try:
            rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        kb = sum(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
        total_kb += kb
        name = next((word.decode() for word in words if b"voda_flows" in word), "other").rpartition("voda_flows")[2]
        names.append(f"{name.lstrip('./')} {kb / 1000:.0f} MB")
    return total_kb / 1000, ", ".join(sorted(names))


def _list(home: Path) -> tuple[float, int]:
    """How long `voda list` takes, and how many lines it prints."""
    ended = run([sys.executable, "-m", "voda_flows.cli", "list", "--home", str(home)])
    assert ended.code == 0, ended.output
    return ended.seconds, sum(not line.startswith("warning:") for line in ended.output.splitlines())


def _decisions_ms(store: LocalStore, count: int) -> tuple[float, list[float]]:
    """Rounds of the scheduler, from looking to enforcing, each after a change of a node: the first, and the others."""
    observer = StoreObserver(store, Settings(), Reports())
    enforcer, targets = StoreEnforcer(store, observer), StoredTarget(store, "voda")
    params = Params(policy="elastic_fifo", decide_interval_s=0.0, start_limit_s=300.0)
    taken = []
    for number in range(count + 1):
        store.merge_patch("Node", "", "n0", {"metadata": {"labels": {"changed": str(number)}}})
        began_s = time.perf_counter()
        run_cycle(observer, enforcer, targets, params)
        taken.append(1000 * (time.perf_counter() - began_s))
    return taken[0], taken[1:]


def _rounds_ms(store: LocalStore, count: int) -> list[float]:
    """Rounds of the engine, each after a change of a node; the first one, which reads all, is not among them."""
    engine = Engine(store, 0, EvenClock(store.home / "clock.json"))
    engine.round()
    taken = []
    for number in range(count):
        store.merge_patch("Node", "", "n0", {"metadata": {"labels": {"changed": f"again-{number}"}}})
        began_s = time.perf_counter()
        engine.round()
        taken.append(1000 * (time.perf_counter() - began_s))
    return taken
