"""Law of the YAML reader: any bytes are read as documents or refused in words."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.laws.fuzzing import yaml_files, yaml_is_read_or_refused


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(yaml_files())
def test_any_file_is_read_or_refused(content: bytes) -> None:
    """And what is read can be checked as a whole without a crash."""
    yaml_is_read_or_refused(content)
