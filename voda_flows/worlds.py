"""Which world one is in: where the command line, the scheduler and tests get their object store from.

A world is local mode or a cluster. It is local mode unless somebody asks for a cluster, by ``VODA_WORLD=cluster`` or
by naming one; nothing is guessed from where one runs, as local mode runs in pods too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from scheduler_core.errors import InvalidValue, VodaError
from voda_flows.local.store import LocalStore
from voda_flows.local.world import LocalWorld
from voda_flows.store import ObjectStore
from voda_flows.world import World

if TYPE_CHECKING:
    from voda_flows.kube.api import Api
    from voda_flows.kube.cluster import Cluster
    from voda_flows.kube.store import KubeStore, Scope

#: Names the world: ``local`` or ``cluster``.
WORLD_VARIABLE = "VODA_WORLD"
_LOCAL, _CLUSTER = "local", "cluster"


def home_folder(home: Path | str | None = None) -> Path:
    """The folder of local mode's state: the one given, else ``VODA_HOME``, else ``~/.voda``; absolute."""
    return Path(home or os.environ.get("VODA_HOME") or Path.home() / ".voda").expanduser().absolute()


def is_cluster(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment asks for a cluster.

    Raises:
        InvalidValue: ``VODA_WORLD`` names no world.
    """
    world = environment.get(WORLD_VARIABLE) or _LOCAL
    if world not in (_LOCAL, _CLUSTER):
        raise InvalidValue(f"{WORLD_VARIABLE}: expected {_LOCAL!r} or {_CLUSTER!r}, got {world!r}")
    return world == _CLUSTER


def open_store(home: Path | str | None = None) -> ObjectStore:
    """The object store of the world one is in.

    Args:
        home: Folder of local mode's state; ``VODA_HOME`` or ``~/.voda`` where none is given.

    Returns:
        The store, usable from all threads. Opening makes local mode's folder and database where they are missing.

    Raises:
        VodaError: It cannot be opened; says why and what to do.
    """
    return open_cluster() if is_cluster() else LocalStore(home_folder(home))


def open_local(home: Path | str | None = None) -> LocalStore:
    """Local mode's store, for what knows no other.

    Args:
        home: As ``open_store``.

    Raises:
        VodaError: It cannot be opened, or a cluster is asked for.
    """
    if is_cluster():
        raise VodaError(
            f"expected local mode, which this command is for, {WORLD_VARIABLE} asks for a cluster\n"
            f"unset {WORLD_VARIABLE} to work on this machine"
        )
    return LocalStore(home_folder(home))


def home_of(store: ObjectStore) -> Path | None:
    """Folder of local mode's state where a store is local mode's; None where it is a cluster's."""
    return store.home if isinstance(store, LocalStore) else None


def open_world(home: Path, cluster: Cluster | None, namespace: str | None = "", *, argo_server: str = "") -> World:
    """The world that the command line works in; nothing is asked of it yet.

    Args:
        home: Folder of local mode's state.
        cluster: A cluster that was named; None for local mode, unless the environment asks for a cluster.
        namespace: Whose objects are meant: empty for those of the world's own choice, None for all.
        argo_server: ``HOST:PORT`` of an argo-server to go through, empty for none.

    Raises:
        VodaError: There is no such cluster, or the package for it is not installed; says what to do.
    """
    if argo_server:
        with _extra("argo-workflows", "argo-server"):
            from voda_flows.argo_server.world import open_argo_world  # noqa: PLC0415
        return open_argo_world(argo_server, namespace)
    if cluster is None and not is_cluster():
        return LocalWorld(home)
    with _extra():
        from voda_flows.kube.world import open_kube_world  # noqa: PLC0415
    return open_kube_world(cluster, namespace)


def open_cluster(
    cluster: Cluster | None = None, *, scope: Scope | None = None, environment: Mapping[str, str] = os.environ
) -> KubeStore:
    """The store of a cluster.

    Args:
        cluster: Which one; by the environment where none is given.
        scope: Which objects it is about; by ``VODA_NAMESPACES`` where it is not given.
        environment: Of this process.

    Raises:
        VodaError: There is none like this, or the package for it is not installed; says what to do.
    """
    with _extra():
        from voda_flows.kube.opening import open_kube_store  # noqa: PLC0415
    return open_kube_store(cluster, scope, environment)


def open_api(cluster: Cluster | None = None, environment: Mapping[str, str] = os.environ) -> Api:
    """A cluster's API server, for what is no matter of an object store.

    Args:
        cluster: Which one; by the environment where none is given.
        environment: Of this process.

    Raises:
        VodaError: As ``open_cluster``.
    """
    with _extra():
        from voda_flows.kube import opening  # noqa: PLC0415
    return opening.open_api(cluster, environment)


@contextlib.contextmanager
def _extra(package: str = "kubernetes", extra: str = "kube") -> Iterator[None]:
    """Around the import of what opens a cluster: no command of local mode is to spend its time on that."""
    try:
        yield
    except ImportError as missing:
        raise VodaError(
            f"expected the package {package!r} for speaking with a cluster, found: {missing}\n"
            f"install it with `pip install 'voda[{extra}]'`"
        ) from missing
