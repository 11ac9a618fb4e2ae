"""Local mode up and down: nodes, templates and the scheduler put in place, the engine started; all of it ended again.

Both can be repeated: ``up`` adopts what runs, ``down`` works with an engine that is dead. Acts on the store and on
processes; ``voda up`` and ``voda down`` are its callers.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml

from scheduler_core.errors import Conflict, InvalidValue, NotFound, Unreachable, VodaError
from voda_flows.local.cron import LABEL, workflow_from_cron
from voda_flows.local.nodes import SHAPE, node_of, nodes_of_documents, nodes_of_shape, num_gpus
from voda_flows.local.processes import (
    is_held,
    is_running,
    kill_marked,
    lock_path,
    named_by,
    parent_of,
    parents_in,
    tell,
    wait_for_ends,
)
from voda_flows.local.store import LocalStore
from voda_flows.objects import POD_ENDED, WORKFLOW_ENDED, Object, format_time, key_of

SCHEDULER = ("CronWorkflow", "voda", "voda-scheduler")
CONFIG = ("ConfigMap", "voda", "voda-config")
START_LIMIT_S, STOP_LIMIT_S = 15.0, 10.0
DRAIN_S = 30.0
"""How long jobs may take to write their checkpoints when local mode goes down."""
BEGIN_LIMIT_S = 5.0
GOODBYE_S = 5.0
"""How long workers may take to leave once their drivers have."""
LOOK_S = 0.02
STATE = ("state.db", "state.db-wal", "state.db-shm", "engine.lock", "engine.log", "engine.log.1", "engine.out")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """What ``down`` ended.

    Attributes:
        engine: Whether an engine ran.
        drained: Pods that ended by themselves when asked to.
        killed: Pods that did not in time.
    """

    engine: bool
    drained: int
    killed: int


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
    """Bring local mode up, or make sure that it is.

    Args:
        home: Folder of its state.
        nodes: Its nodes; none for those it has, or 2 with 2 slots each at first.

    Raises:
        Conflict: Other nodes are in use.
        Unreachable: The engine does not come up in time.
    """
    store = LocalStore(home)
    names = _put_nodes(store, None if nodes is None else list(nodes))
    for template in shipped_templates():
        _put(store, template)
    with suppress(Conflict):
        store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(CONFIG), "data": {}})
    started = not is_running(home)
    if started:
        start_engine(home)
    return Up(started=started, nodes=names, scheduler=_run_scheduler(store))


def down(home: Path, *, drain_s: float = DRAIN_S, purge: bool = False) -> Down:
    """End the engine and every pod; drivers first, so that jobs leave a checkpoint. What is in the store stays.

    Args:
        home: Folder of the state.
        drain_s: How long pods may take to end by themselves.
        purge: Take away the state too, volumes and checkpoints included.

    Raises:
        VodaError: Something does not end.
    """
    engine = _stop_engine(home)
    drained, killed = _end_pods(home, drain_s)
    if purge:
        _purge(home)
    return Down(engine=engine, drained=drained, killed=killed)


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


def start_engine(home: Path) -> None:
    """Start the engine in the background and wait until it answers.

    Raises:
        Unreachable: It does not in time, or ends at once; gives what it said.
    """
    said = home / "engine.out"
    with said.open("wb") as output:
        engine = subprocess.Popen(
            [sys.executable, "-m", "voda_flows.local.engine", str(home)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env={**os.environ, "PYTHONPATH": _package_path()},
            start_new_session=True,
        )
    end_s = time.monotonic() + START_LIMIT_S
    while not is_running(home):
        if engine.poll() is not None and not is_held(lock_path(home)):
            raise Unreachable(f"{home}: expected the engine to start, it ended: {said.read_text().strip()[-500:]}")
        if time.monotonic() > end_s:
            raise Unreachable(f"{home}: expected the engine to answer within {START_LIMIT_S:.0f} s; see {said}")
        time.sleep(LOOK_S)
    # It goes on without this process: nothing here waits for its end.
    engine.returncode = 0


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
        for node in found:
            store.delete("Node", "", node["metadata"]["name"])
        for node in asked:
            store.create(node)
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


def _run_scheduler(store: LocalStore) -> str | None:
    """Start the scheduler's first run at once, as its cron workflow would at the next minute."""
    cron = store.get(*SCHEDULER)
    children = store.list("Workflow", SCHEDULER[1], {LABEL: SCHEDULER[2]})
    if any((child.get("status") or {}).get("phase") not in WORKFLOW_ENDED for child in children):
        return None
    now = datetime.now(UTC).replace(microsecond=0)
    try:
        child = store.create(workflow_from_cron(cron, now))
    except Conflict:  # the cron workflow's own tick came first
        return None
    with suppress(NotFound):
        store.merge_patch(*SCHEDULER, {"status": {"lastScheduledTime": format_time(now)}})
    return str(child["metadata"]["name"])


def _stop_engine(home: Path) -> bool:
    pid = named_by(home / "engine.json")
    if pid is None or not is_held(lock_path(home)):
        return False
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        if not wait_for_ends([pid], STOP_LIMIT_S):
            return True
    raise VodaError(f"{home}: expected the engine (pid {pid}) to end, it does not even when killed; look at 'ps {pid}'")


def _end_pods(home: Path, drain_s: float) -> tuple[int, int]:
    """End all pods: drivers are asked first, the others when these are done."""
    end_s, folders = time.monotonic() + drain_s, _live(home)
    drivers, workers = _with_role(home, folders, "driver"), _with_role(home, folders, "worker")
    if drivers:
        _ask_to_end(drivers, end_s)
        # Their driver has said goodbye to them: they leave by themselves.
        wait_for_ends(_parents(workers), min(GOODBYE_S, max(0.0, end_s - time.monotonic())))
    _ask_to_end(folders, end_s)
    late = [folder for folder in folders if parent_of(folder) is not None]
    for folder in late:
        tell(folder, signal.SIGQUIT)
    wait_for_ends(_parents(late), STOP_LIMIT_S)
    # What was too slow even to begin, or to notice that it has to end.
    stuck = parents_in(home)
    for pid in stuck.values():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if left := wait_for_ends(stuck.values(), STOP_LIMIT_S):
        raise VodaError(f"{home}: expected its pods to end, processes {sorted(left)} do not even when killed")
    for folder in {*folders, *stuck}:
        kill_marked(folder.name)
    killed = len({*late, *stuck})
    return len({*folders, *stuck}) - killed, killed


def _live(home: Path) -> list[Path]:
    """Folders of the pods that live; those that were about to begin have begun."""
    found = parents_in(home)
    end_s = time.monotonic() + BEGIN_LIMIT_S
    while time.monotonic() < end_s and not all((folder / "start.json").exists() for folder in found):
        time.sleep(LOOK_S)
        found = parents_in(home)
    return sorted(found)


def _with_role(home: Path, folders: Iterable[Path], role: str) -> list[Path]:
    """Those of the pods that have a role; none where the store cannot tell."""
    pods: list[Object] = []
    if (home / "state.db").exists():
        with suppress(VodaError):
            pods = LocalStore(home).list("Pod", labels={"voda.dev/role": role})
    uids = {pod["metadata"]["uid"] for pod in pods}
    return [folder for folder in folders if folder.name in uids]


def _ask_to_end(folders: Iterable[Path], end_s: float) -> None:
    """Send SIGTERM to pods and wait for their ends."""
    for folder in folders:
        tell(folder, signal.SIGTERM)
    wait_for_ends(_parents(folders), max(0.0, end_s - time.monotonic()))


def _parents(folders: Iterable[Path]) -> list[int]:
    return [pid for folder in folders if (pid := parent_of(folder)) is not None]


def _purge(home: Path) -> None:
    for folder in ("pods", "volumes", "records"):
        shutil.rmtree(home / folder, ignore_errors=True)
    for name in STATE:
        (home / name).unlink(missing_ok=True)
