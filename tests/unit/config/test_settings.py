"""Settings are checked where they are read, and a fault names what was expected, found and near."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler_core.errors import InvalidValue
from scheduler_core.model.communication import Link
from scheduler_core.model.params import Params, Tiresias
from scheduler_core.model.queue import Queue
from voda_flows.config import Settings
from voda_flows.control.settings import configure, params_of, settings
from voda_flows.local.store import LocalStore


def test_what_is_not_set_keeps_its_default() -> None:
    """An empty ConfigMap is a legal one."""
    assert Settings.from_strings({}) == Settings()


def test_text_becomes_values() -> None:
    """Every kind of setting is read from text."""
    found = Settings.from_strings(
        {
            "policy": "fifo",
            "decide_interval_s": "2.5",
            "segments_limit": "12",
            "topology_levels": "zone, rack",
            "priority_classes": '{"urgent": 1000}',
            "queues": '{"lab": {"nominal_gpus": {"a100": 4}, "namespaces": ["a"], "max_priority": 0}}',
        }
    )

    assert found == Settings(
        policy="fifo",
        decide_interval_s=2.5,
        segments_limit=12,
        topology_levels=("zone", "rack"),
        priority_classes={"urgent": 1000},
        queues={"lab": Queue(name="lab", nominal_gpus={"a100": 4}, namespaces=("a",), max_priority=0)},
    )


def test_what_the_core_reads_comes_from_the_settings() -> None:
    """Links with their units, limits of queues of service, and what a queue may borrow."""
    found = Settings.from_strings(
        {
            "backfilling": "false",
            "tiresias_limits_gpu_s": "60, 600",
            "tiresias_promote_ratio": "4",
            "tiresias_compaction_jobs": "0",
            "topology_levels": "rack",
            "topology_links": "node=300GB/s,2us; rack = 100Gbit/s, 0.01ms;",
            "gpu_sizes": "4,1,2",
            "queues": '{"lab": {"nominal_gpus": {"": 4}, "borrow_limit": {"": 2}}, "shop": {"borrows": false}}',
        }
    )

    assert params_of(found) == Params(
        backfilling=False,
        tiresias=Tiresias(limits_gpu_s=(60.0, 600.0), promote_ratio=4.0, compaction_jobs=0),
        links={
            "node": Link(bytes_per_s=300e9, latency_s=2e-6),
            "rack": Link(bytes_per_s=12.5e9, latency_s=1e-5),
        },
    )
    assert params_of(Settings()) == Params()
    assert found.gpu_sizes == (1, 2, 4)
    assert found.queues == {
        "lab": Queue(name="lab", nominal_gpus={"": 4}, borrow_limit={"": 2}),
        "shop": Queue(name="shop", borrows=False),
    }


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"polcy": "fifo"}, "expected a known setting, got 'polcy'; did you mean 'policy'?"),
        ({"decide_interval_s": "soon"}, "setting 'decide_interval_s': expected seconds >= 0, got 'soon'"),
        ({"decide_interval_s": "-1"}, "expected seconds >= 0, got '-1'"),
        ({"start_limit_s": "nan"}, "expected seconds >= 0, got 'nan'"),
        ({"segments_limit": "0"}, "expected a whole number >= 1, got '0'"),
        ({"policy": " "}, "expected a name, got ' '"),
        ({"priority_classes": '{"high": "x"}'}, "expected a JSON object of whole numbers by name"),
        (
            {"queues": '{"a": {"nominal": {}}}'},
            "each with borrow_limit, borrows, max_priority, namespaces, nominal_gpus only",
        ),
        ({"queues": "[]"}, "expected a JSON object by name"),
        ({"queues": '{"a": {"max_priority": "high"}}'}, "expected a JSON object by name"),
        ({"queues": '{"a": {"max_priority": true}}'}, "expected a JSON object by name"),
        ({"queues": '{"a": {"namespaces": "lab"}}'}, "expected a JSON object by name"),
        ({"queues": '{"a": {"namespaces": [1]}}'}, "expected a JSON object by name"),
        ({"queues": '{"a": {"nominal_gpus": {"a100": -1}}}'}, "expected a JSON object by name"),
        ({"queues": '{"a": {"nominal_gpus": {"a100": 1.5}}}'}, "expected a JSON object by name"),
        ({"queues": '{"a": {"nominal_gpus": 4}}'}, "expected a JSON object by name"),
        ({"queues": '{"a": {"borrows": 1}}'}, "borrows of 'a' is true or false"),
        (
            {"queues": '{"a": {"nominal_gpus": {"": 1}, "borrow_limit": 2}}'},
            "borrow_limit of 'a' are whole numbers >= 0",
        ),
        ({"queues": '{"a": {"borrow_limit": {"": 2}}}'}, "borrow_limit of 'a' needs nominal_gpus"),
        (
            {"queues": '{"a": {"nominal_gpus": {"": 1}, "borrows": false, "borrow_limit": {"": 2}}}'},
            "borrow_limit of 'a' needs nominal_gpus, and borrows that is not false",
        ),
        ({"backfilling": "yes"}, "setting 'backfilling': expected true or false, got 'yes'"),
        (
            {"tiresias_limits_gpu_s": "10,5"},
            "expected GPU seconds > 0 in ascending order, joined by commas, got '10,5'",
        ),
        ({"tiresias_limits_gpu_s": ""}, "expected GPU seconds > 0 in ascending order"),
        ({"tiresias_promote_ratio": "0"}, "expected a number > 0, got '0'"),
        ({"tiresias_compaction_jobs": "-1"}, "expected a whole number >= 0, got '-1'"),
        ({"gpu_sizes": "1;2"}, "setting 'gpu_sizes': expected GPU counts >= 1 joined by commas"),
        (
            {"topology_links": "node=fast"},
            "setting 'topology_links': expected links joined by ';', each a level, '=', a",
        ),
        ({"topology_links": "node=0GB/s"}, "expected links joined by ';'"),
        ({"topology_links": "node=1.2.3GB/s"}, "expected links joined by ';'"),
        ({"topology_links": "node=1GB/s; node=2GB/s"}, "expected links joined by ';'"),
        (
            {"topology_links": "rack=1GB/s"},
            "expected levels of topology_levels, 'node' or 'cluster', got 'rack'; known are cluster, node, topology",
        ),
        ({"queues": "[" * 200_000}, "expected a JSON object by name"),
        ({"priority_classes": "[" * 200_000}, "expected a JSON object of whole numbers by name"),
        ({"priority_classes": '{"a": ' + "9" * 5_000 + "}"}, "expected a JSON object of whole numbers by name"),
        ({"segments_limit": "9" * 5_000}, "expected a whole number >= 1"),
    ],
)
def test_a_bad_setting_is_refused_by_name(values: dict[str, str], says: str) -> None:
    """The message says what was expected and what was found."""
    with pytest.raises(InvalidValue, match="ConfigMap voda-config") as refused:
        Settings.from_strings(values)

    assert says in str(refused.value)


def test_an_unknown_policy_is_refused_where_it_is_set(tmp_path: Path) -> None:
    """Read from the ConfigMap it is fenced, and says so; but nobody should come to write it there."""
    store = LocalStore(tmp_path)
    says = "^--set: setting 'policy': expected one of afs_l, elastic_fifo, .*, got 'elastic-fifo'$"
    with pytest.raises(InvalidValue, match=says):
        configure(store, {"policy": "elastic-fifo"}, where="--set")

    assert store.list("ConfigMap") == []
    configure(store, {"policy": "fifo"}, where="--set")
    assert settings(store).policy == "fifo"


def test_what_was_wrong_before_is_not_laid_to_who_sets_something_else(tmp_path: Path) -> None:
    """The message says where the fault stands; setting that very key right cures it."""
    store = LocalStore(tmp_path)
    configure(store, {"segments_limit": "5"}, where="--set")
    store.merge_patch("ConfigMap", "voda", "voda-config", {"data": {"records": "none"}})

    with pytest.raises(InvalidValue, match=r"^ConfigMap voda-config: setting 'records': expected a"):
        configure(store, {"segments_limit": "6"}, where="--set")
    configure(store, {"records": "7"}, where="--set")

    assert (settings(store).segments_limit, settings(store).records) == (5, 7)


@pytest.mark.parametrize("name", ["agent_timeout_s", "reset_timeout_s"])
def test_a_setting_that_is_gone_stops_no_installation(tmp_path: Path, name: str) -> None:
    """It never had an effect: where it still stands it is passed over, and who sets it is told what has one."""
    store = LocalStore(tmp_path)
    meta = {"namespace": "voda", "name": "voda-config"}
    store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {name: "5", "policy": "fifo"}})
    variable = f"VODA_{name.removesuffix('_s').upper()}"

    assert settings(store) == Settings(policy="fifo")
    configure(store, {"segments_limit": "7"}, where="--set")
    assert settings(store) == Settings(policy="fifo", segments_limit=7)
    with pytest.raises(InvalidValue, match=f"^--set: setting '{name}': .*; {variable} of a job's pods has it"):
        configure(store, {name: "5"}, where="--set")


def test_the_queues_of_the_page_about_queues_can_be_set() -> None:
    """What people copy from docs/queues.md is legal."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "queues.md").read_text(encoding="utf-8")
    text = page.partition("```json\n")[2].partition("```")[0]

    found = Settings.from_strings({"queues": text}).queues

    assert sorted(found) == ["default", "lab", "night", "shop"]
    assert (found["shop"].most("NVIDIA-A100"), found["night"].most("NVIDIA-A100")) == (6, 2)
