"""Second set-up step: every package of pyproject.toml, at the versions of constraints.txt, and this one, editable.

Usage: ``python -m deploy.setup.packages`` with the environment's Python, in the repository's root. pip takes whichever
index the machine has configured. What pip says goes to a log; the user sees the file it is at, and at the end what was
downloaded and how long that and the installing took.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

from deploy.setup.progress import Progress, interrupted, one_at_a_time

EXTRAS = ("train", "kube", "argo-server", "dev", "setup")
MEGABYTES_BY_UNIT = {"bytes": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}
DOWNLOAD = re.compile(r"\s*Downloading (?P<file>\S+) \((?P<size>[\d.]+) (?P<unit>bytes|kB|MB|GB)\)")
LOG_LINES_ON_FAILURE = 25


def requirements(pyproject: Path) -> list[str]:
    """What pyproject.toml asks for, in its own words."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in EXTRAS:
        wanted += project["optional-dependencies"][extra]
    return wanted


class PipStory:
    """Follows pip's output: which file it is at, how much came over the network, when downloading ended."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._download_mb = 0.0
        self._downloaded_s: float | None = None

    def read(self, line: str) -> None:
        """Take one line of pip's output."""
        if download := DOWNLOAD.match(line):
            size_mb = float(download["size"]) * MEGABYTES_BY_UNIT[download["unit"]]
            self._download_mb += size_mb
            name = download["file"].rsplit("/", 1)[-1].split("-cp")[0].split("-py")[0]
            self._progress.detail(f"downloading {name}, {size_mb:.0f} MB ({self._download_mb:.0f} MB so far)")
        elif line.startswith("Installing collected packages"):
            self._downloaded_s = self._progress.elapsed_s
            self._progress.detail(f"installing {line.count(',') + 1} packages")

    def summary(self) -> str:
        """What there is to tell at the end."""
        if self._downloaded_s is None:
            return "all there"
        installed_s = self._progress.elapsed_s - self._downloaded_s
        return (
            f"{self._download_mb:.0f} MB found and downloaded in {self._downloaded_s:.0f} s, "
            f"installed in {installed_s:.0f} s"
        )


def run_pip(arguments: list[str], progress: Progress, log_path: Path) -> int:
    """Run ``pip install`` with its output in a log; returns its exit code."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--progress-bar",
        "off",
        *arguments,
    ]
    story = PipStory(progress)
    with log_path.open("a", encoding="utf-8") as log:
        log.write(f"\n{time.ctime()} {' '.join(command)}\n")
        pip = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert pip.stdout is not None
        for line in pip.stdout:
            log.write(line)
            story.read(line)
        progress.detail(story.summary())
        return pip.wait()


def install(root: Path, log_path: Path) -> int:
    """Install what is missing; returns pip's exit code."""
    with Progress("packages") as progress:
        # Compiling all of torch to bytecode takes half a minute, and only a part is ever imported.
        wanted = ["--no-compile", "--constraint", str(root / "constraints.txt"), *requirements(root / "pyproject.toml")]
        code = run_pip(wanted, progress, log_path)
    if code == 0:
        with Progress("voda itself") as progress:
            editable = ["--no-deps", "--no-build-isolation", "--no-index", "--editable", str(root)]
            code = run_pip(editable, progress, log_path)
            progress.detail("installed, editable")
    return code


def main() -> int:
    """Install, and on failure show the end of pip's own words."""
    root = Path.cwd()
    log_path = Path(sys.prefix) / "setup.log"
    try:
        with one_at_a_time(Path(sys.prefix) / "setup.lock", "setting up this environment"):
            code = install(root, log_path)
    except KeyboardInterrupt:
        return interrupted()
    if code:
        tail = log_path.read_text(encoding="utf-8").splitlines()[-LOG_LINES_ON_FAILURE:]
        sys.stderr.write("\n".join([*tail, f"pip ended with {code}; the whole story is in {log_path}", ""]))
    return code


if __name__ == "__main__":
    sys.exit(main())
