"""Area cluster, kill -9 at random points: of all that Voda consists of on a cluster, and of all that it stands on.

A run is three elastic jobs, real Horovod in pods, on three nodes of two GPUs; several things are killed in each, some
at nearly the same time: processes of pods, parts of the control plane, nodes by power or by cable; and pods are deleted
and nodes drained as administrators do. Then every job must have succeeded, once, with each epoch done once; what is
lost must be within the design's bounds; a checker that saw every change of the cluster must have found no GPU given
twice; nothing may be left. The seed of each run is printed: the same seed makes the same choices, though not at the
same steps.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster import nodes, victims
from tests.cluster.checker import Recorder, judge
from tests.cluster.cluster import Cluster
from tests.cluster.installed import NAMESPACE, Installation, installation
from tests.cluster.places import REPOSITORY
from tests.cluster.victims import KINDS, MACHINES, PLANE, PROCESSES, Striker
from tests.e2e.job_record import Loss, epochs, loss, verdicts
from tests.show.registry import Row, at_most, exactly, figure, information
from voda_flows.objects import POD_ENDED, WORKFLOW_ENDED, phase_of

SHAPE, GPUS = "3x2", {"n0": 2, "n1": 2, "n2": 2}
KILLS = 8
QUICK = Counter({kind: 2 if kind == "worker" else 1 for kind in KINDS})
#: Most kills in one run of three jobs.
RUN = 16
SEED = 20261130
SAMPLES, STEP_S = 600, 0.05
EPOCHS, EPOCHS_QUICK = 60, 25
COMMIT_STEPS, CHECKPOINT_STEPS = 1, 20
LIFE = f"python {REPOSITORY}/tests/e2e/train_life.py {SAMPLES} {STEP_S}"
JOBS = {"one": ("1", "2"), "two": ("1", "1"), "pair": ("2", "2")}
#: Chance hits one job several times in a row: limits that would end it with good reason are not what is tried here.
LIMITS = {"retry_limit": "100", "restart_limit": "100"}
#: A busy computer may need minutes until a worker has imported PyTorch: none is given up for that.
SETTINGS = {"decide_interval_s": "3", "start_limit_s": "900"}
SETTLE_S, LEAVE_S = 900.0, 120.0
#: Kills wait so long for the jobs to go on, looking so often.
STEP_LIMIT_S, LOOK_S = 120.0, 0.5


@dataclass(kw_only=True)
class Outcome:
    """What came of a run, or of all."""

    seeds: list[int] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    succeeded: int = 0
    ended_once: int = 0
    once: int = 0
    in_place: int = 0
    between: int = 0
    over: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    back: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    changes: int = 0
    gaps: int = 0


@figure(area="cluster", lane="kills")
def kills(quick: bool) -> Iterator[Row]:
    """Processes of pods, killed, and pods deleted; in the sample, one of everything."""
    yield from _measure(QUICK if quick else _each(PROCESSES), EPOCHS_QUICK if quick else EPOCHS)


@figure(area="cluster", in_quick=False, lane="kills")
def kills_of_the_control_plane(_: bool) -> Iterator[Row]:
    """The workflow controller and the API server, killed and started again within seconds."""
    yield from _measure(_each(PLANE), EPOCHS)


@figure(area="cluster", in_quick=False, lane="kills")
def kills_of_nodes(_: bool) -> Iterator[Row]:
    """Kubelet and containerd of a node, killed; nodes lost and back; nodes drained."""
    yield from _measure(_each(MACHINES), EPOCHS)


def _each(kinds: Sequence[str]) -> Counter[str]:
    return Counter(dict.fromkeys(kinds, KILLS))


def _measure(quota: Counter[str], num_epochs: int) -> Iterator[Row]:
    total = Outcome()
    with tempfile.TemporaryDirectory(prefix="voda-kills-") as scratch:
        cluster = Cluster(Path(scratch, "cluster"))
        try:
            cluster.up(nodes.parse(SHAPE))
            with installation(cluster, SETTINGS) as voda:
                _runs(voda, quota, num_epochs, total)
        finally:
            cluster.down()
    yield from _rows(total, quota)


def _runs(voda: Installation, quota: Counter[str], num_epochs: int, total: Outcome) -> None:
    seed = SEED
    while (left := quota - total.kills).total():
        before = total.kills.total()
        voda.reset()
        run(voda, seed, left, num_epochs, total)
        seed += 1
        if total.kills.total() == before:
            break  # nothing was there to be killed: the rows say so


def run(voda: Installation, seed: int, left: Counter[str], num_epochs: int, total: Outcome) -> None:
    """One run: three jobs, some kills, and what is there afterwards is added to the total."""
    with Recorder(voda.cluster.api) as record:
        names = [
            voda.job(f"{name}-{seed}", LIFE, min_gpus=least, max_gpus=most, epochs=str(num_epochs),
                     checkpoint_steps=str(CHECKPOINT_STEPS), **LIMITS)
            for name, (least, most) in JOBS.items()
        ]  # fmt: skip
        uids = {name: voda.workflow(name)["metadata"]["uid"] for name in names}
        striker = Striker(voda=voda, chance=random.Random(seed))
        try:
            total.kills += _strike(striker, left, [voda.volume / NAMESPACE / uid / "train" for uid in uids.values()])
        finally:
            striker.repair(all_of_it=True)
        voda.until(lambda: _have_ended(voda, names), SETTLE_S)
        voda.until(lambda: not _left(voda), LEAVE_S)
    verdict = judge(record.changes(), GPUS)
    ends = [verdict.ends.get(f"{NAMESPACE}/{name}", ()) for name in names]
    roots = [next((voda.volume / NAMESPACE / uid).glob("*"), Path("none")) for uid in uids.values()]
    losses = [loss(root) for root in roots]
    total.seeds.append(seed)
    total.accepted += len(names)
    total.succeeded += sum(phase_of(voda.workflow(name)) == "Succeeded" for name in names)
    total.ended_once += sum(len(phases) == 1 for phases in ends)
    total.once += sum(
        epochs(root, SAMPLES) == list(range(num_epochs)) and verdicts(root).count("done") == 1 for root in roots
    )
    total.in_place = max(total.in_place, *(row.in_place for row in losses))
    total.between = max(total.between, *(row.between for row in losses))
    total.over += verdict.over
    total.twice += verdict.twice
    total.back += verdict.back
    total.left += _left(voda)
    total.changes += verdict.changes
    total.gaps += record.gaps
    _tell_faults(voda, seed, names, losses, total)


def _tell_faults(voda: Installation, seed: int, names: list[str], losses: list[Loss], total: Outcome) -> None:
    """What is known of jobs that did not do as they should, for whoever wants to know why."""
    sys.stderr.write(f"seed {seed}: losses {losses}, {[*total.over, *total.twice, *total.back, *total.left]}\n")
    for name in names:
        if phase_of(voda.workflow(name)) != "Succeeded":
            sys.stderr.write(f"seed {seed}, job {name}:\n{voda.story(name)}\n")


def _strike(striker: Striker, left: Counter[str], roots: list[Path]) -> Counter[str]:
    """Kill until so many were killed or all jobs have ended; mostly while they train, whatever the computer's speed."""
    done: Counter[str] = Counter()
    pause, chance = threading.Event(), striker.chance
    for root in roots:
        _await_steps(striker, [root], pause)
    while done.total() < RUN and (rest := left - done) and not _are_done(roots):
        if chance.random() < 0.25:
            pause.wait(chance.uniform(0.05, 0.5))
        else:
            _await_steps(striker, roots, pause)
            pause.wait(chance.uniform(1.0, 5.0))
        striker.repair()
        kind = chance.choice(sorted(rest))
        if victim := striker.strike(kind):
            done[kind] += 1
            sys.stderr.write(f"kill {kind} ({victim}), {done.total()} of {min(RUN, left.total())}\n")
    return done


def _await_steps(striker: Striker, roots: list[Path], pause: threading.Event) -> None:
    """Until one of the jobs has made a step from now on, or none will for long."""
    before, end_s = _written(roots), time.monotonic() + STEP_LIMIT_S
    while _written(roots) == before and time.monotonic() < end_s and not _are_done(roots):
        striker.repair()
        pause.wait(LOOK_S)  # a file grows: nobody tells


def _written(roots: list[Path]) -> int:
    """What grows with each step: the size of their rows."""
    return sum(path.stat().st_size for root in roots for path in root.glob("segment-*/reports.jsonl"))


def _are_done(roots: list[Path]) -> bool:
    return all("done" in verdicts(root) for root in roots)


def _have_ended(voda: Installation, names: list[str]) -> bool:
    return all(phase_of(voda.workflow(name)) in WORKFLOW_ENDED for name in names)


def _left(voda: Installation) -> list[str]:
    """What is there of jobs that have ended: pods that have not, and processes of pods that have."""
    pods = [body for key, body in voda.store.snapshot("Pod").items() if key.namespace == NAMESPACE]
    live = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in pods if phase_of(pod) not in POD_ENDED}
    scheduler = {pod["metadata"]["uid"] for pod in voda.scheduler_pods()}
    of_jobs = [f"pod {name}" for uid, name in live.items() if uid not in scheduler]
    return of_jobs + [f"process {stray}" for stray in victims.strays(voda.cluster, live)]


def _rows(total: Outcome, quota: Counter[str]) -> Iterator[Row]:
    everything = f"{total.accepted}/{total.accepted}"
    yield information("kills: seeds of the runs", ", ".join(map(str, total.seeds)))
    for kind, count in quota.items():
        yield exactly(f"kills: {kind}", total.kills[kind], count)
    yield exactly("kills: jobs succeeded, of those accepted", f"{total.succeeded}/{total.accepted}", everything)
    yield exactly("kills: jobs whose Workflow ended exactly once", f"{total.ended_once}/{total.accepted}", everything)
    yield exactly("kills: jobs whose epochs were done once each", f"{total.once}/{total.accepted}", everything)
    yield at_most("kills: steps lost where a rank survived, most", total.in_place, COMMIT_STEPS, "steps")
    yield at_most("kills: steps lost where none did, most", total.between, CHECKPOINT_STEPS, "steps")
    yield information("kills: changes of the cluster that the checker looked at", str(total.changes))
    yield exactly("kills: times that the checker may have missed one", total.gaps, 0)
    yield exactly("kills: moments with more GPUs held than a node has", len(total.over), 0)
    yield exactly("kills: moments with a GPU granted twice", len(total.twice), 0)
    yield exactly("kills: pods, GPUs and processes of ended jobs left", len(total.left), 0)
    yield exactly("kills: times that a job's progress went back", len(total.back), 0)
