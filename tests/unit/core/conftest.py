"""A foreign policy, installed the way a package would offer one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler_core.allocate.registry import policy_named

METADATA = "Metadata-Version: 2.1\nName: foreign\nVersion: 1\n"
SOURCE = """
from scheduler_core.model.allocation import Allocation

def one_each(asked):
    return Allocation(gpus_by_job={spec.id: 1 for spec in asked.specs})
"""


@pytest.fixture
def foreign_policy(tmp_path: Path) -> Iterator[str]:
    """The name of a policy of another package that gives every job one GPU, whatever it asked for."""
    described = tmp_path / "foreign-1.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(METADATA)
    (described / "entry_points.txt").write_text("[voda.policies]\none_each = foreign_policy:one_each\n")
    (tmp_path / "foreign_policy.py").write_text(SOURCE)
    sys.path.insert(0, str(tmp_path))
    policy_named.cache_clear()
    yield "one_each"
    sys.path.remove(str(tmp_path))
    sys.modules.pop("foreign_policy", None)
    policy_named.cache_clear()
