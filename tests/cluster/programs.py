"""Builds the cluster's programs from their Go modules and keeps them in the user's cache.

Each group has a go.mod and a go.sum under ``programs/``: versions are pinned, what is downloaded is checked. Which
proxy the modules come from is the machine's own affair. A folder in the cache is keyed by all that goes into a build,
appears whole or not at all, and is made once: a second build waits for the first and takes what it made.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from deploy.setup.progress import Progress, one_at_a_time
from tests.cluster.faults import CannotRunHereError, ClusterError
from tests.cluster.places import cache_folder

GROUPS_FOLDER = Path(__file__).with_name("programs")
ARGO_MODULE = "github.com/argoproj/argo-workflows/v4"
ARGO_VERSION = "v4.0.5"
KUBERNETES_VERSION = "v1.34.4"
KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet")
ARGO = ("argo", "argoexec", "workflow-controller")
TAIL_LINES = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Programs that are built together, from one go.mod.

    Attributes:
        name: Folder under ``programs/``.
        packages: Go package of each program, by the program's name.
        environment: Added to the environment of the build.
        link: Flags for the linker.
        vendored: Whether the modules are copied and mended before the build.
    """

    name: str
    packages: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=lambda: {"CGO_ENABLED": "0"})
    link: str = "-s -w"
    vendored: bool = False


# kubectl says which version it is; the API server tells clients.
VERSION_FLAGS = f"-s -w -X k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION}"
GROUPS = (
    Group(name="pause", packages={"pause": "."}),
    Group(name="etcd", packages={"etcd": "go.etcd.io/etcd/server/v3"}),
    Group(
        name="argo",
        packages={program: f"{ARGO_MODULE}/cmd/{program}" for program in ARGO},
        link=f"-s -w -X {ARGO_MODULE}.version={ARGO_VERSION}",
        vendored=True,
    ),
    Group(
        name="kubernetes",
        packages={program: f"k8s.io/kubernetes/cmd/{program}" for program in KUBERNETES},
        environment={},
        link=VERSION_FLAGS,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Built programs: where each group's folder is."""

    folders: Mapping[str, Path]

    def path(self, program: str) -> str:
        """The path of a program by its name."""
        group = next(group for group in GROUPS if program in group.packages)
        return str(self.folders[group.name] / "bin" / program)

    @property
    def argo_manifests(self) -> Path:
        """Argo's own manifests: ``crds`` and ``rbac``."""
        return self.folders["argo"] / "manifests"


@cache
def go_version() -> str | None:
    """Which Go builds here, as in ``go1.26.0``; None where there is none."""
    if shutil.which("go") is None:
        return None
    asked = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=False, cwd=GROUPS_FOLDER)
    return asked.stdout.strip() or None


def digest(group: Group) -> str:
    """What a group is built from and how, as a short text."""
    source = GROUPS_FOLDER / group.name
    parts = [path.read_bytes() for path in sorted(source.iterdir())]
    recipe = repr((sorted(group.packages.items()), sorted(group.environment.items()), group.link, group.vendored))
    return hashlib.sha256(b"\0".join([*parts, recipe.encode()])).hexdigest()[:12]


def find_built(group: Group) -> Path | None:
    """The folder of a group that was built before, with this machine's Go or, where there is none, with any."""
    where = cache_folder() / "programs"
    version = go_version() or "*"
    found = sorted(where.glob(f"{group.name}-{digest(group)}-{version}-{_platform()}"))
    return found[-1] if found else None


def are_built() -> bool:
    """Whether every group is in the cache."""
    return all(find_built(group) is not None for group in GROUPS)


def provide() -> Programs:
    """All programs, built where they are missing; progress goes to stderr.

    Raises:
        CannotRunHereError: Something has to be built and there is no Go.
        ClusterError: A build failed; with the end of what it said.
    """
    return Programs(folders={group.name: find_built(group) or _provide(group) for group in GROUPS})


def _platform() -> str:
    return f"{platform.system()}-{platform.machine()}".lower()


def _provide(group: Group) -> Path:
    version = go_version()
    if version is None:
        raise CannotRunHereError("expected Go to build the cluster's programs, found no `go` in PATH; install Go 1.26")
    target = cache_folder() / "programs" / f"{group.name}-{digest(group)}-{version}-{_platform()}"
    with one_at_a_time(target.with_name(f"{group.name}.lock"), f"building {group.name}"):
        if not target.exists():
            for left in target.parent.glob(
                f".{group.name}-*"
            ):  # of a build that was killed: nobody else holds the lock
                shutil.rmtree(left)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{group.name}-") as scratch:
                _build(group, Path(scratch), target.with_name(f"{group.name}.log"))
                Path(scratch, "out").rename(target)
    return target


def _build(group: Group, scratch: Path, log: Path) -> None:
    """Build a group into the folder ``out`` of a scratch folder."""
    source, out = scratch / "source", scratch / "out"
    shutil.copytree(GROUPS_FOLDER / group.name, source)
    (out / "bin").mkdir(parents=True)
    log.unlink(missing_ok=True)
    run = _Runner(source=source, environment={**os.environ, "GOWORK": "off", **group.environment}, log=log)
    packages = list(group.packages.values())
    with Progress(f"{group.name}, building (kept for next time)") as progress:
        if group.vendored:
            progress.detail("fetching modules")
            run(["go", "mod", "vendor", "-e"], progress.detail)
            _mend_argo(source, out)
        listed = run(["go", "list", "-deps", *packages], lambda _: None)
        # Copied modules lie in a new folder each time: with its path in them, nothing built before could be used again.
        flags = ["-v", f"-ldflags={group.link}", *(["-trimpath"] if group.vendored else [])]
        run(["go", "build", *flags, "-o", f"{out}/bin/", *packages], _counter(progress, len(listed)))
        progress.detail("built")
    for program, package in group.packages.items():
        _rename(out / "bin", package, program)


def _rename(folder: Path, package: str, program: str) -> None:
    """Give a program its name where Go named it after its package's folder or module."""
    if not (folder / program).exists():
        words = [word for word in package.split("/") if not re.fullmatch(r"v\d+", word)]
        (folder / words[-1]).rename(folder / program)


def _mend_argo(source: Path, out: Path) -> None:
    """Put back into the copy of Argo's module what module archives cannot carry, and keep its manifests.

    ``signal_linux.go`` is a symbolic link upstream. The UI that the server embeds is made by a build of its own.
    """
    module = source / "vendor" / ARGO_MODULE
    link = module / "workflow/executor/osspecific/signal_linux.go"
    if not link.exists():
        link.symlink_to("signal_darwin.go")
    page = module / "ui/dist/app/index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("<!doctype html><title>no UI</title><p>This server was built without Argo's UI.</p>\n")
    asked = subprocess.run(
        ["go", "list", "-mod=mod", "-m", "-f", "{{.Dir}}", ARGO_MODULE], cwd=source, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    manifests = Path(asked.stdout.strip()) / "manifests"
    _copy(manifests / "base/crds/full", out / "manifests/crds")
    _copy(manifests / "cluster-install-no-crds/workflow-controller-rbac", out / "manifests/rbac")


def _copy(source: Path, target: Path) -> None:
    """Copy manifests: the module's own files are read-only, copies are not."""
    target.mkdir(parents=True)
    for path in sorted(source.glob("*.yaml")):
        if path.name != "kustomization.yaml":
            (target / path.name).write_bytes(path.read_bytes())


def _counter(progress: Progress, total: int) -> Callable[[str], None]:
    """Follows a build: how many packages are compiled (those built before are not named) and what is fetched."""
    compiled = 0

    def tell(line: str) -> None:
        nonlocal compiled
        if line.startswith("go: downloading"):
            progress.detail(f"fetching {line.split()[2]}")
        elif not line.startswith(("go:", "#")):
            compiled += 1
            progress.detail(f"{compiled} packages compiled, {total} at most")

    return tell


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runner:
    """Runs the commands of one build in its folder, with their output in its log."""

    source: Path
    environment: Mapping[str, str]
    log: Path

    def __call__(self, command: list[str], tell: Callable[[str], None]) -> list[str]:
        """Run a command; each line that it says is told and returned.

        Raises:
            ClusterError: It failed; with the end of what it said.
        """
        lines: list[str] = []
        with self.log.open("a", encoding="utf-8") as log:
            child = subprocess.Popen(
                command, cwd=self.source, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True,
            )  # fmt: skip
            assert child.stdout is not None
            for line in child.stdout:
                log.write(line)
                lines.append(line.rstrip())
                tell(lines[-1])
            code = child.wait()
        if code:
            said = "\n".join(lines[-TAIL_LINES:])
            raise ClusterError(f"{said}\n`{' '.join(command[:3])}` ended with {code}; the whole story is in {self.log}")
        return lines
