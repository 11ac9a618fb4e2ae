"""What goes into the built image and what the build is told of this computer, without building it."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.built_image import CONTAINERFILE, FETCHING, copied, digest, mounts, pip_settings, suite
from tests.cluster.places import REPOSITORY


def test_what_goes_in_is_what_the_containerfile_copies() -> None:
    """Sources, constraints and manifests; neither tests nor bytecode."""
    files = {str(path.relative_to(REPOSITORY)) for path in copied()}

    assert {"constraints.txt", "pyproject.toml", "voda_flows/control/scheduler.py"} <= files
    assert {"deploy/kustomize/base/rights.yaml", "scheduler_core/errors.py"} <= files
    assert [name for name in files if name.startswith("tests/") or name.endswith(".pyc")] == []


def test_another_base_makes_another_image() -> None:
    """The digest is of all that goes in, and the same each time."""
    assert digest("base-1.tar") == digest("base-1.tar") != digest("base-2.tar")


def test_the_base_is_of_the_release_that_the_containerfile_names() -> None:
    """Its tag begins with the release's name."""
    assert f"debian:{suite()}-" in CONTAINERFILE.read_text(encoding="utf-8")


def test_pip_is_told_what_it_is_told_here(tmp_path: Path) -> None:
    """The environment's word counts over the files', and folders that it names are there too."""
    listed = f":env:.cert='/etc/ssl/certs/all.crt'\nglobal.cert='/other'\nglobal.find-links='{tmp_path} /not/there'\n"

    settings = pip_settings(listed)

    assert settings == {"cert": "/etc/ssl/certs/all.crt", "find-links": f"{tmp_path} /not/there"}
    assert mounts(settings) == [f"{tmp_path}:{tmp_path}:ro"]


def test_of_apts_settings_only_those_of_fetching_are_handed_on() -> None:
    """A proxy is, and what comes after the fetching is not."""
    lines = ['Acquire::http::Proxy "http://proxy.example.com:3128";', 'Acquire::Check-Date "false";', 'APT "";',
             'Acquire::http "";', 'DPkg::Post-Invoke:: "rm -f /var/cache/apt/*.bin";']  # fmt: skip

    assert [line for line in lines if FETCHING.fullmatch(line)] == lines[:2]
