"""Containerfiles: pinned bases, nobody's user, and only files that there are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from voda_flows.install.overlays import CLUSTER, Wanted, documents

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "deploy/images").glob("*.containerfile"))


def instructions(path: Path) -> list[tuple[str, str]]:
    """Instructions with their words; lines that go on are joined."""
    text = re.sub(r"\\\n", " ", path.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def test_there_is_one_for_the_scheduler_and_one_for_training() -> None:
    """And no other, of which these tests would not know."""
    assert [path.stem for path in FILES] == ["scheduler", "training"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_bases_are_named_to_the_release(path: Path) -> None:
    """An image of next year is made of what this one was; a tag that moves is none."""
    bases = [words.partition("=")[2] for name, words in instructions(path) if name == "ARG"]
    stages = [words.split()[0] for name, words in instructions(path) if name == "FROM"]

    assert all(re.fullmatch(r"docker\.io/[a-z/]+:\S*\d\S*", base) for base in bases), bases
    assert all(re.fullmatch(r"\$\{\w+\}", stage) for stage in stages), stages


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_copied_is_there(path: Path) -> None:
    """A file that was renamed is missed here and not in the build."""
    copied = [words for name, words in instructions(path) if name == "COPY" and not words.startswith("--from")]
    missing = [word for words in copied for word in words.split()[:-1] if not (ROOT / word).exists()]

    assert missing == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_image_is_nobodys(path: Path) -> None:
    """Its last user is a number, as Kubernetes asks where root is forbidden: that of the manifests."""
    users = [words for name, words in instructions(path) if name == "USER"]
    (cron,) = [body for body in documents(Wanted(overlay=CLUSTER)) if body["kind"] == "CronWorkflow"]
    context = cron["spec"]["workflowSpec"]["templates"][0]["securityContext"]

    assert users == [f"{context['runAsUser']}:{context['runAsGroup']}"]


def test_packages_have_the_versions_of_the_constraints() -> None:
    """Every installation is held to them, and the scheduler asks for no extra with PyTorch."""
    for path in FILES:
        commands = [part for name, words in instructions(path) if name == "RUN" for part in words.split("&&")]
        installs = [part for part in commands if re.search(r"pip (install|wheel)", part)]
        assert installs
        assert all("--constraint constraints.txt" in part or "--no-deps" in part for part in installs)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    scheduler, training = (path.read_text(encoding="utf-8") for path in FILES)

    assert [extra for extra in extras if f"[{extra}]" in scheduler] == ["kube"]
    assert [extra for extra in extras if f"[{extra}]" in training] == ["train"]
    assert not any("torch" in wanted for wanted in extras["kube"])


def test_training_has_nccl_and_gloo() -> None:
    """GPU operations go through NCCL; Gloo is what deploy/horovod always builds, and the build ends by asking both."""
    training = dict(
        word.split("=", 1) for name, words in instructions(FILES[1]) if name == "ENV" for word in words.split()
    )
    commands = " ".join(words for name, words in instructions(FILES[1]) if name == "RUN")

    assert training["HOROVOD_GPU_OPERATIONS"] == "NCCL"
    assert "python -m deploy.horovod.build" in commands
    assert "hvd.nccl_built() and hvd.gloo_built()" in commands
