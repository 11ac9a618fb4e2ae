"""An installed package has what ``voda up`` and ``voda install`` put in place."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_wheel_brings_templates_and_manifests_that_find_each_other(tmp_path: Path) -> None:
    """Unpacked anywhere, without the source tree, it renders the same documents."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    render = (
        "import json; from voda_flows.install.overlays import OVERLAYS, Wanted, documents, manifests;"
        "print(manifests()); print(json.dumps([documents(Wanted(overlay=name)) for name in OVERLAYS]))"
    )

    def rendered(path: Path) -> list[str]:
        command = [sys.executable, "-c", render]
        ended = subprocess.run(
            command, cwd="/", env={"PYTHONPATH": str(path)}, check=True, capture_output=True, text=True
        )
        return ended.stdout.splitlines()

    where, installed = rendered(tmp_path / "site")
    assert Path(where) == tmp_path / "site/voda_flows/deploy/kustomize"
    assert installed == rendered(ROOT)[1]
