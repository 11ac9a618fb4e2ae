"""Building Horovod: the compiler wrapper, the key of a kept wheel, and what is said when no compiler is there."""

import subprocess
from pathlib import Path

import pytest

from deploy.horovod import build, repairs


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        (["-std=c++14", "-c", "a.cc"], ["-std=gnu++20", "-c", "a.cc"]),
        (["-O3", "-std=gnu++11", "-std=c++11"], ["-O3", "-std=gnu++20", "-std=gnu++20"]),
        (["-std=c99", "-DX=a b", "-o", "x y"], ["-std=c99", "-DX=a b", "-o", "x y"]),
        (["-std=c++23"], ["-std=c++23"]),
        (["-O3", "-g", "-DNDEBUG", "-g"], ["-O3", "-DNDEBUG"]),
    ],
)
def test_wrapper_raises_the_language_level_and_leaves_debug_information_out(
    given: list[str], passed_on: list[str]
) -> None:
    """Old C++ levels become gnu++20; every other argument but ``-g`` arrives as it was, blanks included."""
    wrapper = Path(build.__file__).with_name("cxx")

    shown = subprocess.run(
        [wrapper, "%s\n", *given], env={"VODA_REAL_CXX": "/usr/bin/printf"}, check=True, capture_output=True, text=True
    )

    assert shown.stdout.splitlines() == passed_on


def test_wheel_is_kept_under_all_that_it_depends_on() -> None:
    """Horovod, its repairs, PyTorch, Python and platform are in the key."""
    horovod, version, mended, torch, torch_version, python, *platform = build.wheel_key().split("-")

    assert (horovod, version, mended, torch) == ("horovod", build.VERSION, repairs.digest(), "torch")
    assert torch_version[0].isdigit()
    assert python.startswith("cpython")
    assert platform != []


def test_wheels_are_kept_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """XDG_CACHE_HOME is honoured, ~/.cache is the default; an empty variable counts as none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    named = build.cache_folder()
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", "/home/somebody")

    assert named == tmp_path / "voda" / "wheels"
    assert build.cache_folder() == Path("/home/somebody/.cache/voda/wheels")


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Package names for Debian, Fedora and macOS are in the message."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)

    with pytest.raises(build.SetupError) as error:
        build.find_compiler()

    advice = ("apt-get install g++", "dnf install gcc-c++", "xcode-select --install")
    assert [text for text in advice if text not in str(error.value)] == []
