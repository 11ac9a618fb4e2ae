"""The set-up step that installs packages: what it asks for, and what it tells while pip works."""

from pathlib import Path

import pytest

from deploy.setup.packages import PipStory, requirements
from deploy.setup.progress import Progress, one_at_a_time

ROOT = Path(__file__).resolve().parents[3]


def test_every_requirement_has_an_upper_bound() -> None:
    """A fresh machine next year must not get a version that nobody has tried."""
    unbounded = [wanted for wanted in requirements(ROOT / "pyproject.toml") if "<" not in wanted]

    assert unbounded == []


def test_constraints_pin_versions_and_name_no_place() -> None:
    """constraints.txt holds name==version lines only."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()

    assert [line for line in lines if not line.startswith("#") and ("==" not in line or "/" in line)] == []


def test_downloads_are_told_apart_from_installing(capsys: pytest.CaptureFixture[str]) -> None:
    """Sizes of all units add up; the line that begins the installation ends the downloading."""
    story = PipStory(Progress("packages"))

    for line in (
        "Collecting torch\n",
        "  Downloading torch-2.15.0-cp311-cp311-linux.whl (780.1 MB)\n",
        "  Downloading tiny-1.0-py3-none-any.whl.metadata (900 kB)\n",
        "  Using cached click-8.5.1-py3-none-any.whl (98 kB)\n",
        "Installing collected packages: torch, click\n",
    ):
        story.read(line)

    assert story.summary() == "781 MB found and downloaded in 0 s, installed in 0 s"
    assert capsys.readouterr().err == ""


def test_nothing_to_install_is_said_so() -> None:
    """Pip that finds everything there never begins to install."""
    assert PipStory(Progress("packages")).summary() == "all there"


def test_a_failed_step_says_that_it_is_not_finished(capsys: pytest.CaptureFixture[str]) -> None:
    """The last line of a step tells how it ended, with its time."""

    def fail() -> None:
        with Progress("step") as progress:
            progress.detail("half way")
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert capsys.readouterr().err == "step ...\nstep: not finished (0 s)\n"


def test_a_lock_is_free_again_after_its_holder(tmp_path: Path) -> None:
    """The lock's folder is made on demand, and taking it twice in a row does not wait."""
    lock = tmp_path / "new" / "setup.lock"

    for _ in range(2):
        with one_at_a_time(lock, "something"):
            pass

    assert lock.exists()
