"""Third set-up step: Horovod with PyTorch and Gloo, built from its source release and kept in the user's cache.

Usage: ``python -m deploy.horovod.build`` with the environment's Python, in the repository's root.

Horovod has no wheels, and its last release asks the compiler for C++14 where today's PyTorch needs C++20: the compiler
is called through ``cxx``, which raises the language level (docs/adr/0001). Horovod's own sources stay as they are; the
Gloo that it carries is mended in two places by ``repairs`` (docs/adr/0009).
A wheel fits one PyTorch, one Python, one platform and one set of repairs, so it is kept under a key of them all. Two
builds at once are safe: the second waits for the first and takes its wheel; a wheel appears in the cache whole or not
at all.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from deploy.horovod import repairs
from deploy.setup.progress import Progress, interrupted, one_at_a_time

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "source.txt"
VERSION = SOURCE.read_text(encoding="ascii").split()[0].split("==")[1]
COMPILERS = ("c++", "g++", "clang++")
# The largest translation unit includes all of PyTorch's headers; measured with g++ 12.
MEMORY_BY_JOB_BYTES = 1.5e9
PERCENT = re.compile(r"\[ *(\d+)%\]")
LOG_LINES_ON_FAILURE = 25
SMOKE_TEST = "import horovod.torch as hvd; hvd.init(); assert hvd.size() == 1; hvd.shutdown()"
NO_COMPILER = """\
Horovod has to be built, and no C++ compiler was found (looked for CXX, {compilers}). Install one:
  Debian, Ubuntu:  sudo apt-get install g++ make python3-dev
  Fedora:          sudo dnf install gcc-c++ make python3-devel
  macOS:           xcode-select --install
then run the same command again; what is done already is kept.
"""
NO_HEADERS = """\
Horovod has to be built, and Python's headers were not found (expected {path}). Install them:
  Debian, Ubuntu:  sudo apt-get install python3-dev
  Fedora:          sudo dnf install python3-devel
then run the same command again; what is done already is kept.
"""


class SetupError(Exception):
    """The build cannot go on; the message says what to do."""


def cache_folder() -> Path:
    """Where built wheels are kept, shared by all clones of this user."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "voda" / "wheels"


def wheel_key() -> str:
    """What a wheel depends on: Horovod, what is mended in it, PyTorch (as in ``2.9.0+cpu``), Python, platform."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise SetupError("expected PyTorch in this environment, found none; run `make setup`\n")
    torch_version = runpy.run_path(str(Path(spec.origin).with_name("version.py")))["__version__"]
    python = sys.implementation.cache_tag
    return f"horovod-{VERSION}-{repairs.digest()}-torch-{torch_version}-{python}-{sysconfig.get_platform()}"


def find_compiler() -> str:
    """Path of the real C++ compiler.

    Raises:
        SetupError: There is none, or Python's headers are missing; with the packages to install.
    """
    named = os.environ.get("CXX")
    found = next(filter(None, map(shutil.which, (named,) if named else COMPILERS)), None)
    if found is None or shutil.which("make") is None:
        raise SetupError(NO_COMPILER.format(compilers=", ".join([*COMPILERS, "make"])))
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.exists():
        raise SetupError(NO_HEADERS.format(path=header))
    return found


def parallel_jobs() -> int:
    """How many compilers at once: one a core, as far as memory allows."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        memory_bytes = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return cores
    return max(1, min(cores, int(memory_bytes / MEMORY_BY_JOB_BYTES)))


def build_environment(compiler: str) -> dict[str, str]:
    """Environment of the build: our wrapper as the compiler, PyTorch and Gloo only, no MPI, no GPU kernels."""
    tools = str(Path(sys.executable).parent)
    kept = {name: value for name, value in os.environ.items() if name not in {"MAKELEVEL", "MFLAGS"}}
    return kept | {
        "CXX": str(HERE / "cxx"),
        "VODA_REAL_CXX": compiler,
        "HOROVOD_CMAKE": str(Path(tools) / "cmake"),
        "HOROVOD_WITH_PYTORCH": "1",
        "HOROVOD_WITH_GLOO": "1",
        "HOROVOD_WITHOUT_MPI": "1",
        "HOROVOD_WITHOUT_TENSORFLOW": "1",
        "HOROVOD_WITHOUT_MXNET": "1",
        "MAKEFLAGS": f"-j{parallel_jobs()}",
        "PATH": tools + os.pathsep + os.environ.get("PATH", os.defpath),
    }


def run_logged(command: list[str], environment: dict[str, str], progress: Progress, log_path: Path) -> None:
    """Run a command with its output in a log and the compiler's percentage as progress.

    Raises:
        SetupError: The command failed; with the end of its output.
    """
    with log_path.open("a", encoding="utf-8") as log:
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert child.stdout is not None
        for line in child.stdout:
            log.write(line)
            if percent := PERCENT.search(line):
                progress.detail(f"{percent[1]}% compiled")
        code = child.wait()
    if code:
        tail = log_path.read_text(encoding="utf-8").splitlines()[-LOG_LINES_ON_FAILURE:]
        raise SetupError(
            "\n".join([*tail, f"building Horovod ended with {code}; the whole story is in {log_path}", ""])
        )


def unpack(scratch: str) -> Path:
    """Unpack and mend the source release that lies in a folder; where its sources are.

    Raises:
        SetupError: It is not the release that the repairs are for.
    """
    (archive,) = Path(scratch).glob("horovod-*.tar.gz")
    shutil.unpack_archive(archive, scratch)  # its digest was checked when it was fetched
    sources = archive.with_name(archive.name.removesuffix(".tar.gz"))
    try:
        repairs.apply(sources)
    except repairs.RepairError as fault:
        raise SetupError(str(fault)) from None
    return sources


def build(target: Path, log_path: Path) -> None:
    """Build the wheel into the folder ``target``, which appears only when it is complete."""
    environment = build_environment(find_compiler())
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    common = ["--no-deps", "--no-build-isolation", "--no-binary", "horovod"]
    log_path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".building-") as scratch:
        with Progress(f"horovod {VERSION}, source") as progress:
            fetch = [*pip, "download", *common, "--dest", scratch, "--requirement", str(SOURCE)]
            run_logged(fetch, environment, progress, log_path)
        sources = unpack(scratch)
        # pip's own cache knows nothing of PyTorch's version, so it must not keep this wheel.
        command = [*pip, "wheel", "-v", "--no-cache-dir", *common, "--wheel-dir", f"{scratch}/wheel", str(sources)]
        with Progress(f"horovod {VERSION}, building ({environment['MAKEFLAGS']}; kept for next time)") as progress:
            run_logged(command, environment, progress, log_path)
            progress.detail("built")
        Path(scratch, "wheel").rename(target)


def is_installed(wheel_folder: Path) -> bool:
    """Whether the environment's Horovod came from this folder's wheel (pip notes where a local wheel was)."""
    try:
        origin = distribution("horovod").read_text("direct_url.json")
    except PackageNotFoundError:
        return False
    return origin is not None and json.loads(origin)["url"].startswith(wheel_folder.as_uri() + "/")


def install(wheel_folder: Path) -> bool:
    """Install the folder's wheel and start Horovod once; returns whether that worked."""
    (wheel,) = wheel_folder.glob("horovod-*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    with Progress(f"horovod {VERSION}, installing and starting it once"):
        installed = subprocess.call([*pip, "--no-deps", "--no-index", "--force-reinstall", str(wheel)]) == 0
        return installed and subprocess.call([sys.executable, "-c", SMOKE_TEST]) == 0


def provide(target: Path, log_path: Path) -> None:
    """Install the kept wheel, or build it; a kept one that does not work is built anew.

    Raises:
        SetupError: Neither works.
    """
    if target.exists():
        if is_installed(target) or install(target):
            return
        shutil.rmtree(target)
    build(target, log_path)
    if not install(target):
        shutil.rmtree(target)
        raise SetupError(f"Horovod was built but does not start (see above); its build is in {log_path}\n")


def main() -> int:
    """Provide Horovod, one process at a time."""
    target = cache_folder() / wheel_key()
    try:
        with one_at_a_time(target.with_name(target.name + ".lock"), "building Horovod"):
            provide(target, target.with_name(target.name + ".log"))
    except SetupError as error:
        sys.stderr.write(str(error))
        return 1
    except KeyboardInterrupt:
        return interrupted()
    return 0


if __name__ == "__main__":
    sys.exit(main())
