"""What SQLite and the file system say when something is wrong with the home, as errors that tell what to do.

Everything of local mode that opens, reads or writes below the home goes through ``trouble``, so that a full disk, a
read-only folder, a file that is locked or broken each have one text and one exit code (docs/contracts.md, section 9).
"""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scheduler_core.errors import InvalidValue, NotFound, Unreachable, VodaError

BUSY_S = 10.0
"""How long a writer waits for others; each holds the lock for milliseconds."""
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
PASSING = NO_ROOM | {errno.EROFS, errno.EIO, errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE}
"""What is wrong with the machine at the moment, and not with what was asked of it: it is tried again."""
LITTLE_BYTES = 128 * 1024
"""With less room than this SQLite cannot work, whatever it calls that."""


@contextmanager
def trouble(path: Path) -> Iterator[None]:
    """Turns what goes wrong with a file into a ``VodaError`` that names it.

    Args:
        path: The file or folder that is used.

    Raises:
        Unreachable: Another process holds it locked.
        VodaError: It cannot be read or written; says why and what to do.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise _of_sqlite(path, error) from error
    except OSError as error:
        raise _of_system(path, error) from error


def is_trouble(error: Exception) -> bool:
    """Whether an error is about the machine at the moment (a full disk, a locked store), not about one document."""
    if isinstance(error, OSError):
        return error.errno in PASSING
    return isinstance(error, MemoryError) or (
        isinstance(error, VodaError) and not isinstance(error, InvalidValue | NotFound)
    )


def no_room(path: Path, said: str) -> VodaError:
    """The error of a full disk."""
    return VodaError(
        f"{path}: expected room on its disk, got '{said}'\nmake room ('df -h {path.parent}'): what runs goes on then "
        "by itself, nothing that has happened meanwhile is lost"
    )


def broken(path: Path, said: str) -> VodaError:
    """The error of a state that is not whole."""
    return VodaError(
        f"{path}: expected Voda's state, got '{said}'\nput a copy of the file back, or start anew with "
        "'voda down --purge' (it ends what still runs, and takes volumes and checkpoints away too)"
    )


def _of_sqlite(path: Path, error: sqlite3.Error) -> VodaError:
    said = str(error)
    if "locked" in said or "busy" in said:
        return Unreachable(
            f"{path}: expected other processes to let go within {BUSY_S:.0f} s, it is still locked\n"
            f"look for a stopped process that has it open ('fuser {path}'), then try again"
        )
    if "full" in said or ("I/O" in said and _is_full(path.parent)):
        return no_room(path, said)
    if "readonly" in said or "unable to open" in said:
        return _not_writable(path, said)
    if "malformed" in said or "not a database" in said:
        return broken(path, said)
    return VodaError(f"{path}: expected to read and write local state, got '{said}'\nlook at its disk and try again")


def _of_system(path: Path, error: OSError) -> VodaError:
    said = error.strerror or str(error)
    if error.errno in NO_ROOM:
        return no_room(path, said)
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return _not_writable(path, said)
    return VodaError(
        f"expected a folder for local state at {path.parent}, got {said}\ngive another one by --home or VODA_HOME"
    )


def _not_writable(path: Path, said: str) -> VodaError:
    return VodaError(
        f"{path}: expected a file one may write, got '{said}'\n"
        "make it and its folder writable, or give another folder by --home or VODA_HOME"
    )


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < LITTLE_BYTES
    except OSError:
        return False
