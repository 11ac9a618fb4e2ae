"""The scheduler's settings as they stand in its ConfigMap, read again when that changes."""

from __future__ import annotations

from scheduler_core.errors import NotFound
from voda_flows.config import CONFIG_MAP, Settings
from voda_flows.store import ObjectStore


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
        return Settings.from_strings({"namespace": self._namespace, **(found.get("data") or {})})
