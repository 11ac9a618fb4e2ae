"""The whole scheduler behind a network that fails, on a real cluster: it converges and grants nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.checker import Recorder, judge
from tests.cluster.installed import Installation
from tests.cluster.proxy import FAULTS, Manner, Proxy
from tests.cluster.sleepers import address_of, asleep, scheduler, sleeper
from voda_flows.objects import phase_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
GPUS = {"n0": 2, "n1": 2, "n2": 2}
JOBS = 10


@pytest.fixture
def voda(installed: Installation) -> Iterator[Installation]:
    """Voda without a scheduler of its own, and with jobs that sleep."""
    with asleep(installed) as made:
        yield made


@pytest.mark.parametrize(
    "manner",
    [
        pytest.param(Manner(share=0.2, watch_s=8.0), id="requests fail and watches drop"),
        pytest.param(Manner(pods_late_s=10.0, watch_s=8.0), id="pods appear late"),
    ],
)
def test_the_scheduler_converges_and_grants_nothing_twice(voda: Installation, tmp_path: Path, manner: Manner) -> None:
    """More jobs than fit at once all get their GPUs in turn, and no GPU is ever another's too."""
    certificate = voda.cluster.home.certificates / "ca.crt"
    with (
        Recorder(voda.cluster.api) as record,
        Proxy(address_of(voda.cluster), certificate, manner) as proxy,
        scheduler(voda, tmp_path, proxy.url) as running,
    ):
        names = [sleeper(voda, f"job-{number}", 2, gpus=1 + number % 2) for number in range(JOBS)]
        ended = [phase_of(voda.wait_ended(name, 600)) for name in names]
    verdict = judge(record.changes(), GPUS)

    assert ended == ["Succeeded"] * JOBS, running.said()
    assert (verdict.over, verdict.twice) == ((), ())
    assert proxy.done["watch dropped"] > 0
    assert manner.share == 0.0 or sum(proxy.done[fault] for fault in FAULTS) > JOBS
