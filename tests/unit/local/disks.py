"""Disks that become full or read-only while something runs on them, by whatever means this machine allows.

A small file system of its own is the real thing, and needs the right to mount. Without it every process of a home is
forbidden to write to files (``RLIMIT_FSIZE``), which to them is a disk that takes nothing any more.
"""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path

import pytest

from voda_flows.local.processes import engines_in, parents_in

SIZE_MB = 16
NO_WRITES = ["sh", "-c", 'ulimit -S -f 0; exec "$@"', "sh"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """How a command line ended."""

    code: int
    out: str
    err: str


class MountedDisk:
    """A file system of its own, so small that it can be filled."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.is_full = False

    def fill(self) -> None:
        """Leave no byte free."""
        with (self.home / "filler").open("wb", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
                    _pour(file, size)
        self.is_full = True

    def free(self) -> None:
        """Make room again."""
        (self.home / "filler").unlink()
        self.is_full = False

    def voda(self, *arguments: str) -> Said:
        """Run the command line on this home."""
        return voda(self.home, *arguments)


class ForbiddenDisk:
    """A folder of the ordinary file system whose processes can be forbidden to write."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.is_full = False

    def fill(self) -> None:
        """Forbid it to what runs now, and to commands from now on."""
        self._limit(0)
        self.is_full = True

    def free(self) -> None:
        """Allow it again."""
        self._limit(resource.RLIM_INFINITY)
        self.is_full = False

    def voda(self, *arguments: str) -> Said:
        """Run the command line on this home."""
        return voda(self.home, *arguments, prefix=NO_WRITES if self.is_full else ())

    def _limit(self, size: int) -> None:
        for pid in (*engines_in(self.home), *parents_in(self.home).values()):
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


def _pour(file: RawIOBase, size: int) -> None:
    """Write until that fails."""
    while True:
        file.write(b"x" * size)


Disk = MountedDisk | ForbiddenDisk


def voda(home: Path, *arguments: str, prefix: tuple[str, ...] | list[str] = ()) -> Said:
    """Run the command line as people do."""
    ended = subprocess.run(
        [*prefix, sys.executable, "-m", "voda_flows.cli", *arguments],
        env={**os.environ, "VODA_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    return Said(code=ended.returncode, out=ended.stdout, err=ended.stderr)


def can_mount() -> bool:
    """Whether this process may mount file systems, tried out."""
    if os.geteuid() != 0:
        return False
    tried = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
    )
    return tried.returncode == 0


@contextmanager
def mounted(folder: Path) -> Iterator[Path]:
    """A small file system of its own."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def read_only(home: Path) -> Iterator[None]:
    """A home in which nothing can be written, as on a file system mounted so or in somebody else's folder."""
    if os.geteuid() == 0:
        subprocess.run(["mount", "--bind", str(home), str(home)], check=True)
        try:
            subprocess.run(["mount", "-o", "remount,ro,bind", str(home)], check=True)
            yield
        finally:
            subprocess.run(["umount", "--lazy", str(home)], check=True)
        return
    paths = [home, *home.rglob("*")]
    modes = [path.stat().st_mode for path in paths]
    for path in reversed(paths):
        path.chmod(0o500)
    try:
        yield
    finally:
        for path, mode in zip(paths, modes, strict=True):
            path.chmod(mode)
