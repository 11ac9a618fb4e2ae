"""The scheduler's image as users build it, from its containerfile, on a base made with Debian's own tools.

In: ``deploy/images/scheduler.containerfile`` and what it copies. Out: an archive that goes into the nodes. No registry
is asked for an image: mmdebstrap makes the base, buildah builds on it. From where Debian's packages and Python's come
is the computer's own affair: its sources, its pip settings and its certificate authorities are handed in, and the
containerfile is built as it is. Base and image are kept in the user's cache, each by a digest of what goes into it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.setup.progress import Progress, one_at_a_time
from tests.cluster import images, requirements
from tests.cluster.faults import ClusterError
from tests.cluster.places import REPOSITORY, cache_folder

#: A file of each Debian package that is needed besides those of the cluster.
PACKAGES: Mapping[str, str] = {"buildah": "buildah", "mmdebstrap": "mmdebstrap"}
CONTAINERFILE = REPOSITORY / "deploy/images/scheduler.containerfile"
VARIANT = "minbase"
AUTHORITIES = Path("/usr/local/share/ca-certificates")
#: pip finds what is here in the image too: it is made by Debian's ca-certificates, ``AUTHORITIES`` among it.
BUNDLES = Path("/etc/ssl/certs")
PIP_SETTINGS = "/etc/pip.conf"
#: What apt is told of fetching, as a proxy or whether it may be late; not what it does with what it has fetched.
FETCHING = re.compile(r'Acquire::(https?|Check-|Retries|ForceIPv)[^ ]* "[^"]+";')
#: Images of other checkouts that are kept too.
NUM_KEPT = 3
TAIL_LINES = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """An image that was built.

    Attributes:
        name: With its tag.
        archive: As ``docker save`` writes it.
    """

    name: str
    archive: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What an image is.

    Attributes:
        settings: Its user, command and environment, as the image says it.
        sizes: Bytes of its files by path; of all layers, the last one counts.
    """

    settings: Mapping[str, Any]
    sizes: Mapping[str, int]


def provide() -> Built:
    """The scheduler's image of this checkout, built where it is missing; progress goes to stderr.

    Raises:
        CannotRunHereError: A tool is missing and cannot be installed.
        ClusterError: The build failed; with the end of what it said.
    """
    requirements.install_packages(PACKAGES)
    if not sources():
        _ask("apt-get", "-qq", "update")  # apt knows whose its sources are when it has asked them
    folder = cache_folder() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / f"base-{base_digest()}.tar"
    key = digest(base.name)
    found = Built(name=f"localhost/voda:{key}", archive=folder / f"scheduler-{key}.tar")
    with one_at_a_time(folder / "images.lock", "building the scheduler's image"):
        for left in folder.glob(".build-*"):  # of a build that was killed: nobody else holds the lock
            shutil.rmtree(left)
        if not base.exists():
            _in_scratch(folder, "base", lambda scratch: _make_base(base, scratch))
        if not found.archive.exists():
            _in_scratch(folder, "scheduler's image", lambda scratch: _build(found, base, scratch))
        found.archive.touch()
        for old in sorted(folder.glob("scheduler-*.tar"), key=lambda path: path.stat().st_mtime)[:-NUM_KEPT]:
            old.unlink()
    return found


def read(built: Built) -> Content:
    """What an image is, from its archive."""
    with tarfile.open(built.archive) as archive:
        (manifest,) = json.loads(_member(archive, "manifest.json"))
        settings = json.loads(_member(archive, manifest["Config"]))["config"]
        sizes: dict[str, int] = {}
        for name in manifest["Layers"]:
            with tarfile.open(fileobj=archive.extractfile(name)) as layer:
                sizes |= {entry.name.removeprefix("./"): entry.size for entry in layer}
    return Content(settings=settings, sizes=sizes)


def suite() -> str:
    """The release of Debian that the containerfile names for its base."""
    found = re.search(r"^ARG BASE=\S*debian:([a-z]+)", CONTAINERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None, f"{CONTAINERFILE}: expected a base that is a release of Debian"
    return found[1]


def copied() -> list[Path]:
    """The files that the containerfile copies out of the checkout."""
    words = re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    named = [REPOSITORY / word for line in words for word in line.split()]
    files = [file for path in named for file in ([path] if path.is_file() else path.rglob("*"))]
    return sorted(file for file in files if file.is_file() and "__pycache__" not in file.parts)


def digest(base: str) -> str:
    """What the image is built from, as a short text."""
    files = [CONTAINERFILE, *copied()]
    parts = [part for file in files for part in (str(file.relative_to(REPOSITORY)).encode(), file.read_bytes())]
    return _short(base.encode(), *parts)


def base_digest() -> str:
    """What the base is made from, as a short text."""
    return _short(*(word.encode() for word in (VARIANT, suite(), *sources(), *fetching())))


def sources() -> list[str]:
    """Where this computer has that release of Debian from, as lines for apt; none where it does not have it."""
    line = "deb $(REPO_URI) $(RELEASE) $(COMPONENT)\t$(CODENAME)"
    asked = _ask("apt-get", "indextargets", "--format", line, "Created-By: Packages", "Origin: Debian")
    rows = [row.partition("\t") for row in asked.splitlines()]
    return sorted({entry for entry, _, codename in rows if codename.split("-")[0] == suite()})


def fetching() -> list[str]:
    """What apt is told here of fetching."""
    return [line for line in _ask("apt-config", "dump").splitlines() if FETCHING.fullmatch(line)]


def pip_settings(listed: str) -> dict[str, str]:
    """Of what ``pip config list`` says: from where packages come and how, the environment's word over the files'."""
    rows = [line.partition("=") for line in sorted(listed.splitlines(), key=lambda line: line.startswith(":env:"))]
    return {name.rpartition(".")[2]: str(ast.literal_eval(value)) for name, _, value in rows}


def mounts(settings: Mapping[str, str]) -> list[str]:
    """Folders and files of this computer that pip's settings name, and that the image does not have of its own."""
    paths = [Path(word) for value in settings.values() for word in value.split() if word.startswith("/")]
    return [f"{path}:{path}:ro" for path in paths if path.exists() and BUNDLES not in path.parents]


def _make_base(target: Path, scratch: Path) -> None:
    """Debian and nothing else, with this computer's sources."""
    options = [f"--aptopt={line.removesuffix(';')}" for line in fetching()]
    where = ["--mode=root", f"--variant={VARIANT}", "--format=tar", *options, suite(), f"{scratch}/files.tar"]
    _run(["mmdebstrap", *where, *sources()], scratch)
    images.pack(images.Image(name="localhost/debian:1"), (scratch / "files.tar").read_bytes(), target)


def _build(wanted: Built, base: Path, scratch: Path) -> None:
    # vfs and chroot: nothing is mounted that a build which is killed could leave behind.
    store = ["buildah", "--root", f"{scratch}/store", "--runroot", f"{scratch}/run", "--storage-driver", "vfs"]
    where = ["--isolation", "chroot", "--network", "host", "--build-arg", f"BASE=docker-archive:{base}"]
    handed = [word for volume in _handed_in(scratch) for word in ("--volume", volume)]
    named = ["--file", str(CONTAINERFILE), "--tag", wanted.name, str(REPOSITORY)]
    _run([*store, "build", *where, *handed, *named], scratch)
    new = scratch / "image.tar"
    _run([*store, "push", wanted.name, f"docker-archive:{new}:{wanted.name}"], scratch)
    new.rename(wanted.archive)


def _handed_in(scratch: Path) -> Iterator[str]:
    """What the build finds of this computer's settings, as volumes; in the image their places are empty."""
    settings = pip_settings(_ask(sys.executable, "-m", "pip", "config", "list"))
    lines = [f"{name} = {value}".replace("\n", "\n  ") for name, value in settings.items()]
    (scratch / "pip.conf").write_text("\n".join(["[global]", *lines, ""]), encoding="utf-8")
    authorities = scratch / "authorities"  # a copy: Debian's package sets the owner of the folder
    if AUTHORITIES.is_dir():
        shutil.copytree(AUTHORITIES, authorities)
    authorities.mkdir(exist_ok=True)
    yield f"{scratch}/pip.conf:{PIP_SETTINGS}:ro"
    yield f"{authorities}:{AUTHORITIES}"
    yield from mounts(settings)


def _in_scratch(folder: Path, what: str, make: Callable[[Path], None]) -> None:
    with (
        Progress(f"{what}, building (kept for next time)"),
        tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as scratch,
    ):
        make(Path(scratch))


def _run(command: list[str], scratch: Path) -> None:
    """Run a command that keeps its own files in the scratch folder.

    Raises:
        ClusterError: It failed; with the end of what it said.
    """
    environment = {**os.environ, "TMPDIR": str(scratch), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-TAIL_LINES:])
        raise ClusterError(f"`{command[0]}`: expected it to work, it ended with {done.returncode}\n{tail}")


def _ask(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None, f"expected {name} in the archive"
    return file.read()


def _short(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]
