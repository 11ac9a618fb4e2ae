"""Area cluster, network and trust: a hostile proxy, two schedulers, pods that try what they may not.

The measurements are those of the tier's tests, on a cluster of this figure's own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from tests.show.commands import run
from tests.show.registry import Row, exactly, figure

FILES = ("test_grants.py", "test_trust.py", "test_kills.py")
NUM_TESTS = 10
_RESULT = re.compile(r"^tests/cluster/\w+\.py::(.+?) (PASSED|FAILED|ERROR|SKIPPED)", re.MULTILINE)


@figure(area="cluster", in_quick=False, lane="real life")
def network_and_trust(_: bool) -> Iterator[Row]:
    """20 % of requests spoilt, pods that appear late, two schedulers at once, strangers with keys and addresses."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-vv",  # one would be taken back by the project's own -q
        "-p",
        "no:cacheprovider",
        *(f"tests/cluster/{name}" for name in FILES),
    ]
    ended = run(command, environment={"VODA_CLUSTER_REQUIRED": "1"})
    found = _RESULT.findall(ended.output)
    for test, result in found:
        name = test.removeprefix("test_").replace("_", " ")
        yield exactly(f"network: {name}", result.lower(), "passed")
    yield exactly("network: tests", len(found), NUM_TESTS)
