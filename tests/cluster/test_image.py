"""The scheduler's image, really built: what is in it, and that it schedules as the manifests have it run.

The jobs' pods sleep, and run what is installed on this computer; the scheduler has nothing of this computer's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.built_image import Built, provide, read
from tests.cluster.faults import CannotRunHereError
from tests.cluster.fixture import skip, skip_where_it_cannot_run
from tests.cluster.installed import Installation
from tests.cluster.sleepers import asleep, sleeper
from tests.cluster.victims import processes_of
from voda_flows.install.applying import Manner, apply
from voda_flows.install.overlays import Wanted, documents
from voda_flows.install.starting import start_scheduler
from voda_flows.kube.cluster import Cluster as Chosen
from voda_flows.objects import Object, phase_of
from voda_flows.worlds import open_api

#: The first test may have to build the base and the image, and to wait for the cluster.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]
USER = 10001
COMMAND = ["python", "-m", "voda_flows.control.scheduler"]
#: 640 MB on x86_64 with Python 3.11: Debian 165, SciPy and NumPy 215, Kubernetes' client 126 with its bytecode, the
#: rest is Python and small packages. PyTorch alone would be more than the slack.
MOST_BYTES = 800e6
TRAINING = {"torch", "horovod", "triton", "scikit_learn"}
BUILDING = {"hatchling", "pathspec", "pluggy", "tomlkit", "trove_classifiers"}


@pytest.fixture(scope="module")
def image() -> Built:
    """The image of this checkout."""
    skip_where_it_cannot_run()
    try:
        return provide()
    except CannotRunHereError as fault:
        skip(str(fault))


@pytest.fixture
def voda(image: Built, installed: Installation) -> Iterator[Installation]:
    """Voda with jobs that sleep, its scheduler out of the image."""
    installed.cluster.load_image(image.name, image.archive)
    with asleep(installed) as made, scheduler_of(made, image.name):
        yield made


@contextlib.contextmanager
def scheduler_of(voda: Installation, image: str) -> Iterator[None]:
    """The scheduler of the overlay ``one-namespace`` with another image, as ``voda install --image`` has it.

    Args:
        voda: An installation whose own scheduler is aside; all but the jobs' template is applied anew, and put back.
        image: The image's name.
    """
    wanted, own = (but_for_jobs(each) for each in (Wanted(image=image), Wanted(overlay=str(voda.overlay))))
    with contextlib.closing(open_api(Chosen(kubeconfig=str(voda.cluster.kubeconfig)))) as api:
        try:
            list(apply(api, wanted, Manner(is_forced=True)))
            start_scheduler(api, wanted)
            voda.wait_for_scheduler()
            yield
        finally:
            list(apply(api, own, Manner(is_forced=True)))


def but_for_jobs(wanted: Wanted) -> list[Object]:
    """An installation's documents but the jobs' template, whose pods are to run what this computer has."""
    return [document for document in documents(wanted) if document["kind"] != "WorkflowTemplate"]


def status_of(pid: int) -> dict[str, str]:
    """What the kernel says of a process."""
    rows = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return {name: value.strip() for name, _, value in (row.partition(":") for row in rows)}


def options_of_root(pid: int) -> set[str]:
    """How a process's root is mounted."""
    rows = [row.split() for row in Path(f"/proc/{pid}/mounts").read_text(encoding="utf-8").splitlines()]
    return {option for row in rows if row[1] == "/" for option in row[3].split(",")}


def test_it_holds_the_scheduler_and_no_pytorch(image: Built) -> None:
    """Debian, Python, Voda and Kubernetes' client: nothing for training, nothing left of the build."""
    content = read(image)
    packages = {Path(name).name.split("-")[0] for name in content.sizes if name.endswith(".dist-info")}
    waste = [name for name in content.sizes if name.startswith(("var/cache/apt/", "var/lib/apt/lists/", "root/.cache"))]

    assert (content.settings["User"], content.settings["Cmd"]) == (f"{USER}:{USER}", COMMAND)
    assert packages >= {"voda", "kubernetes", "hera", "numpy", "scipy"}
    assert packages & (TRAINING | BUILDING) == set()
    assert [name for name in content.sizes if "libtorch" in name or "nvidia" in name] == []
    assert [name for name in waste if content.sizes[name]] == []
    assert content.sizes.get("etc/pip.conf", 0) == 0
    assert sum(content.sizes.values()) < MOST_BYTES


def test_it_schedules_as_nobody_with_a_read_only_root(image: Built, voda: Installation) -> None:
    """Its pod holds the Lease and answers a job's gate; the kernel says that it has no rights and cannot write."""
    name = sleeper(voda, "tiny", 3)
    ended = voda.wait_ended(name)
    holds = voda.holder()
    assert holds is not None, voda.scheduler_log()
    (main,) = [row for row in holds["spec"]["containers"] if row["name"] == "main"]
    pids = processes_of(voda.cluster, holds, "voda_flows.control.scheduler")

    assert (phase_of(ended), ended["status"].get("message")) == ("Succeeded", None), voda.story(name)
    assert [pod["metadata"]["uid"] for pod in voda.scheduler_pods()] == [holds["metadata"]["uid"]]
    assert main["image"] == image.name
    assert [volume for volume in holds["spec"]["volumes"] if "hostPath" in volume] == []
    assert pids
    assert {status_of(pid)["Uid"] for pid in pids} == {"\t".join([str(USER)] * 4)}
    assert {int(status_of(pid)[row], 16) for pid in pids for row in ("CapEff", "CapBnd")} == {0}
    assert all("ro" in options_of_root(pid) for pid in pids)
