"""What a pod's document means on this machine: paths, variables, volumes, the command."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.errors import InvalidValue, NotFound
from voda_flows.local.launch import Launch, Surroundings, downward_files, expand, launch, translate
from voda_flows.objects import Object

HOME = Path("/home/v")
FOLDER = HOME / "pods" / "u1"


def pod(container: Object | None = None, collect: Object | None = None, **spec: Any) -> Object:
    """A bound pod with one container."""
    main = {"name": "main", "command": ["sh", "-c", "true"], **(container or {})}
    return {
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "default",
            "uid": "u1",
            "annotations": {"voda.dev/collect": json.dumps(collect or {}), "voda.dev/allocation": "doc"},
        },
        "spec": {"containers": [main], "nodeName": "n0", **spec},
        "status": {"podIP": "127.1.0.5"},
    }


def launched(body: Object, *objects: Object, **around: Any) -> Launch:
    """Its launch, in a world that has these Secrets and ConfigMaps."""

    def read(kind: str, namespace: str, name: str) -> Object:
        for found in objects:
            if (found["kind"], found["metadata"]["name"]) == (kind, name):
                return found
        raise NotFound(f"{kind} {namespace}/{name}")

    surroundings: dict[str, Any] = {"workdir": Path("/proj"), "environment": {"PATH": "/bin"}, "devices": (), **around}
    return launch(body, Surroundings(home=HOME, read=read, **surroundings))


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("cat /tmp/o", "cat F/tmp/o"),
        ("--out=/tmp/o,x", "--out=F/tmp/o,x"),
        ("'/tmp/o'", "'F/tmp/o'"),
        ("/tmp/o.txt", "/tmp/o.txt"),
        ("/tmp/o2 /tmp/o-2", "/tmp/o2 /tmp/o-2"),
        ("/x/tmp/o ${X}/tmp/o $X/tmp/o", "/x/tmp/o ${X}/tmp/o $X/tmp/o"),
        ("/voda/a /voda", "V/a V"),
        ("/voda-key", "/voda-key"),
        ("done > /tmp/o.", "done > F/tmp/o."),
    ],
)
def test_paths_are_replaced_as_whole_paths(text: str, moved: str) -> None:
    """A path is replaced where it stands as such or begins a longer one, not inside other names."""
    assert translate(text, {"/tmp/o": "F/tmp/o", "/voda": "V"}) == moved


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "va"),
        ("$$(A)", "$(A)"),
        ("$$", "$"),
        ("$(NOPE) $A ${A}", "$(NOPE) $A ${A}"),
        ("$$$(A)", "$va"),
        ("kill -9 $$$$", "kill -9 $$"),
    ],
)
def test_variables_expand_as_in_kubernetes(text: str, expanded: str) -> None:
    """$(NAME) is a variable, $$ a dollar, and the shell's own ways are left to the shell."""
    assert expand(text, {"A": "va"}) == expanded


def test_command_runs_in_the_workflows_folder() -> None:
    """Command, folder, time limits and what to collect of a plain pod."""
    made = launched(pod({"command": ["python", "-m", "x"], "args": ["$(A)"], "env": [{"name": "A", "value": "1"}]}))

    environment = made.spec["env"]
    assert {key: made.spec[key] for key in made.spec if key != "env"} == {
        "command": [sys.executable, "-m", "x", "1"],
        "cwd": "/proj",
        "grace_s": 30,
        "deadline_s": None,
        "parameters": {},
        "result": False,
    }
    assert environment["A"] == "1"
    assert environment["VODA_POD"] == "u1"
    assert environment["VODA_HOME"] == str(HOME)
    assert environment["PYTHONUNBUFFERED"] == "1"
    assert environment["PYTHONPATH"].split(":")[0] == "/proj"
    assert environment["PATH"] == f"{Path(sys.executable).parent}:/bin"
    assert environment["ARGO_PROGRESS_FILE"] == str(FOLDER / "progress")


def test_pod_without_a_folder_starts_in_its_own() -> None:
    """Where neither container nor Workflow names a folder, it is one of the pod's."""
    assert launched(pod(), workdir=None).spec["cwd"] == str(FOLDER / "fs")
    assert launched(pod({"workingDir": "/else"})).spec["cwd"] == "/else"


def test_gpus_are_seen_only_where_they_are() -> None:
    """Devices of the slots are visible; a pod without any sees none, not all."""
    without, with_two = launched(pod()).spec["env"], launched(pod(), devices=(2, 3)).spec["env"]

    assert (without["CUDA_VISIBLE_DEVICES"], without["NVIDIA_VISIBLE_DEVICES"]) == ("", "void")
    assert (with_two["CUDA_VISIBLE_DEVICES"], with_two["NVIDIA_VISIBLE_DEVICES"]) == ("2,3", "2,3")


def test_outputs_and_script_have_places_of_their_own() -> None:
    """A declared output and a script lie in the pod's folder, wherever the document names them."""
    collect = {
        "parameters": {"o": "/tmp/o"},
        "source": "echo 1 > /tmp/o",
        "sourcePath": "/argo/staging/script",
        "result": True,
    }
    container = {
        "command": ["sh"],
        "args": ["/argo/staging/script"],
        "env": [{"name": "OUT", "value": "/tmp/o"}],
    }
    made = launched(pod(container, collect))

    script = FOLDER / "fs/argo/staging/script"
    assert made.spec["command"] == ["sh", str(script)]
    assert made.files == {script: f"echo 1 > {FOLDER}/fs/tmp/o".encode()}
    assert made.spec["parameters"] == {"o": f"{FOLDER}/fs/tmp/o"}
    assert made.spec["env"]["OUT"] == f"{FOLDER}/fs/tmp/o"
    assert made.spec["result"] is True
    assert FOLDER / "fs/tmp" in made.folders


def test_volumes_of_every_kind() -> None:
    """Claims are shared by name; secrets, config maps and the pod's own fields become files."""
    container = {
        "command": ["cat", "/voda/x", "/key/key", "/conf/c", "/podinfo/a", "/scratch", "/host"],
        "volumeMounts": [
            {"name": name, "mountPath": f"/{path}"}
            for name, path in (
                ("v", "voda"),
                ("k", "key"),
                ("c", "conf"),
                ("p", "podinfo"),
                ("e", "scratch"),
                ("h", "host"),
            )
        ],
    }
    item = {"path": "a", "fieldRef": {"fieldPath": "metadata.annotations['voda.dev/allocation']"}}
    volumes = [
        {"name": "v", "persistentVolumeClaim": {"claimName": "voda"}},
        {"name": "k", "secret": {"secretName": "key"}},
        {"name": "c", "configMap": {"name": "conf", "items": [{"key": "b", "path": "c"}]}},
        {"name": "p", "downwardAPI": {"items": [item]}},
        {"name": "e", "emptyDir": {}},
        {"name": "h", "hostPath": {"path": "/srv"}},
    ]
    secret = {"kind": "Secret", "metadata": {"name": "key"}, "data": {"key": base64.b64encode(b"abc").decode()}}
    config = {"kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"a": "1", "b": "2"}}
    body = pod(container, volumes=volumes)
    made = launched(body, secret, config)

    own = FOLDER / "volumes"
    assert made.spec["command"][1:] == [
        f"{HOME}/volumes/voda/x",
        f"{own}/k/key",
        f"{own}/c/c",
        f"{own}/p/a",
        f"{own}/e",
        "/srv",
    ]
    assert made.files == {own / "k/key": b"abc", own / "c/c": b"2", own / "p/a": b"doc"}
    assert downward_files(body, HOME) == {own / "p/a": b"doc"}


def test_output_below_a_mount_lies_in_the_volume() -> None:
    """An output that is declared on a volume is read from there."""
    container = {"volumeMounts": [{"name": "v", "mountPath": "/voda"}]}
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    made = launched(pod(container, {"parameters": {"o": "/voda/sub/o"}}, volumes=volumes))

    assert made.spec["parameters"] == {"o": f"{HOME}/volumes/c/sub/o"}


def test_variables_from_elsewhere() -> None:
    """Variables come from the pod's own fields, from secrets and config maps; later ones may use earlier ones."""
    env = [
        {"name": "UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "S", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "no", "key": "k", "optional": True}}},
        {"name": "ALL", "value": "$(UID)-$(IP)-$(S)"},
        {"name": "EMPTY"},
    ]
    secret = {"kind": "Secret", "metadata": {"name": "key"}, "stringData": {"k": "s"}}
    found = launched(pod({"env": env}), secret).spec["env"]

    assert (found["ALL"], found["EMPTY"], "C" in found) == ("u1-127.1.0.5-s", "", False)


@pytest.mark.parametrize(
    ("body", "error", "said"),
    [
        (pod({"command": []}), InvalidValue, "expected a command"),
        (pod({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}), InvalidValue, "mounts 'v'.*it has none"),
        (pod(volumes=[{"name": "v", "nfs": {}}]), InvalidValue, "volume 'v'.*got nfs"),
        (pod(volumes=[{"name": "v", "secret": {"secretName": "s"}}]), NotFound, "Secret default/s"),
        (
            pod({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.nope"}}}]}),
            InvalidValue,
            "'metadata.nope'",
        ),
        (pod({"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {}}}]}), InvalidValue, "'A'.*resourceFieldRef"),
        (pod({"name": "other"}), InvalidValue, "a container called 'main'"),
    ],
)
def test_what_local_mode_has_not_is_refused(body: Object, error: type[Exception], said: str) -> None:
    """What cannot be had is named; what is not there yet is NotFound, so that it is waited for."""
    with pytest.raises(error, match=said):
        launched(body)
