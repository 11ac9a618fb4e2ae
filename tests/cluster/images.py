"""Makes the cluster's container images without a container tool, and brings images into nodes.

Three images, none of which comes from a registry: the sandbox's ``pause``, Argo's executor, and
``localhost/voda-host`` whose folders are links into ``/host``: where a pod mounts the machine's own files there, it can
run what is installed on this computer, the virtual environment of the tests with it, though it cannot change them.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import sys
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.machines import inside
from tests.cluster.places import MACHINE_FOLDER, REPOSITORY
from tests.cluster.processes import Processes
from tests.cluster.programs import ARGO_VERSION, Programs
from voda_flows.objects import Object

PAUSE_IMAGE = "localhost/voda-pause:1"
EXECUTOR_IMAGE = f"localhost/argoexec:{ARGO_VERSION}"
HOST_IMAGE = "localhost/voda-host:1"
HOST_MOUNT = "/host"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Of the root folder: what a container has of its own.
OWN_FOLDERS = {"proc", "sys", "dev", "run", "tmp", "etc", "var", "host", "lost+found"}
#: Of /etc: what programs need besides their files.
HOST_SETTINGS = ("ssl", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "ca-certificates")
ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
OPEN_FOLDER = 0o1777


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One image with one layer.

    Attributes:
        name: With its tag.
        programs: Files of this computer, by their path in the image.
        texts: Content of files, by path.
        links: Targets of symbolic links, by path.
        folders: Empty folders.
        command: What runs when a pod names nothing.
    """

    name: str
    programs: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


def images(programs: Programs) -> list[Image]:
    """The images that each node has."""
    executor = {"bin/argoexec": programs.path("argoexec")}
    return [
        Image(name=PAUSE_IMAGE, programs={"pause": programs.path("pause")}, command=("/pause",)),
        Image(name=EXECUTOR_IMAGE, programs=executor, folders=("tmp",), command=("argoexec",)),
        Image(name=HOST_IMAGE, texts=ACCOUNTS, links=_links_to_host(), folders=("tmp", "run", "var/tmp", "host")),
    ]


def shown_folders() -> list[Path]:
    """What a pod with ``HOST_IMAGE`` finds under the name that it has on this computer, wherever that is."""
    found = {Path(path).resolve() for path in (REPOSITORY, sys.prefix, sys.base_prefix)}
    return sorted(path for path in found if not any(other in path.parents for other in found))


def host_volume() -> Object:
    """The volume for pods with ``HOST_IMAGE``."""
    return {"name": "host", "hostPath": {"path": MACHINE_FOLDER, "type": "Directory"}}


def host_mount() -> Object:
    """The mount of ``host_volume`` in a container."""
    return {"name": "host", "mountPath": HOST_MOUNT, "readOnly": True}


def write_archive(image: Image, path: Path) -> None:
    """Write an image as an archive that ``ctr images import`` and ``docker load`` read; it appears whole."""
    pack(image, _layer(image), path)


def pack(image: Image, layer: bytes, path: Path) -> None:
    """Write such an archive.

    Args:
        image: Its name and command.
        layer: Its files, as a tar archive.
        path: Of the archive.
    """
    digest = hashlib.sha256(layer).hexdigest()
    machine = platform.machine()
    settings = {
        "architecture": ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {"Env": [PATH], "Cmd": list(image.command) or None, "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created_by": "voda"}],
    }
    config = json.dumps(settings).encode()
    name = hashlib.sha256(config).hexdigest()
    manifest = [{"Config": f"{name}.json", "RepoTags": [image.name], "Layers": [f"{digest}/layer.tar"]}]
    new = path.with_suffix(".new")
    with tarfile.open(new, "w") as archive:
        _add(archive, f"{name}.json", config)
        _add(archive, f"{digest}/layer.tar", layer)
        _add(archive, "manifest.json", json.dumps(manifest).encode())
    new.replace(path)


def archives(programs: Programs, folder: Path) -> dict[str, Path]:
    """The images' archives by their names, written where they are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {image.name: folder / f"{image.name.split('/')[1].split(':')[0]}.tar" for image in images(programs)}
    for image in images(programs):
        if not found[image.name].exists():
            write_archive(image, found[image.name])
    return found


def load(machine: str, paths: Mapping[str, Path], processes: Processes) -> None:
    """Bring images into a node's containerd that it does not have.

    Args:
        machine: The node.
        paths: Archives by the names of their images.
        processes: Where the node is known.
    """
    listed = set(inside(machine, processes, script="ctr --namespace k8s.io images list --quiet").split())
    for path in _missing(paths, listed):
        inside(machine, processes, script=f"ctr --namespace k8s.io images import '{path}'")


def _missing(paths: Mapping[str, Path], listed: Iterable[str]) -> list[Path]:
    known = set(listed)
    return [path for name, path in paths.items() if name not in known]


def _links_to_host() -> dict[str, str]:
    """Links from all of the image's root into the mounted files of this computer."""
    roots = [path.name for path in sorted(Path("/").iterdir()) if path.name not in OWN_FOLDERS]
    links = {name: f"{HOST_MOUNT}/{name}" for name in roots}
    links |= {f"etc/{name}": f"{HOST_MOUNT}/etc/{name}" for name in HOST_SETTINGS}
    for folder in shown_folders():
        if folder.parts[1] in OWN_FOLDERS:
            links[str(folder).lstrip("/")] = f"{HOST_MOUNT}{folder}"
    return links


def _layer(image: Image) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as layer:
        known: set[str] = set()
        for folder in image.folders:
            _add_folders(layer, folder, known)
        for path in [*image.programs, *image.texts, *image.links]:
            _add_folders(layer, str(Path(path).parent), known)
        for path, target in image.links.items():
            link = tarfile.TarInfo(path)
            link.type, link.linkname = tarfile.SYMTYPE, target
            layer.addfile(link)
        for path, text in image.texts.items():
            _add(layer, path, text.encode())
        for path, source in image.programs.items():
            _add(layer, path, Path(source).read_bytes(), mode=0o755)
    return content.getvalue()


def _add_folders(layer: tarfile.TarFile, path: str, known: set[str]) -> None:
    """Add a folder and those above it, each once."""
    for folder in [*reversed(Path(path).parents), Path(path)]:
        name = str(folder)
        if name not in {*known, "."}:
            known.add(name)
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, OPEN_FOLDER if folder.name == "tmp" else 0o755
            layer.addfile(entry)


def _add(archive: tarfile.TarFile, path: str, content: bytes, *, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
