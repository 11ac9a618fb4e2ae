"""Renders every workflow definition and example to ``templates/``: ``python -m voda_flows.render``.

The files are the twins of the definitions in ``voda_flows/workflows``: what is installed in a cluster, and what
people read. A test compares the two as parsed documents, so layout cannot fail it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voda_flows.workflows import elastic_job, scheduler_cron
from voda_flows.workflows.examples import EXAMPLES
from voda_flows.yaml_text import dump_yaml

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"
#: Comes first in every mapping that has it; the rest keeps its order.
_FIRST = ("apiVersion", "kind", "metadata", "name", "generateName")


def rendered() -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Every document by its path under ``templates/``, with the comment that heads its file."""
    documents = {
        "voda-elastic-job.yaml": ("One elastic training job; voda_flows/workflows/elastic_job.py.", elastic_job.w),
        "voda-scheduler.yaml": ("The scheduler; voda_flows/workflows/scheduler_cron.py.", scheduler_cron.w),
        **{f"examples/{row.workflow.name}.yaml": (row.header, row.workflow) for row in EXAMPLES},
    }
    return {path: (header, _ordered(workflow.to_dict())) for path, (header, workflow) in documents.items()}


def write(folder: Path) -> list[Path]:
    """Write every document under ``folder``.

    Args:
        folder: Made where it is missing; files that are the same already are left alone.

    Returns:
        The files that changed.
    """
    changed = []
    for name, (header, document) in rendered().items():
        path = folder / name
        text = "".join(f"# {line}\n" for line in header.splitlines()) + dump_yaml([document])
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


def _ordered(value: Any) -> Any:  # noqa: ANN401 -- any JSON value
    if isinstance(value, list):
        return [_ordered(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    keys = [key for key in _FIRST if key in value] + [key for key in value if key not in _FIRST]
    return {key: _ordered(value[key]) for key in keys}


def main() -> None:
    """Render, and say on stderr what changed."""
    for path in write(TEMPLATES):
        print(f"rendered {path.relative_to(TEMPLATES.parent)}", file=sys.stderr)  # noqa: T201 -- a command's output


if __name__ == "__main__":
    main()
