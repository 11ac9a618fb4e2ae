"""What is done inside a machine to make it ready."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.machines import TUNABLES, Machine, boot_script
from tests.cluster.places import Network

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the cluster runs on Linux only")
MACHINE = Machine(name="n0", address="10.203.0.11", folder=Path("/a/very/long/path"), pods="10.203.1.0/24")


def test_the_script_of_a_machine_is_a_shell_script_that_stops_at_the_first_fault() -> None:
    """It parses, begins with -eu and ends with the mark that tells it went through."""
    script = boot_script(MACHINE, Network(number=3), [])

    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
    assert script.splitlines()[0] == "set -eu"
    assert script.splitlines()[-1] == "touch /run/booted"


def test_a_machine_has_its_address_and_the_way_to_the_api_server() -> None:
    """Those of its own network."""
    lines = boot_script(MACHINE, Network(number=3), []).splitlines()

    assert "ip address add 10.203.0.11/24 dev eth0" in lines
    assert "ip route add default via 10.203.0.1" in lines
    assert (
        "iptables -w -t nat -A PREROUTING -d 10.96.3.1 -p tcp --dport 443 -j DNAT --to-destination 10.203.0.10:6443"
        in lines
    )


def test_a_machines_folder_has_a_short_name_in_it() -> None:
    """Sockets lie in it, and their paths have to be short."""
    assert "mount --bind '/a/very/long/path' /run/node" in boot_script(MACHINE, Network(number=3), []).splitlines()


def test_a_folder_of_another_file_system_is_shown_as_well() -> None:
    """One of the root's is there already; all that is shown is made read-only."""
    lines = boot_script(MACHINE, Network(number=3), [Path("/usr"), Path("/proc")]).splitlines()

    assert [line for line in lines if line.startswith("mount --bind") and "/run/machine" in line] == [
        "mount --bind / /run/machine",
        "mount --bind '/proc' '/run/machine/proc'",
    ]
    assert [line for line in lines if "remount" in line] == [
        "mount -o remount,ro,bind '/run/machine'",
        "mount -o remount,ro,bind '/run/machine/proc'",
    ]


def test_kernel_tunables_are_the_machines_own() -> None:
    """Every one that a kubelet would set is covered by a file."""
    script = boot_script(MACHINE, Network(number=3), [])

    assert [name for name in TUNABLES if f"mount --bind /run/tunables/{name.replace('/', '.')}" not in script] == []
