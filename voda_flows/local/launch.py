"""What a pod's document means on this machine: command, environment, files and folders of its process.

In: a bound Pod (with its address and slots) and what it refers to; out: a ``Launch``, values only. ``pods.py`` writes
and starts it. Paths of the container (mounts, declared outputs, the script) are given places in the pod's own folder
or in a claim's, and are replaced as text in command, arguments, script and environment (docs/contracts.md, section 9).
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scheduler_core.errors import InvalidValue, NotFound
from voda_flows.objects import Object

COLLECT, SLOTS, WORKDIR = "voda.dev/collect", "voda.dev/slots", "voda.dev/workdir"
PROGRESS_PATH = "/var/run/argo/progress"
MARK = "VODA_POD"
"""Environment variable with the pod's uid in each of its processes: they are found by it when their parent is lost."""
DEFAULT_GRACE_S = 30
PYTHONS = frozenset({"python", "python3"})

Source = Callable[[str, str, str], Object]
"""``get`` of the object store: where Secrets and ConfigMaps come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What of this machine a pod's process is to see.

    Attributes:
        home: Folder of local mode's state.
        workdir: Folder to start in where the container names none; none for the pod's own.
        environment: Variables it starts from.
        devices: Device number of each real GPU that its slots stand for.
        read: Where Secrets and ConfigMaps come from.
    """

    home: Path
    workdir: Path | None
    environment: Mapping[str, str]
    devices: tuple[int, ...]
    read: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A pod's process before it starts.

    Attributes:
        spec: Content of ``pod.json`` (see ``pod.py``).
        files: Files to write beforehand, readable by their owner only.
        folders: Folders to make beforehand.
    """

    spec: Mapping[str, Any]
    files: Mapping[Path, bytes] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()


def pod_folder(home: Path, uid: str) -> Path:
    """The folder of a pod."""
    return home / "pods" / uid


def main_container(pod: Object) -> Object:
    """The one container that runs.

    Raises:
        InvalidValue: There is none called ``main``.
    """
    for container in pod["spec"].get("containers") or ():
        if container.get("name") == "main":
            return dict(container)
    raise InvalidValue("expected a container called 'main', got none (at $.spec.containers)")


def collected(pod: Object) -> Object:
    """What the pod is to collect: its annotation ``voda.dev/collect``."""
    return dict(json.loads((pod["metadata"].get("annotations") or {}).get(COLLECT) or "{}"))


def launch(pod: Object, around: Surroundings) -> Launch:
    """What starting the pod takes.

    Raises:
        NotFound: A Secret or ConfigMap that it needs is not there (yet).
        InvalidValue: It asks for what local mode has not, or makes no sense.
    """
    container, collect = main_container(pod), collected(pod)
    folder = pod_folder(around.home, pod["metadata"]["uid"])
    volumes = _volumes(pod, around)
    places = _places(container, collect, folder, volumes)
    workdir = around.workdir or folder / "fs"
    cwd = Path(translate(container.get("workingDir") or str(workdir), places))
    environment = _environment(pod, container, around, places, [str(cwd), str(workdir)])
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not words:
        raise InvalidValue("expected a command: there is no image to take one from (at $.spec.containers[0].command)")
    declared = {entry["name"]: entry.get("value") or "" for entry in container.get("env") or ()}
    command = [translate(expand(str(word), {**environment, **declared}), places) for word in words]
    if command[0] in PYTHONS:
        command[0] = sys.executable
    parameters = {name: translate(path, places) for name, path in (collect.get("parameters") or {}).items()}
    files = {path: content for volume in volumes.values() for path, content in volume.files.items()}
    if (source := collect.get("source")) is not None:
        files[Path(places[collect["sourcePath"]])] = translate(source, places).encode()
    folders = [folder / "fs", *(volume.path for volume in volumes.values()), *map(_parent, parameters.values())]
    return Launch(
        spec={
            "command": command,
            "env": environment,
            "cwd": str(cwd),
            "grace_s": pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_S),
            "deadline_s": pod["spec"].get("activeDeadlineSeconds"),
            "parameters": parameters,
            "result": bool(collect.get("result")),
        },
        files=files,
        folders=tuple(dict.fromkeys(folders)),
    )


def translate(text: str, places: Mapping[str, str]) -> str:
    """The text with each path of the container replaced by its place; of two that fit, the longer.

    >>> translate("cat /voda/a /voda-key /x/voda", {"/voda": "/home/v"})
    'cat /home/v/a /voda-key /x/voda'
    """
    if not places:
        return text
    paths = "|".join(re.escape(path) for path in sorted(places, key=len, reverse=True))
    return re.sub(rf"(?<![\w.}})/-])({paths})(?![\w-]|\.\w)", lambda found: places[found[1]], text)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """The text with ``$(NAME)`` replaced where there is such a variable, and ``$$`` as ``$``, as Kubernetes does.

    >>> expand("$(A) $$(A) $$ $(NOPE)", {"A": "va"})
    'va $(A) $ $(NOPE)'
    """

    def replaced(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else variables.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", replaced, text)


def field_value(pod: Object, path: str) -> str:
    """What a ``fieldRef`` names; empty where the pod has it not.

    Raises:
        InvalidValue: There is no such field.
    """
    if keyed := re.fullmatch(r"metadata\.(annotations|labels)\['([^']+)'\]", path):
        return str((pod["metadata"].get(keyed[1]) or {}).get(keyed[2], ""))
    if path in ("metadata.annotations", "metadata.labels"):
        values: Mapping[str, str] = pod["metadata"].get(path.rpartition(".")[2]) or {}
        return "\n".join(f"{name}={json.dumps(values[name])}" for name in sorted(values))
    section, _, name = path.partition(".")
    if path == "status.hostIP":
        return "127.0.0.1"
    known = {"metadata": ("name", "namespace", "uid"), "spec": ("nodeName", "serviceAccountName"), "status": ("podIP",)}
    if name not in known.get(section, ()):
        raise InvalidValue(f"expected a field that the downward API knows, got {path!r} (at fieldRef.fieldPath)")
    return str(pod.get(section, {}).get(name) or "")


def downward_files(pod: Object, home: Path) -> dict[Path, bytes]:
    """Files of the pod's downward-API volumes, as they should read now."""
    folder = pod_folder(home, pod["metadata"]["uid"]) / "volumes"
    return {
        folder / volume["name"] / item["path"]: field_value(pod, item["fieldRef"]["fieldPath"]).encode()
        for volume in pod["spec"].get("volumes") or ()
        if "downwardAPI" in volume
        for item in volume["downwardAPI"].get("items") or ()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Volume:
    path: Path
    files: Mapping[Path, bytes] = field(default_factory=dict)


def _volumes(pod: Object, around: Surroundings) -> dict[str, _Volume]:
    return {volume["name"]: _volume(pod, volume, around) for volume in pod["spec"].get("volumes") or ()}


def _volume(pod: Object, volume: Object, around: Surroundings) -> _Volume:
    path = pod_folder(around.home, pod["metadata"]["uid"]) / "volumes" / volume["name"]
    if claim := volume.get("persistentVolumeClaim"):
        return _Volume(path=around.home / "volumes" / claim["claimName"])
    if host := volume.get("hostPath"):
        return _Volume(path=Path(host["path"]))
    if "emptyDir" in volume:
        return _Volume(path=path)
    if "downwardAPI" in volume:
        files = downward_files(pod, around.home)
        return _Volume(path=path, files={file: text for file, text in files.items() if path in file.parents})
    for kind, source in (("Secret", "secret"), ("ConfigMap", "configMap")):
        if source in volume:
            asked = volume[source]
            name = asked.get("secretName") or asked.get("name")
            found = _contents(kind, pod["metadata"]["namespace"], name, bool(asked.get("optional")), around.read)
            names = {item["key"]: item["path"] for item in asked.get("items") or ()} or {key: key for key in found}
            return _Volume(path=path, files={path / names[key]: found[key] for key in names if key in found})
    raise InvalidValue(
        f"volume {volume['name']!r}: expected persistentVolumeClaim, emptyDir, secret, configMap, downwardAPI or "
        f"hostPath, got {', '.join(sorted(set(volume) - {'name'})) or 'nothing'}: local mode has no other"
    )


def _contents(kind: str, namespace: str, name: str, optional: bool, read: Source) -> dict[str, bytes]:
    """What a Secret or ConfigMap holds."""
    try:
        found = read(kind, namespace, name)
    except NotFound:
        if optional:
            return {}
        raise
    values = {key: text.encode() for key, text in (found.get("stringData") or {}).items()}
    for key, text in (found.get("data") or {}).items():
        values[key] = base64.b64decode(text) if kind == "Secret" else text.encode()
    return values


def _places(container: Object, collect: Object, folder: Path, volumes: Mapping[str, _Volume]) -> dict[str, str]:
    """Where each path of the container is on this machine."""
    places = {PROGRESS_PATH: str(folder / "progress")}
    for mount in container.get("volumeMounts") or ():
        if mount["name"] not in volumes:
            raise InvalidValue(
                f"container 'main' mounts {mount['name']!r}: expected one of its volumes "
                f"({', '.join(sorted(volumes)) or 'it has none'})"
            )
        places[mount["mountPath"].rstrip("/") or "/"] = str(volumes[mount["name"]].path / (mount.get("subPath") or ""))
    paths = list((collect.get("parameters") or {}).values())
    if collect.get("source") is not None:
        paths.append(collect["sourcePath"])
    for path in paths:
        places.setdefault(path, _under_mounts(path, places) or str(folder / "fs" / path.lstrip("/")))
    return places


def _under_mounts(path: str, places: Mapping[str, str]) -> str | None:
    moved = translate(path, places)
    return moved if moved != path else None


def _parent(path: str) -> Path:
    return Path(path).parent


def _environment(
    pod: Object, container: Object, around: Surroundings, places: Mapping[str, str], python_path: Sequence[str]
) -> dict[str, str]:
    base = {name: value for name, value in around.environment.items() if name != "PYTHONHOME"}
    package_root = Path(__file__).parents[2]
    roots = [] if package_root.name == "site-packages" else [str(package_root)]
    base["PATH"] = f"{Path(sys.executable).parent}:{base.get('PATH', '/usr/local/bin:/usr/bin:/bin')}"
    old_path = [base["PYTHONPATH"]] if base.get("PYTHONPATH") else []
    base["PYTHONPATH"] = ":".join(dict.fromkeys([*python_path, *roots, *old_path]))
    base |= {"PYTHONUNBUFFERED": "1", "HOSTNAME": pod["metadata"]["name"]}
    base |= {"VODA_HOME": str(around.home), "VODA_WORLD": "local"}
    own = {name: translate(value, places) for name, value in _declared(pod, container, around).items()}
    devices = ",".join(map(str, around.devices))
    fixed = {
        "ARGO_PROGRESS_FILE": places[PROGRESS_PATH],
        MARK: pod["metadata"]["uid"],
        "CUDA_VISIBLE_DEVICES": devices,
        "NVIDIA_VISIBLE_DEVICES": devices or "void",
    }
    return {**base, **own, **fixed}


def _declared(pod: Object, container: Object, around: Surroundings) -> dict[str, str]:
    """The container's own variables; each may refer to those before it."""
    found: dict[str, str] = {}
    for entry in container.get("env") or ():
        if "value" in entry or "valueFrom" not in entry:
            found[entry["name"]] = expand(str(entry.get("value") or ""), found)
            continue
        value = _value_from(pod, entry, around)
        if value is not None:
            found[entry["name"]] = value
    return found


def _value_from(pod: Object, entry: Object, around: Surroundings) -> str | None:
    source = entry["valueFrom"]
    if reference := source.get("fieldRef"):
        return field_value(pod, reference["fieldPath"])
    for kind, name in (("Secret", "secretKeyRef"), ("ConfigMap", "configMapKeyRef")):
        if reference := source.get(name):
            optional = bool(reference.get("optional"))
            values = _contents(kind, pod["metadata"]["namespace"], reference["name"], optional, around.read)
            if reference["key"] in values:
                return values[reference["key"]].decode()
            if optional:
                return None
            raise NotFound(f"{kind} {reference['name']}: expected a key {reference['key']!r}, it has none of that name")
    raise InvalidValue(
        f"variable {entry['name']!r}: expected fieldRef, secretKeyRef or configMapKeyRef, "
        f"got {', '.join(source) or 'nothing'} (at env[].valueFrom)"
    )
