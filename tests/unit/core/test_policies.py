"""One row for each rule of the policies that is not in a paper's example, and what people are told of them."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from scheduler_core.allocate import registry
from scheduler_core.allocate.registry import Need, described, policy_named, policy_names
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.params import Params
from scheduler_core.model.ports import PolicyInput
from tests.unit.core.builders import asked, spec

LEFT_S = {"long": 900.0, "short": 10.0, "middle": 60.0}
THREE = [spec(name, (2, 4), submitted_s=float(at)) for at, name in enumerate(LEFT_S)]


@pytest.mark.parametrize(
    ("name", "given", "gpus_by_job"),
    [
        ("srjf", asked(THREE, 5, remaining_s_by_job=LEFT_S), {"short": 2, "middle": 2}),
        ("elastic_srjf", asked(THREE, 5, remaining_s_by_job=LEFT_S), {"short": 3, "middle": 2}),
        # what is not known is longer than anything known, then by arrival
        ("srjf", asked(THREE, 4, remaining_s_by_job={"middle": 9e9}), {"middle": 2, "long": 2}),
        (
            "srjf",
            asked([*THREE, spec("vip", (2, 2), priority=1)], 4, remaining_s_by_job=LEFT_S),
            {"vip": 2, "short": 2},
        ),
        # a rigid job is not grown past its maximum (the original stops there)
        ("elastic_srjf", asked([spec("rigid", (2, 2))], 4, remaining_s_by_job={"rigid": 1.0}), {"rigid": 2}),
        # minima are respected (the original stops there), also where they leave too little for single GPUs
        ("ffdl", asked([spec("a", (1, 4)), spec("b", (3, 4), submitted_s=1.0)], 3), {"a": 3}),
        ("afs_l", asked([spec("a", (1, 4)), spec("b", (3, 4), submitted_s=1.0)], 3), {"a": 3}),
        ("ffdl", asked([spec("a")], 0), {}),  # the original stops there
        # of sizes 1, 4 the greatest sum takes one large step rather than none
        ("ffdl", asked([spec("a", (1, 4), gpu_sizes=(1, 4)), spec("b", (1, 3))], 5), {"a": 4, "b": 1}),
        ("afs_l", asked(THREE, 5, remaining_s_by_job=LEFT_S), {"short": 3, "middle": 2}),
    ],
)
def test_allocation_rows(name: str, given: PolicyInput, gpus_by_job: dict[str, int]) -> None:
    """Each row: policy, jobs and GPUs, what it gives."""
    assert dict(policy_named(name)(given).gpus_by_job) == gpus_by_job


@pytest.mark.parametrize("name", ["afs_l", "elastic_fifo", "elastic_srjf", "elastic_tiresias", "ffdl", "fifo", "srjf"])
def test_without_backfilling_nobody_starts_behind_one_that_does_not_fit(name: str) -> None:
    """Three GPUs, the first needs four: only the job that runs now goes on, and with backfilling all that fit."""
    specs = [spec("wide", (4, 4)), spec("runs", (1, 1), submitted_s=1.0), spec("new", (1, 1), submitted_s=2.0)]
    settled: dict[str, Any] = {
        "current": Allocation(gpus_by_job={"runs": 1}),
        "remaining_s_by_job": {"wide": 1.0, "runs": 2.0, "new": 3.0},
    }
    policy = policy_named(name)

    assert dict(policy(asked(specs, 3, params=Params(backfilling=False), **settled)).gpus_by_job) == {"runs": 1}
    assert dict(policy(asked(specs, 3, **settled)).gpus_by_job) == {"new": 1, "runs": 1}


@pytest.mark.parametrize("name", policy_names())
def test_a_job_none_of_whose_sizes_is_possible_gets_none_and_blocks_nobody(name: str) -> None:
    """Its list has no size within its bounds."""
    specs = [spec("odd", (2, 3), gpu_sizes=(8,)), spec("a", submitted_s=1.0)]

    assert dict(policy_named(name)(asked(specs, 4, params=Params(backfilling=False))).gpus_by_job) == {"a": 1}


def test_what_people_are_told_of_policies() -> None:
    """Every policy that can be chosen is described, with what it needs."""
    told = {policy.name: policy for policy in described()}

    assert tuple(told) == policy_names()
    assert told["fifo"].needs == ()
    assert told["afs_l"].needs == (Need.SPEED, Need.REMAINING)
    assert told["tiresias"].needs == (Need.SERVICE,)
    assert [name for name, policy in told.items() if not policy.is_elastic] == ["fifo", "srjf", "tiresias"]
    assert all(policy.source and policy.summary for policy in told.values())


def test_a_policy_of_another_package_is_listed_without_being_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By where it is from; one of ours cannot be replaced."""
    points = [EntryPoint(name=name, value="elsewhere.policies:one", group=registry.GROUP) for name in ("fifo", "mine")]
    monkeypatch.setattr(registry, "entry_points", lambda **_group: EntryPoints(points))

    mine = next(policy for policy in described() if policy.name == "mine")
    assert (mine.source, mine.needs, mine.is_elastic) == ("another package (elsewhere.policies:one)", (), None)
    assert len(described()) == 9
