"""What a Workflow's next state is, given its document and what its pods did: Argo's semantics for local mode.

Pure: no clock, no I/O. In: documents; out: documents and what to do about pods. ``voda_flows/local/engine.py`` calls
``advance`` on every change and does what it says; ``tests/contract`` holds it against what the real controller did.
"""

from __future__ import annotations

from voda_flows.local.argo.reconcile import Advance, advance
from voda_flows.local.argo.templates import TemplateSource
from voda_flows.local.argo.unsupported import Unsupported
from voda_flows.local.argo.validate import validate, validate_template

__all__ = ["Advance", "TemplateSource", "Unsupported", "advance", "validate", "validate_template"]
