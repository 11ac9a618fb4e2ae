"""What people do to jobs with `argo` on a cluster: stop, retry, resubmit, resume. Nobody trains on an old grant."""

from __future__ import annotations

import re

import pytest

from tests.cluster.cases import (
    LIFE,
    LONG,
    SAMPLES,
    argo,
    driver_says,
    freed_after_s,
    holders,
    live_pods,
    of_template,
    queued_again,
    root,
    strangers,
    trains,
)
from tests.cluster.installed import Installation
from tests.e2e.job_record import epochs, loss, verdicts
from voda_flows.objects import phase_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
ALL_GPUS = {"n0": 2, "n1": 2, "n2": 2}
#: Enough that a job is still at work when something is done to it, on a busy computer too.
EPOCHS = "12"
ALL_EPOCHS = list(range(12))


def test_a_retry_waits_at_a_gate_while_others_have_its_gpus(installed: Installation) -> None:
    """`argo stop`, somebody else takes its GPUs, `argo retry`: no step is made on the old grant, none is lost."""
    installed.reset()
    name = installed.job("again", LIFE, epochs=EPOCHS, min_gpus="2", max_gpus="2")
    trains(installed, name, beyond=50)
    freed_after_s(installed, name, lambda: argo(installed, "stop", name))
    assert phase_of(installed.wait_ended(name)) == "Failed"
    stopped = [path.name for path in sorted(root(installed, name).glob("segment-0/step-*"))]

    with strangers(installed, **ALL_GPUS):
        argo(installed, "retry", name)
        queued_again(installed, name, segment=1)
        here = [path.name for path in sorted(root(installed, name).glob("segment-0/step-*"))]
        assert (here, holders(installed, name)) == (stopped, [])
    ended = installed.wait_ended(name)

    assert (phase_of(ended), epochs(root(installed, name), SAMPLES)) == ("Succeeded", ALL_EPOCHS)
    assert (loss(root(installed, name)).between, verdicts(root(installed, name))[-1]) == (0, "done")


def test_a_retry_with_free_gpus_goes_on_from_its_checkpoint(installed: Installation) -> None:
    """`argo terminate` and `argo retry` at once: it trains on what is decided anew, from the newest checkpoint."""
    installed.reset()
    name = installed.job("soon", LIFE, epochs=EPOCHS, min_gpus="1", max_gpus="1", checkpoint_steps="10")
    trains(installed, name, beyond=50)
    freed_after_s(installed, name, lambda: argo(installed, "terminate", name))
    assert phase_of(installed.wait_ended(name)) == "Failed"

    argo(installed, "retry", name)
    ended = installed.wait_ended(name)

    assert (phase_of(ended), epochs(root(installed, name), SAMPLES)) == ("Succeeded", ALL_EPOCHS)
    assert loss(root(installed, name)).between <= 10
    trained = [line for line in driver_says(installed, name) if re.search(r"document generation=.*stop=None", line)]
    uids = {pod["metadata"]["uid"] for pod in installed.pods(name, "driver")}
    assert (len(trained) >= 1, len(uids) >= 1) == (True, True)


def test_resubmitted_jobs_are_jobs_of_their_own(installed: Installation) -> None:
    """From the running and from the finished: each has its own key, checkpoints and gate, and begins at step 0."""
    installed.reset()
    first = installed.job("origin", LIFE, epochs=EPOCHS, min_gpus="1", max_gpus="2")
    trains(installed, first, beyond=20)

    second = argo(installed, "resubmit", first, "-o", "name").strip().rpartition("/")[2]
    for name in (first, second):
        assert phase_of(installed.wait_ended(name)) == "Succeeded", installed.story(name)
    third = argo(installed, "resubmit", first, "-o", "name").strip().rpartition("/")[2]
    assert phase_of(installed.wait_ended(third)) == "Succeeded", installed.story(third)

    roots = [root(installed, name) for name in (first, second, third)]
    assert [epochs(folder, SAMPLES) for folder in roots] == [ALL_EPOCHS] * 3
    assert len(set(roots)) == 3


def test_resume_completes_gates_and_does_no_harm(installed: Installation) -> None:
    """`argo resume` of a queued job leads to another gate and no pods; of a running one to another grow gate."""
    installed.reset()
    with strangers(installed, **ALL_GPUS):
        name = installed.job("pressed", LIFE, epochs=EPOCHS, min_gpus="2", max_gpus="2")
        queued_again(installed, name, segment=0)
        argo(installed, "resume", name)
        assert installed.until(lambda: len(of_template(installed, name, "gate")) == 2)
        queued_again(installed, name, segment=0)
        assert live_pods(installed, name) == []
    trains(installed, name, size=2)

    argo(installed, "resume", name)
    assert installed.until(lambda: len(of_template(installed, name, "grow-gate")) == 2)
    ended = installed.wait_ended(name)

    assert (phase_of(ended), epochs(root(installed, name), SAMPLES)) == ("Succeeded", ALL_EPOCHS)
    assert (verdicts(root(installed, name)), loss(root(installed, name)).in_place) == (["done"], 0)


def test_a_job_that_was_stopped_for_good_leaves_nothing(installed: Installation) -> None:
    """`argo stop` of a queued and of a running job: both end, no pod stays, the queue goes on."""
    installed.reset()
    with strangers(installed, n0=2, n1=2):
        running = installed.job("first", LIFE, epochs=LONG, min_gpus="2", max_gpus="2")
        trains(installed, running, size=2)
        waiting = installed.job("second", LIFE, epochs=LONG, min_gpus="2", max_gpus="2")
        queued_again(installed, waiting, segment=0)
        last = installed.job("third", LIFE, epochs="1", min_gpus="1", max_gpus="1")

        argo(installed, "stop", waiting)
        freed_after_s(installed, running, lambda: argo(installed, "stop", running))

        phases = [phase_of(installed.wait_ended(name)) for name in (waiting, running, last)]
    assert phases == ["Failed", "Failed", "Succeeded"]
    assert installed.gpus_held() == 0
