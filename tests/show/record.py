"""Keeps what was measured, per state of the working tree, so that an interrupted run goes on where it was.

A figure that raised is not kept. One that did not hold is: measuring until it does would be no measurement
(``--again`` measures afresh on purpose).
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.show.registry import Figure, Row

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "show"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A figure's rows and the seconds it took."""

    rows: tuple[Row, ...]
    seconds: float


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def tree_state() -> str:
    """Name of the working tree's state: the commit, and a digest of what is not committed."""
    commit = _git("rev-parse", "--short=12", "HEAD").decode().strip()
    digest = hashlib.sha256(_git("diff", "HEAD", "--binary"))
    for name in sorted(filter(None, _git("ls-files", "--others", "--exclude-standard", "-z").split(b"\0"))):
        path = ROOT / name.decode()
        digest.update(name + b"\0" + (path.read_bytes() if path.is_file() else b""))
    clean = digest.digest() == hashlib.sha256().digest()
    return commit if clean else f"{commit}-{digest.hexdigest()[:8]}"


def _path(state: str, figure: Figure, *, quick: bool) -> Path:
    sample = "quick" if quick else "full"
    return FOLDER / state / f"{figure.area}.{figure.name}.{sample}.json"


def kept(state: str, figure: Figure, *, quick: bool) -> Record | None:
    """What was measured before for this state, if anything."""
    path = _path(state, figure, quick=quick)
    if not path.exists():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    return Record(rows=tuple(Row(**row) for row in content["rows"]), seconds=content["seconds"])


def keep(state: str, figure: Figure, record: Record, *, quick: bool) -> None:
    """Write a record whole or not at all."""
    path = _path(state, figure, quick=quick)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".tmp")
    scratch.write_text(json.dumps(asdict(record)), encoding="utf-8")
    scratch.replace(path)
