"""The scheduler's settings in their ConfigMap: read again when that changes, read once, checked, written."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from scheduler_core.allocate.registry import policy_names
from scheduler_core.errors import Conflict, InvalidValue, NotFound
from scheduler_core.model.params import Params, Tiresias
from voda_flows.config import CONFIG_MAP, DEFAULT_NAMESPACE, RETIRED, Settings
from voda_flows.store import ObjectStore

log = logging.getLogger(__name__)


class SettingsSource:
    """Settings of one namespace.

    Args:
        store: Where the ConfigMap is.
        namespace: The scheduler's own.
    """

    def __init__(self, store: ObjectStore, namespace: str) -> None:
        self._store = store
        self._namespace = namespace
        self._version: str | None = None

    def changed(self) -> Settings | None:
        """The settings, or None while they are those of the last call; without a ConfigMap they are the defaults.

        Raises:
            InvalidValue: A setting is not legal; said once for each version.
        """
        try:
            found = self._store.get("ConfigMap", self._namespace, CONFIG_MAP)
        except NotFound:
            found = {"metadata": {"resourceVersion": ""}}
        version = found["metadata"]["resourceVersion"]
        if version == self._version:
            return None
        self._version = version
        data = found.get("data") or {}
        for name in sorted(RETIRED.keys() & data.keys()):
            log.info("setting=%s ignored: it never had an effect; see %s of a job's pods", name, RETIRED[name])
        return Settings.from_strings({"namespace": self._namespace, **data})


def settings(store: ObjectStore, namespace: str = DEFAULT_NAMESPACE) -> Settings:
    """The settings as they stand, defaults where nothing was set.

    Args:
        store: Where the ConfigMap is.
        namespace: The scheduler's own.

    Raises:
        InvalidValue: Somebody wrote a setting that is none.
    """
    return SettingsSource(store, namespace).changed() or Settings(namespace=namespace)


def params_of(settings: Settings) -> Params:
    """What the core reads of the settings."""
    return Params(
        policy=settings.policy,
        decide_interval_s=settings.decide_interval_s,
        start_limit_s=settings.start_limit_s,
        backfilling=settings.backfilling,
        tiresias=Tiresias(
            limits_gpu_s=settings.tiresias_limits_gpu_s,
            promote_ratio=settings.tiresias_promote_ratio,
            compaction_jobs=settings.tiresias_compaction_jobs,
        ),
        links=settings.topology_links,
    )


def check(values: Mapping[str, str], *, where: str) -> None:
    """Whether somebody may set these.

    A policy that is not there is fenced when it is read, and a setting that is gone is passed over; here both are
    refused.

    Args:
        values: Text by name.
        where: What the values come from, for messages.

    Raises:
        InvalidValue: A setting or its value is none.
    """
    for name in sorted(RETIRED.keys() & values.keys()):
        raise InvalidValue(
            f"{where}: setting {name!r}: expected one that has an effect, this one never had; {RETIRED[name]} of a "
            "job's pods has it (docs/contracts.md, section 12)"
        )
    policy = Settings.from_strings(values, where=where).policy
    if "policy" in values and policy not in (known := policy_names()):
        raise InvalidValue(f"{where}: setting 'policy': expected one of {', '.join(known)}, got {policy!r}")


def configure(store: ObjectStore, values: Mapping[str, str], *, where: str) -> None:
    """Write settings; those that are not named stay as they are.

    Args:
        store: Where the ConfigMap is.
        values: Text by name.
        where: What the values come from, for messages.

    Raises:
        InvalidValue: A setting or its value is none, or one that is there already and not set anew.
    """
    if not values:
        return
    check(values, where=where)
    meta = {"namespace": DEFAULT_NAMESPACE, "name": CONFIG_MAP}
    try:
        old = store.get("ConfigMap", DEFAULT_NAMESPACE, CONFIG_MAP).get("data") or {}
        Settings.from_strings({**old, **values})
        store.merge_patch("ConfigMap", DEFAULT_NAMESPACE, CONFIG_MAP, {"data": dict(values)})
    except NotFound:
        try:
            store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": dict(values)})
        except Conflict:  # somebody else made it meanwhile
            configure(store, values, where=where)
