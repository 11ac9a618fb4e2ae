"""Area cluster: what the demo's own record shows, from one run in pods on real Kubernetes and Argo Workflows."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.fixture import FOLDER_VARIABLE
from tests.cluster.places import HOME_VARIABLE, cache_folder
from tests.show.commands import run
from tests.show.registry import Row, exactly, figure, information


@figure(area="cluster", in_quick=False, lane="real life")
def demo_on_a_cluster(quick: bool) -> Iterator[Row]:
    """What `make demo-cluster` does: five jobs on three nodes, with a cluster of its own, gone afterwards."""
    home = Path(os.environ.get(FOLDER_VARIABLE) or cache_folder()).resolve() / "cluster-of-demo"
    with tempfile.TemporaryDirectory(prefix="voda-demo-") as scratch:
        folder = Path(scratch, "demo")
        command = [sys.executable, "-m", "tests.cluster.demo", "--folder", str(folder)]
        ended = run(command, environment={HOME_VARIABLE: str(home)})
        yield exactly("demo on a cluster, exit code", ended.code, 0)
        yield information("demo on a cluster, with the cluster's coming and going", f"{ended.seconds:.0f} s")
        record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    for check in record["checks"]:
        name = f"demo on a cluster: {check['figure']}"
        yield Row(figure=name, value=check["value"], must_be=check["must_be"], holds=check["holds"])
    yield exactly("demo on a cluster: what is left of the cluster", home.exists(), expected=False)
