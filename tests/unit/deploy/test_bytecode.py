"""The last set-up step keeps bytecode, also where the user's environment says not to."""

import subprocess
import sys
from pathlib import Path

import pytest

from deploy.setup import bytecode


def test_bytecode_is_kept_where_the_environment_forbids_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is imported in the step's environment is not compiled again by who imports it next."""
    (tmp_path / "imported_once.py").write_text("")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "kept"))

    subprocess.run([sys.executable, "-c", "import imported_once"], env=bytecode.environment(), check=True)

    assert [path.name for path in (tmp_path / "kept").rglob("imported_once*.pyc")] != []


def test_every_module_is_there() -> None:
    """A module that was renamed would make the set-up fail: each is found."""
    code = f"import importlib.util as u; print([m for m in {bytecode.MODULES} if u.find_spec(m) is None])"
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert ended.stdout == "[]\n"
