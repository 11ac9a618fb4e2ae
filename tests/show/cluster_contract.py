"""Area cluster, one contract in two worlds: the suite's documents on the local engine and on the real controller."""

from __future__ import annotations

import difflib
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.contract.argo.golden_runs import UNSUPPORTED
from tests.contract.two_worlds.play import Pair, stage
from tests.contract.two_worlds.real_life import real_life as history_of_a_life
from tests.contract.two_worlds.steads import on_the_cluster, on_this_machine
from tests.contract.two_worlds.tier import all_cases, quick_cases
from tests.e2e import local_world
from tests.show.registry import Row, exactly, figure, information
from tests.show.shared_cluster import SHAPE, only, shared

NODES = ("n0", "n1", "n2")


@figure(area="cluster", lane="real life")
def argo_live(quick: bool) -> Iterator[Row]:
    """Documents that become the same in both worlds; what differs is told on stderr, fact by fact."""
    cases = quick_cases() if quick else all_cases()
    cluster = shared().voda.cluster
    with tempfile.TemporaryDirectory(prefix="voda-two-worlds-") as home, stage(cluster, Path(home)) as both:
        differing = dict(_differing(both.play(cases)))
    for name, lines in differing.items():
        sys.stderr.write("\n    ".join([f"differs: {name}", *lines]) + "\n")
    of_all = f" (a sample of {len(all_cases())})" if quick else ""
    yield information("argo_live: documents run on both worlds", f"{len(cases)}{of_all}")
    yield information(
        "argo_live: golden documents that local mode refuses by name", f"{len(UNSUPPORTED)}, not among them"
    )
    yield exactly("argo_live: differing", len(differing), 0)


@figure(area="cluster", in_quick=False, lane="real life")
def real_life(quick: bool) -> Iterator[Row]:
    """An elastic life with real training, scheduler and all, in both worlds: whether its history reads the same."""
    with only(dict.fromkeys(NODES, 2)) as voda:
        there = history_of_a_life(on_the_cluster(voda))
    home = tempfile.TemporaryDirectory(prefix="voda-two-worlds-")
    with home as folder, local_world.local_world(Path(folder), SHAPE) as world:
        here = history_of_a_life(on_this_machine(world))
    lines = [line for line in difflib.ndiff(here, there) if not line.startswith("  ")]
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    yield information("real_life: nodes of its history", str(len(there)))
    yield exactly("real_life: nodes that differ between the worlds", len(lines), 0)


def _differing(pairs: Mapping[str, Pair]) -> Iterator[tuple[str, list[str]]]:
    """Cases that differ, and in what; one that could not be told counts as well."""
    for name, pair in pairs.items():
        try:
            found = pair.differences()
        except Exception as fault:  # noqa: BLE001 - one that breaks must not hide the others
            found = [f"{type(fault).__name__}: {fault}"]
        if found:
            yield name, found
