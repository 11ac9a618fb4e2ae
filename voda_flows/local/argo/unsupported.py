"""What Argo does and local mode does not: refused here, and no fault of a document for a cluster."""

from __future__ import annotations

from scheduler_core.errors import InvalidValue


class Unsupported(InvalidValue):
    """Argo would take it; local mode cannot do it."""
