"""Law of the allocation document: any text is an allocation or refused in words, by driver and scheduler alike."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.laws.fuzzing import allocation_documents, document_is_read_or_refused


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(allocation_documents())
def test_any_document_is_read_or_refused(text: str) -> None:
    """The messages stay short whatever the document is."""
    document_is_read_or_refused(text)
