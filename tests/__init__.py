"""Tests: unit, laws, scenarios, theory, contract, e2e, quality; figures under show."""
