"""Area local, truth to Argo: the golden documents on the real engine, held against what the real controller did."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scheduler_core.errors import InvalidValue
from tests.contract.argo import golden
from tests.contract.argo.elastic_life import ACTS, NAME, elastic_world, reaches, recorded
from tests.contract.argo.golden_runs import REFUSED, RUN, UNSUPPORTED, endings
from tests.show.registry import Row, exactly, figure, information
from voda_flows.local.argo import validate

END_LIMIT_S = 120.0


@figure(area="local")
def argo_golden(quick: bool) -> Iterator[Row]:
    """Every document that was recorded: how many agree, how many are refused by name, how many differ."""
    differing = [*_that_run(), *_that_are_refused(), *_elastic_job()]
    unnamed = [name for name in UNSUPPORTED if not _is_refused_by_name(name)]
    agreeing = len(RUN) + len(REFUSED) + 1 - len(differing)
    yield information("argo_golden: documents", str(len(golden.NAMES) + 1))
    yield information("argo_golden: agreeing (of them refused as by Argo itself)", f"{agreeing} ({len(REFUSED)})")
    yield exactly("argo_golden: refused by name", len(UNSUPPORTED) - len(unnamed), len(UNSUPPORTED))
    yield exactly("argo_golden: differing", len(differing) + len(unnamed), 0)
    for name in (*differing, *unnamed):
        sys.stderr.write(f"differs: {name}\n")


def _that_run() -> list[str]:
    """Documents whose end differs in phase, message, progress, or in a node."""
    differing = []
    with tempfile.TemporaryDirectory(prefix="voda-golden-") as scratch, endings("engine", Path(scratch)) as found:
        for name, ending in found.items():
            try:
                status = ending.result(timeout=END_LIMIT_S)
            except TimeoutError:
                differing.append(name)
                continue
            agrees = golden.agreed(status) == golden.expected(golden.outcome(name))
            differing += [] if agrees and not golden.out_of_order(status) else [name]
    return differing


def _that_are_refused() -> list[str]:
    """Documents that Argo refused and local mode does not, or in other words."""
    return [name for name in REFUSED if not _refusal(name).startswith(golden.refusal(name))]


def _elastic_job() -> list[str]:
    """The elastic job, where its life differs after one of the acts or at the end."""
    outcome = golden.outcome(NAME)
    with tempfile.TemporaryDirectory(prefix="voda-golden-") as scratch, elastic_world("engine", Path(scratch)) as world:
        for act, step in zip(ACTS, outcome["steps"], strict=True):
            act(world)
            if not reaches(world, recorded(step)):
                return [f"{NAME}, {step['after']}"]
        return [] if golden.agreed(world.status) == golden.expected(outcome["final"]) else [NAME]


def _is_refused_by_name(name: str) -> bool:
    return name in golden.MAY_BE_REFUSED and "not supported in local mode" in _refusal(name)


def _refusal(name: str) -> str:
    """The words with which a document is refused, empty where it is not."""
    try:
        validate(golden.document(name), lambda _namespace, _name: None)
    except InvalidValue as refusal:
        return str(refusal)
    return ""
