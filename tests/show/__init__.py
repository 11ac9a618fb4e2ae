"""Figures that must hold, measured: ``python -m tests.show AREA [--quick] [--again] [-o json]``."""
