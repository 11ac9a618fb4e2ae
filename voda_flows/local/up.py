"""Local mode up: nodes, templates and the scheduler put in place, the engine started.

It can be repeated, and cut off anywhere: the next one adopts what runs and makes what is missing. Acts on the store and
on processes; ``voda up`` is its caller. ``down.py`` is the other way.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from scheduler_core.errors import Conflict, InvalidValue, NotFound, Unreachable, VodaError
from voda_flows.local.cron import workflow_from_cron
from voda_flows.local.down import Down, down
from voda_flows.local.launch import MARK
from voda_flows.local.nodes import SHAPE, node_of, nodes_of_documents, nodes_of_shape
from voda_flows.local.processes import engines_in, is_held, is_running, lock_path, named_by, parent_of, send
from voda_flows.local.single import only_one
from voda_flows.local.store import LocalStore
from voda_flows.local.trouble import trouble
from voda_flows.objects import CRON_LABEL, POD_ENDED, WORKFLOW_ENDED, Object, format_time, key_of, num_gpus, phase_of

SCHEDULER = ("CronWorkflow", "voda", "voda-scheduler")
CONFIG = ("ConfigMap", "voda", "voda-config")
START_LIMIT_S = 15.0
BLOCK_BYTES = 4096
LOOK_S = 0.02

__all__ = ["Down", "Up", "down", "read_nodes", "shipped_templates", "start_engine", "up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Up:
    """What ``up`` found and made.

    Attributes:
        started: Whether the engine was started; else one ran already.
        nodes: Names of the nodes.
        scheduler: Name of the scheduler's run that was started at once, or none where one goes on.
    """

    started: bool
    nodes: tuple[str, ...]
    scheduler: str | None


def read_nodes(text: str) -> list[Object]:
    """The nodes that ``--nodes`` names: ``COUNTxGPUS``, or a YAML file of nodes.

    The file has one document or more, each a ``Node`` or ``{name: a, gpus: 2, labels: {topology.kubernetes.io/zone:
    z1}}``; one document may be a list of such.

    Raises:
        InvalidValue: It is neither; says where.
    """
    if SHAPE.fullmatch(text) or not Path(text).exists():
        return nodes_of_shape(text)
    try:
        documents = [document for document in yaml.safe_load_all(Path(text).read_text()) if document is not None]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidValue(f"{text}: expected a YAML file of nodes, it cannot be read: {error}") from error
    if len(documents) == 1 and isinstance(documents[0], list):
        documents = documents[0]
    return nodes_of_documents(documents, text)


def up(home: Path, nodes: Iterable[Object] | None = None) -> Up:
    """Bring local mode up, or make sure that it is; of several at once, each finds what the one before it made.

    Args:
        home: Folder of its state.
        nodes: Its nodes; none for those it has, or 2 with 2 slots each at first.

    Raises:
        Conflict: Other nodes are in use.
        Unreachable: The engine does not come up in time.
        VodaError: The state cannot be written, or is not whole.
    """
    with only_one(home):
        for engine in engines_in(home):
            # Somebody may have stopped it (Ctrl-Z, a debugger), and while it writes: nothing else could write then.
            send(engine, signal.SIGCONT)
        store = LocalStore(home)
        store.database.check()
        names = _put_nodes(store, None if nodes is None else list(nodes))
        for template in shipped_templates():
            _put(store, template)
        with suppress(Conflict):
            store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(CONFIG), "data": {}})
        run = _run_scheduler(store)  # before there is an engine, whose tick might come first
        started = not is_running(home)
        if started:
            start_engine(home)
        return Up(started=started, nodes=names, scheduler=run)


def shipped_templates() -> list[Object]:
    """The WorkflowTemplate of jobs and the CronWorkflow of the scheduler, as they are shipped."""
    package = Path(__file__).parents[1]
    places = [package / "templates", package.parent / "templates"]
    folder = next((place for place in places if (place / "voda-elastic-job.yaml").exists()), None)
    if folder is None:
        raise VodaError(
            f"expected voda-elastic-job.yaml in {places[0]} or {places[1]}, it is in neither: install again"
        )
    return [yaml.safe_load(path.read_text()) for path in sorted(folder.glob("*.yaml"))]


def _answers(home: Path, engine: subprocess.Popen[bytes]) -> bool:
    """Whether this engine serves the home, or another that was faster; a killed one leaves its name behind."""
    return is_running(home) and (engine.poll() is not None or named_by(home / "engine.json") == engine.pid)


def start_engine(home: Path) -> None:
    """Start the engine in the background and wait until it answers.

    Raises:
        Unreachable: It does not in time, or ends at once; gives what it said.
    """
    said = home / "engine.out"
    with trouble(said), said.open("wb") as output:
        engine = subprocess.Popen(
            [sys.executable, "-m", "voda_flows.local.engine", str(home)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            # Started from within a pod, it must not be taken for one of that pod's processes.
            env={name: text for name, text in os.environ.items() if name != MARK} | {"PYTHONPATH": _package_path()},
            start_new_session=True,
        )
    end_s = time.monotonic() + START_LIMIT_S
    while not _answers(home, engine):
        if engine.poll() is not None and not is_held(lock_path(home)):
            raise Unreachable(f"{home}: expected the engine to start, it ended: {_last_words(said)}")
        if time.monotonic() > end_s:
            raise Unreachable(f"{home}: expected the engine to answer within {START_LIMIT_S:.0f} s; see {said}")
        time.sleep(LOOK_S)
    # It goes on without this process: nothing here waits for its end.
    engine.returncode = 0


def _last_words(said: Path) -> str:
    words = said.read_text(errors="replace").strip()[-500:]
    if not words:
        with trouble(said):  # a disk that takes nothing takes no last words either
            said.write_bytes(b"\n" * BLOCK_BYTES)
    return words or "it said nothing"


def _package_path() -> str:
    root = str(Path(__file__).parents[2])
    return ":".join(filter(None, (root, os.environ.get("PYTHONPATH"))))


def _metadata(key: tuple[str, str, str]) -> Object:
    return {"namespace": key[1], "name": key[2]}


def _put_nodes(store: LocalStore, asked: list[Object] | None) -> tuple[str, ...]:
    """Make the nodes what was asked for; refused while pods are on others."""
    found = store.list("Node")
    if asked is None:
        asked = found or nodes_of_shape("2x2")
    if _shapes(found) != _shapes(asked):
        live = [pod for pod in store.list("Pod") if node_of(pod) and pod["status"].get("phase") not in POD_ENDED]
        if found and (live or is_running(store.home)):
            raise Conflict(
                f"{store.home}: expected the nodes it has, {_words(found)}, got {_words(asked)}: "
                "'voda down' first, or give this one another folder by --home"
            )
        store.renew("Node", asked)
    return tuple(node["metadata"]["name"] for node in asked)


def _shapes(nodes: Iterable[Object]) -> dict[str, tuple[int, Mapping[str, str]]]:
    return {
        node["metadata"]["name"]: (num_gpus(node["status"]["allocatable"]), node["metadata"]["labels"])
        for node in nodes
    }


def _words(nodes: Iterable[Object]) -> str:
    return ", ".join(f"{name} ({gpus} GPUs)" for name, (gpus, _) in sorted(_shapes(nodes).items()))


def _put(store: LocalStore, body: Object) -> None:
    """Keep a shipped object, in the place of an older one."""
    try:
        store.create(body)
    except Conflict:
        old = store.get(*key_of(body))
        if old["spec"] != body["spec"]:
            store.replace({**old, "spec": body["spec"]})


def _goes_on(store: LocalStore, child: Object) -> bool:
    """Whether a run of the scheduler has not ended; the ends of those that ``down`` ended may not be recorded yet."""
    if phase_of(child) in WORKFLOW_ENDED:
        return False
    name = child["metadata"]["name"]
    pods = store.list("Pod", SCHEDULER[1], {"workflows.argoproj.io/workflow": name})
    return not pods or any(not _is_over(store.home / "pods" / pod["metadata"]["uid"], pod) for pod in pods)


def _is_over(folder: Path, pod: Object) -> bool:
    """Whether a pod has ended, recorded or not; one that has not begun has not."""
    begun = (folder / "start.json").exists() or (folder / "exit.json").exists()
    return phase_of(pod) in POD_ENDED or (begun and parent_of(folder) is None)


def _run_scheduler(store: LocalStore) -> str | None:
    """Start the scheduler's first run at once, as its cron workflow would at its next tick."""
    cron = store.get(*SCHEDULER)
    children = store.list("Workflow", SCHEDULER[1], {CRON_LABEL: SCHEDULER[2]})
    if any(_goes_on(store, child) for child in children):
        return None
    now, ended = datetime.now(UTC).replace(microsecond=0), {child["metadata"]["name"] for child in children}
    while (child := workflow_from_cron(cron, now))["metadata"]["name"] in ended:
        now += timedelta(seconds=1)  # a run is named by its second, and one that began in this very second has ended
    try:
        store.create(child)
    except Conflict:  # the cron workflow's own tick came first
        return None
    with suppress(NotFound):
        store.merge_patch(*SCHEDULER, {"status": {"lastScheduledTime": format_time(now)}})
    return str(child["metadata"]["name"])
