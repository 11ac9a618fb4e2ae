"""Settings are checked where they are read, and a fault names what was expected, found and near."""

from __future__ import annotations

import pytest

from scheduler_core.errors import InvalidValue
from scheduler_core.model.queue import Queue
from voda_flows.config import Settings


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
        ({"queues": '{"a": {"nominal": {}}}'}, "each with nominal_gpus, namespaces, max_priority only"),
        ({"queues": "[]"}, "expected a JSON object by name"),
    ],
)
def test_a_bad_setting_is_refused_by_name(values: dict[str, str], says: str) -> None:
    """The message says what was expected and what was found."""
    with pytest.raises(InvalidValue, match="ConfigMap voda-config") as refused:
        Settings.from_strings(values)

    assert says in str(refused.value)
