"""First set-up step: the virtual environment, or what is missing for one.

Usage: ``python3 deploy/setup/venv.py FOLDER``. Runs on whatever Python the machine has (this file must parse on old
ones, to say so); an environment that works is kept, one whose interpreter has gone is made anew.
"""

import subprocess
import sys
import sysconfig

OLDEST = (3, 11)
ADVICE = (
    "  Debian, Ubuntu:  sudo apt-get install python3 python3-venv python3-dev\n"
    "  Fedora:          sudo dnf install python3 python3-devel\n"
    "  macOS:           brew install python\n"
    "or name another interpreter: make PYTHON=/path/to/python3.12 ...\n"
)


def works(folder: str) -> bool:
    """Whether the environment's own interpreter starts, is new enough and has pip."""
    check = f"import sys, pip; sys.exit(sys.version_info < {OLDEST})"
    try:
        return subprocess.call([folder + "/bin/python", "-c", check], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def main(folder: str) -> int:
    """Make the environment; the exit code says whether there is one now."""
    if works(folder):
        return 0
    mine = f"Python {sysconfig.get_python_version()} ({sys.executable})"
    if sys.version_info < OLDEST:
        sys.stderr.write(f"expected Python {OLDEST[0]}.{OLDEST[1]} or newer, found {mine}. Install one:\n{ADVICE}")
        return 1
    if subprocess.call([sys.executable, "-m", "venv", "--clear", folder]) != 0:
        sys.stderr.write(f"{mine} cannot make a virtual environment. Install its venv module:\n{ADVICE}")
        return 1
    sys.stderr.write(f"virtual environment: {folder}, {mine}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
