"""Documents with a value of the wrong shape anywhere: refused in one line or taken, never a traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.test_submit import CRON, JOB, LIBRARY
from tests.unit.cli.world import World
from voda_flows.objects import Object

ROOT = Path(__file__).resolve().parents[3]
SHAPES: tuple[Any, ...] = (None, True, 3, "x", ["a"], {"a": "b"}, [["a"]])
OUTER = 3  # parts of the path to a cron workflow's arguments, the deepest
OK, REFUSED, CONFLICT = 0, 2, 4


def misshapen(document: Object, *, where_inputs_are: bool) -> Iterator[tuple[str, Object]]:
    """Copies of a document with one value each, at any depth, replaced by one of another shape; and where.

    Args:
        document: It is not changed.
        where_inputs_are: Only what -p looks at: arguments, and what they stand in.
    """
    for path in _paths(document):
        if where_inputs_are and len(path) > OUTER and path[OUTER - 1] != "arguments" and path[1] != "arguments":
            continue
        for shape in SHAPES:
            changed = copy.deepcopy(document)
            holder: Any = changed
            for part in path[:-1]:
                holder = holder[part]
            holder[path[-1]] = shape
            yield f"{'.'.join(map(str, path))} = {shape!r}", changed


def _paths(value: object) -> Iterator[tuple[Any, ...]]:
    entries: list[tuple[Any, object]] = []
    if isinstance(value, dict):
        entries = [*value.items()]
    elif isinstance(value, list):
        entries = [*enumerate(value)]
    for key, part in entries:
        yield (key,)
        yield from ((key, *rest) for rest in _paths(part))


@pytest.mark.parametrize("options", [(), ("-p", "epochs=2")], ids=["as it is", "with -p"])
@pytest.mark.parametrize(
    "document",
    [JOB, CRON, LIBRARY, (ROOT / "templates/examples/pipeline.yaml").read_text()],
    ids=["job", "cron", "library", "pipeline"],
)
def test_a_value_of_the_wrong_shape_is_no_traceback(
    world: World, tmp_path: Path, document: str, options: tuple[str, ...]
) -> None:
    """Exit 0 or 2 (4 where one before it was taken), and what is refused is refused in one line."""
    file = tmp_path / "job.json"
    for where, changed in misshapen(yaml.safe_load(document), where_inputs_are=bool(options)):
        file.write_text(json.dumps(changed), encoding="utf-8")

        answer = world.voda("submit", str(file), *options)

        assert answer.code in (OK, REFUSED, CONFLICT), where
        assert (answer.code == OK) == (not answer.err.startswith("error: ")), where
