"""Area demo: what the demo's own record shows, from one run with real Horovod processes."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.show.commands import run
from tests.show.registry import Row, at_most, exactly, figure, information

LIMIT_S = 240


@figure(area="demo")
def demo_record(quick: bool) -> Iterator[Row]:
    """Every job succeeds; in place it grows and shrinks, one is preempted and resumes, no step is lost."""
    with tempfile.TemporaryDirectory(prefix="voda-demo-") as scratch:
        folder = Path(scratch, "demo")
        ended = run([sys.executable, "-m", "voda_flows.cli", "demo", "--folder", str(folder)])
        yield exactly("demo, exit code", ended.code, 0)
        yield at_most("demo, once set up", ended.seconds, LIMIT_S, "s")
        record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    for check in record["checks"]:
        yield Row(
            figure=f"demo: {check['figure']}", value=check["value"], must_be=check["must_be"], holds=check["holds"]
        )
    yield information("demo: GPUs held", f"{record['utilisation']:.0%} of the time")
