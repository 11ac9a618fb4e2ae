"""The scheduler's settings as they stand in the store."""

from __future__ import annotations

from voda_flows.config import DEFAULT_NAMESPACE, Settings
from voda_flows.control.settings import SettingsSource
from voda_flows.store import ObjectStore


def settings(store: ObjectStore) -> Settings:
    """The settings, defaults where nothing was set.

    Raises:
        InvalidValue: Somebody wrote a setting that is none.
    """
    return SettingsSource(store, DEFAULT_NAMESPACE).changed() or Settings()
