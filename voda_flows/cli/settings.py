"""The scheduler's settings as they stand in the store."""

from __future__ import annotations

from scheduler_core.errors import NotFound
from voda_flows.config import CONFIG_MAP, DEFAULT_NAMESPACE, Settings
from voda_flows.local.store import LocalStore


def settings(store: LocalStore) -> Settings:
    """The settings, defaults where nothing was set.

    Raises:
        InvalidValue: Somebody wrote a setting that is none.
    """
    try:
        found = store.get("ConfigMap", DEFAULT_NAMESPACE, CONFIG_MAP)
    except NotFound:
        return Settings()
    return Settings.from_strings(found.get("data") or {})
