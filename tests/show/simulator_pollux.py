"""Area simulator, the artifact of Pollux (OSDI'21): its published completion times by its own rules."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from scheduler_core.simulate.compat.pollux_application import EPOCHS, Application
from scheduler_core.simulate.compat.pollux_optimus import PolluxOptimus
from scheduler_core.simulate.compat.pollux_rounds import RoundsPolicy, run_rounds
from scheduler_core.simulate.compat.pollux_tiresias import PolluxTiresias
from scheduler_core.simulate.traces.pollux import read_pollux
from tests.quality.shape import ROOT
from tests.show.registry import Row, at_most, exactly, figure

POLLUX = ROOT.parent / "shared" / "data" / "pollux"
LOADS = ("0.5", "1.0", "1.5", "2.0")
WORKLOADS = range(1, 9)
POLICIES: Mapping[str, Callable[[], RoundsPolicy]] = {"tiresias": PolluxTiresias, "optimus": PolluxOptimus}
MEANS_OF_WORKLOAD_6 = {"tiresias": 3469.69375, "optimus": 5301.875}
MOST_S = 1.0
MOST_ALL_S = 60.0


@figure(area="simulator")
def pollux_workload_6(quick: bool) -> Iterator[Row]:
    """Every completion time of workload-6, and how long a run takes, tables read and built anew."""
    for policy, mean_s in MEANS_OF_WORKLOAD_6.items():
        _applications.cache_clear()
        began_s = time.perf_counter()
        found = _run(policy, "1.0", 6)
        took_s = time.perf_counter() - began_s
        published = _published(policy, "1.0")["workload-6"]
        same = sum(found.get(job) == jct_s for job, jct_s in published.items())
        yield exactly(f"Pollux workload-6, {policy}: identical completion times of {len(published)}", same, 160)
        yield exactly(f"Pollux workload-6, {policy}: mean completion time, s", _mean(found), mean_s)
        if policy == "tiresias":
            yield at_most("Pollux workload-6, tiresias: one run", took_s, MOST_S, "s")


@figure(area="simulator")
def pollux_all(quick: bool) -> Iterator[Row]:
    """All published means of both policies; the small sample has the two smaller loads."""
    began_s, runs = time.perf_counter(), 0
    for policy in POLICIES:
        loads = LOADS[:2] if quick else LOADS
        same = 0
        for load in loads:
            published = _published(policy, load)
            same += sum(_mean(_run(policy, load, one)) == _mean(published[f"workload-{one}"]) for one in WORKLOADS)
        runs += len(loads) * len(WORKLOADS)
        yield exactly(f"Pollux, {policy}: published means that are exact", same, len(loads) * len(WORKLOADS))
    yield at_most(f"Pollux, {runs} runs", time.perf_counter() - began_s, MOST_ALL_S, "s")


def _run(policy: str, load: str, number: int) -> dict[str, int]:
    folder = POLLUX / "workloads" if load == "1.0" else POLLUX / "workloads-load" / load
    path = folder / f"workload-{number}.csv"
    return run_rounds(read_pollux(path.read_text(), name=path.name), _applications(), POLICIES[policy]())


@cache
def _applications() -> Mapping[str, Application]:
    return {name: Application(name, _texts(POLLUX / name)) for name in EPOCHS}


def _texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.glob("*.csv"))}


@cache
def _published(policy: str, load: str) -> Mapping[str, Mapping[str, float]]:
    """Completion times by workload and job."""
    summary = POLLUX / "results-jobload" / f"{policy}-{load}" / "summary.json"
    published: Mapping[str, Mapping[str, float]] = json.loads(summary.read_text())["jcts"]
    return published


def _mean(jct_s_by_job: Mapping[str, float]) -> float:
    return sum(jct_s_by_job.values()) / len(jct_s_by_job)
