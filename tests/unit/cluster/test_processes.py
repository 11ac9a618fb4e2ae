"""Parts as processes: they outlive who started them, are ended by what is known of them, and nobody else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.faults import ClusterError
from tests.cluster.places import Home
from tests.cluster.processes import Part, Processes, wait_for_end

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the cluster runs on Linux only")
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Processes of a cluster in a folder of the test's own."""
    made = Processes(Home(folder=tmp_path))
    yield made
    for name in made.recorded():
        made.kill(name)


def part(*command: str, is_ready: Callable[[], bool] = lambda: True, limit_s: float = 60.0) -> Part:
    """A part of no machine."""
    return Part(name="part", command=command, machine=None, is_ready=is_ready, ready_limit_s=limit_s)


def test_a_part_is_known_from_its_start_on(processes: Processes) -> None:
    """By its program's process id; it is no child of ours."""
    processes.start(part("sleep", "600"))
    pid = processes.pid("part")

    assert pid is not None
    status = Path(f"/proc/{pid}/status").read_text()
    assert (Path(f"/proc/{pid}/comm").read_text(), f"PPid:\t{os.getpid()}\n" in status) == ("sleep\n", False)
    assert (processes.is_alive("part"), processes.recorded()) == (True, ["part"])


def test_a_killed_part_is_gone_when_kill_returns(processes: Processes) -> None:
    """And to kill it again is harmless."""
    processes.start(part("sleep", "600"))
    pid = processes.pid("part")
    assert pid is not None

    processes.kill("part")
    processes.kill("part")

    assert (wait_for_end(pid, 0), processes.is_alive("part"), processes.recorded()) == (True, False, [])


def test_a_part_is_killed_though_somebody_has_stopped_it(processes: Processes) -> None:
    """What waits for the program and the program itself: a stopped process sees nobody die."""
    processes.start(part("sh", "-c", "sleep 600; true"))
    outer = int((processes.log("part").parents[1] / "processes" / "part").read_text().split()[0])
    inner = processes.pid("part")
    while inner in {None, outer}:  # the shell has not come so far
        time.sleep(0.01)
        inner = processes.pid("part")
    assert inner is not None
    os.kill(outer, signal.SIGSTOP)

    processes.kill("part")

    assert (wait_for_end(outer, 0), wait_for_end(inner, 0)) == (True, True)


def test_a_part_that_ignores_sigterm_is_ended_all_the_same(processes: Processes, tmp_path: Path) -> None:
    """It is asked first, then made to."""
    log = processes.log("part")
    processes.start(part(sys.executable, "-c", DEAF))
    processes.wait_until_ready(part("", is_ready=lambda: "deaf" in log.read_text()))

    processes.stop("part", grace_s=0.1)

    assert not processes.is_alive("part")


def test_a_part_that_ends_before_it_is_ready_is_told_with_its_log(processes: Processes) -> None:
    """At once, not after the time limit."""
    failing = part("sh", "-c", "echo no such thing >&2; exit 3", is_ready=lambda: False)
    processes.start(failing)

    with pytest.raises(ClusterError, match=r"part: expected it to run, it ended\nno such thing\n\(from .*part.log\)"):
        processes.wait_until_ready(failing)


def test_a_part_that_is_not_ready_in_time_is_told(processes: Processes) -> None:
    """With the limit."""
    slow = part("sleep", "600", is_ready=lambda: False, limit_s=0.1)
    processes.start(slow)

    with pytest.raises(ClusterError, match="part: expected it to be ready within 0 s"):
        processes.wait_until_ready(slow)


def test_a_record_of_another_start_is_nobodys(processes: Processes, tmp_path: Path) -> None:
    """A process id that was given out again is not ours, so it is not touched."""
    with subprocess.Popen(["sleep", "600"]) as foreign:
        (tmp_path / "processes").mkdir()
        (tmp_path / "processes" / "part").write_text(f"{foreign.pid} 1")

        alive = processes.is_alive("part")
        processes.kill("part")

        assert (alive, foreign.poll()) == (False, None)
        foreign.kill()


def test_what_has_ended_and_is_not_yet_collected_is_dead(processes: Processes, tmp_path: Path) -> None:
    """A zombie does no work."""
    (tmp_path / "processes").mkdir()
    child = subprocess.Popen(["sh", "-c", "cut -d' ' -f22 /proc/$$/stat; read -r _"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert child.stdout is not None
    (tmp_path / "processes" / "part").write_text(f"{child.pid} {child.stdout.readline()}")
    before = processes.is_alive("part")
    child.kill()
    wait_for_end(child.pid, 30)

    after = processes.is_alive("part")
    child.communicate()

    assert (before, after) == (True, False)


def test_a_program_that_is_not_there_is_told(processes: Processes) -> None:
    """By the log of its part."""
    missing = part("/no/such/program")
    processes.start(missing)

    with pytest.raises(ClusterError, match="no/such/program: not found"):
        processes.wait_until_ready(part("/no/such/program", is_ready=lambda: False))


def test_a_part_of_a_machine_that_does_not_run_is_refused(processes: Processes) -> None:
    """It would start on this computer instead."""
    inside = Part(name="inside", command=("sleep", "1"), machine="n0", is_ready=lambda: True)

    with pytest.raises(ClusterError, match="inside: expected machine n0 to run, it does not; start it first"):
        processes.start(inside)


def test_waiting_for_an_end_ends_with_it() -> None:
    """True when the process ended, False when the limit came first."""
    with subprocess.Popen(["sleep", "600"]) as child:
        still = wait_for_end(child.pid, 0.05)
        child.kill()

        assert (still, wait_for_end(child.pid, 30)) == (False, True)
